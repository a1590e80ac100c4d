#pragma once

#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Recording/Recording.h"
#include "TestName.h"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace atlas::test
{

/// Models whose layers have windows, caps or sinks: queries, keys, scores and attention as the
/// original code computed them (Testing/Oracle/models/transformers).
class VariantOracle : public OracleFile
{
public:
  /// Names of models, for INSTANTIATE_TEST_SUITE_P: those of this repository, and those beside it.
  static std::vector<std::string> Names()
  {
    std::vector<std::string> names = { "gemma2", "gpt_oss", "qwen3-v5" };
    for (const char* other : { "mistral-window", "gemma3", "gpt_neo" })
    {
      if (!Path(other).empty())
      {
        names.emplace_back(other);
      }
    }
    return names;
  }

  explicit VariantOracle(const std::string& name)
    : OracleFile(Path(name))
  {
  }

  static std::filesystem::path Path(const std::string& name)
  {
    return ModelsOracle("transformers/" + name + "/expected.safetensors");
  }

  /// [sequences, heads, tokens, tokens] of a layer: "scores" with the cap and before the mask, or
  /// "attention" with window and sinks.
  std::vector<double> Values(std::int64_t layer, const std::string& quantity) const
  {
    return this->Of(layer, quantity).ToDouble();
  }

  /// The recording of queries, keys and values, with what the metadata say of the layers.
  Recording MakeRecording() const
  {
    Recording recording;
    recording.architecture = this->Text("architecture");
    const Shape& shape = this->Of(0, "query").shape; // [sequences, heads, tokens, d_head]
    recording.sequenceOffsets = { 0 };
    for (std::int64_t s = 0; s < shape[0]; ++s)
    {
      for (std::int64_t i = 0; i < shape[2]; ++i)
      {
        recording.tokens.sequence.push_back(static_cast<std::int32_t>(s));
        recording.tokens.position.push_back(static_cast<std::int32_t>(i));
      }
      recording.sequenceOffsets.push_back((s + 1) * shape[2]);
    }
    recording.tokens.id = this->Integers("input_ids");
    const auto scales = this->Json<std::vector<double>>("score_scale");
    const auto windows = this->Json<std::vector<std::int64_t>>("window");
    recording.layerCount = static_cast<std::int32_t>(scales.size());
    for (std::size_t l = 0; l < scales.size(); ++l)
    {
      RecordedLayer layer;
      layer.index = static_cast<std::int32_t>(l);
      layer.scoreScale = scales[l];
      layer.scoreCap = this->Json<double>("softcap");
      layer.window = windows[l];
      if (this->Text("sinks") == "yes")
      {
        for (const double sink : this->Values(layer.index, "sinks"))
        {
          layer.sinks.push_back(static_cast<float>(sink));
        }
      }
      layer.heads.resize(shape[1]);
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        layer.heads[h].query = this->Rows(layer.index, "query", h);
        layer.heads[h].key = this->Rows(layer.index, "key", h);
        layer.heads[h].value = this->Rows(layer.index, "value", h);
      }
      recording.layers.push_back(layer);
    }
    CheckRecording(recording, "oracle");
    return recording;
  }

private:
  const TensorView& Of(std::int64_t layer, const std::string& quantity) const
  {
    return this->Get("layer." + std::to_string(layer) + "." + quantity);
  }

  template<class Value>
  Value Json(const std::string& key) const
  {
    return nlohmann::json::parse(this->Text(key)).get<Value>();
  }

  /// One head of [sequences, heads, tokens, width], as [sequences tokens, width].
  SharedMatrix Rows(std::int64_t layer, const std::string& quantity, std::size_t head) const
  {
    const TensorView& view = this->Of(layer, quantity);
    const std::int64_t perHead = view.shape[2] * view.shape[3];
    SharedMatrix matrix = SharedMatrix::Zero(view.shape[0] * view.shape[2], view.shape[3]);
    for (std::int64_t s = 0; s < view.shape[0]; ++s)
    {
      const auto first =
        static_cast<std::uint64_t>((s * view.shape[1] + static_cast<std::int64_t>(head)) * perHead);
      view.ToFloat(
        first, first + static_cast<std::uint64_t>(perHead), matrix.Row(s * view.shape[2]));
    }
    return matrix;
  }
};

}
