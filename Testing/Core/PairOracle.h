#pragma once

#include "ModelsOracle.h"
#include "RecordTransformer.h"
#include "Safetensors.h"
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

inline constexpr double PairTolerance = 2e-5;       ///< of scores, attention and head outputs
inline constexpr double PairStreamTolerance = 2e-4; ///< of hidden states and logits

using Tokens = std::vector<std::vector<std::int64_t>>;

inline RecordOptions Everything()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  return options;
}

/// Not with std::max, which would lose NaN.
inline void Raise(double& largest, double difference)
{
  largest = std::abs(difference) <= largest ? largest : std::abs(difference);
}

/// What the original code computed with a model that has an encoder; see the README beside it.
class PairOracle
{
public:
  explicit PairOracle(const std::string& name)
    : Expected(Folder(name) / "expected.safetensors")
  {
    this->Input.tokens =
      this->Sequences("decoder_input_ids", this->Targets, "decoder_attention_mask");
    if (this->Has("input_features"))
    {
      const TensorView& features = this->Get("input_features");
      this->Input.sounds = features.shape[0];
      this->Input.features.resize(features.Count());
      features.ToFloat(0, features.Count(), this->Input.features.data());
      std::vector<std::int64_t> places(this->Get("encoder.hidden.0").shape[1]);
      std::iota(places.begin(), places.end(), 0);
      this->Sources.assign(features.shape[0], places);
    }
    else
    {
      this->Input.source = this->Sequences("input_ids", this->Sources, "attention_mask");
    }
  }

  static std::filesystem::path Folder(const std::string& name)
  {
    return ModelsOracle("transformers/" + name);
  }

  bool Has(const std::string& name) const { return this->Expected.GetTensors().count(name) != 0; }
  const TensorView& Get(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name);
  }

  TransformerInput Input;
  Tokens Sources; ///< the places of each sequence that are no padding
  Tokens Targets;

private:
  SafetensorsFile Expected;

  Tokens Sequences(const std::string& name, Tokens& places, const std::string& maskName) const
  {
    const TensorView& view = this->Get(name);
    const std::vector<std::int64_t> ids = view.ToInteger();
    const std::vector<std::int64_t> mask = this->Get(maskName).ToInteger();
    Tokens tokens(view.shape[0]);
    places.resize(tokens.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
    {
      const std::int64_t s = static_cast<std::int64_t>(i) / view.shape[1];
      if (mask[i] != 0)
      {
        tokens[s].push_back(ids[i]);
        places[s].push_back(static_cast<std::int64_t>(i) % view.shape[1]);
      }
    }
    return tokens;
  }
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
