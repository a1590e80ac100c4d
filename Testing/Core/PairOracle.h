#pragma once

#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Run/RecordTransformer.h"
#include "TestName.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Models with an encoder and a decoder, and what the original code computed with them.
namespace atlas::test
{

using Tokens = std::vector<std::vector<std::int64_t>>;

inline RecordOptions Everything()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  return options;
}

/// What the original code computed with a model that has an encoder; see the README beside it.
class PairOracle : public OracleFile
{
public:
  explicit PairOracle(const std::string& name)
    : OracleFile(Folder(name) / "expected.safetensors")
  {
    this->Targets = this->KeptPlaces("decoder_attention_mask", this->ShapeOf("decoder_input_ids"));
    this->Input.tokens = this->IntegersAt("decoder_input_ids", this->Targets);
    if (this->Has("input_features"))
    {
      this->Input.sounds = this->ShapeOf("input_features")[0];
      this->Input.features = this->Floats("input_features");
      this->Sources = this->KeptPlaces({}, this->ShapeOf("encoder.hidden.0"));
    }
    else
    {
      this->Sources = this->KeptPlaces("attention_mask", this->ShapeOf("input_ids"));
      this->Input.source = this->IntegersAt("input_ids", this->Sources);
    }
  }

  static std::filesystem::path Folder(const std::string& name)
  {
    return ModelsOracle("transformers/" + name);
  }

  TransformerInput Input;
  Tokens Sources; ///< the places of each sequence that are no padding
  Tokens Targets;
};

/// Tokens that look random.
inline std::vector<std::int64_t> SomeTokens(std::int64_t count, std::int64_t seed)
{
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
  {
    tokens.push_back((seed + 31 * i + 7 * i * i) % 83);
  }
  return tokens;
}

inline std::string PairName(const testing::TestParamInfo<std::string>& info)
{
  return TestName(info.param);
}

}
