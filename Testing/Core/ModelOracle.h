#pragma once

#include "Recording.h"
#include "Safetensors.h"
#include "TransformerInput.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace atlas::test
{

/// What the original code computed with a model.
class ModelOracle
{
public:
  explicit ModelOracle(const std::filesystem::path& file)
    : Expected(file)
  {
  }

  bool Has(const std::string& quantity) const
  {
    return this->Expected.GetTensors().count(quantity) != 0;
  }
  const TensorView& Get(const std::string& quantity) const
  {
    return this->Expected.GetTensors().at(quantity);
  }
  const std::string& Text(const std::string& key) const
  {
    return this->Expected.GetMetadata().at(key);
  }

  /// The sequences without their padding, or the images.
  TransformerInput Input() const
  {
    TransformerInput input;
    if (this->Has("pixel_values"))
    {
      const TensorView& pixels = this->Get("pixel_values");
      input.images = pixels.shape[0];
      input.pixels.resize(pixels.Count());
      pixels.ToFloat(0, pixels.Count(), input.pixels.data());
      return input;
    }
    const TensorView& view = this->Get("input_ids");
    const std::vector<std::int64_t> ids = view.ToInteger();
    for (std::int64_t s = 0; s < view.shape[0]; ++s)
    {
      input.tokens.emplace_back();
      for (const std::int64_t t : this->Places(s))
      {
        input.tokens.back().push_back(ids[s * view.shape[1] + t]);
      }
    }
    return input;
  }

  /// The places in row s of the tokens that are no padding.
  std::vector<std::int64_t> Places(std::int64_t s) const
  {
    const bool isText = this->Has("input_ids");
    const std::int64_t length =
      isText ? this->Get("input_ids").shape[1] : this->Get("layer.0.query").shape[2];
    const std::vector<std::int64_t> mask = this->Has("attention_mask")
                                             ? this->Get("attention_mask").ToInteger()
                                             : std::vector<std::int64_t>();
    std::vector<std::int64_t> places;
    for (std::int64_t t = 0; t < length; ++t)
    {
      if (mask.empty() || mask[s * length + t] != 0)
      {
        places.push_back(t);
      }
    }
    return places;
  }

private:
  SafetensorsFile Expected;
};

}
