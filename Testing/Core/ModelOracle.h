#pragma once

#include "OracleFile.h"
#include "Preprocessing/TransformerInput.h"

#include <cstdint>
#include <vector>

namespace atlas::test
{

/// What the original code computed with a model.
class ModelOracle : public OracleFile
{
public:
  using OracleFile::OracleFile;

  /// The sequences without their padding, or the images.
  TransformerInput Input() const
  {
    TransformerInput input;
    if (this->Has("pixel_values"))
    {
      input.images = this->ShapeOf("pixel_values")[0];
      input.pixels = this->Floats("pixel_values");
      return input;
    }
    input.tokens = this->Sequences();
    if (this->Has("token_type_ids"))
    {
      input.segments = this->IntegersAt("token_type_ids", this->Places());
    }
    return input;
  }

  /// The token ids without their padding.
  std::vector<std::vector<std::int64_t>> Sequences() const
  {
    return this->IntegersAt("input_ids", this->Places());
  }

  /// The places in each row of the tokens that are no padding, or of all patches.
  std::vector<std::vector<std::int64_t>> Places() const
  {
    const Shape& shape = this->ShapeOf(this->Has("input_ids") ? "input_ids" : "hidden.0");
    return this->KeptPlaces("attention_mask", shape);
  }
};

}
