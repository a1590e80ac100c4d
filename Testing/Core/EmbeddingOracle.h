#pragma once

#include "Embedding/JointVectors.h"
#include "OracleFile.h"
#include "TransformerOracle.h"

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace atlas::test
{

/// What an independent program computed of the joint vectors of the heads of a small transformer,
/// or of the synthetic head `spiral` (Testing/Oracle/embedding/README.md).
class EmbeddingOracle : public OracleFile
{
public:
  explicit EmbeddingOracle(const std::string& name)
    : OracleFile("embedding/" + name + ".safetensors")
    , Name(name)
  {
  }

  double Value(const std::string& quantity) const { return this->Values(quantity).front(); }

  std::int64_t LayerCount() const { return this->Name == "spiral" ? 1 : 2; }
  std::int64_t HeadCount() const { return this->Name == "spiral" ? 1 : 4; }

  /// What quantities of a head begin with.
  std::string Prefix(std::int64_t layer, std::int64_t head) const
  {
    return this->Name == "spiral"
             ? ""
             : "layer." + std::to_string(layer) + ".head." + std::to_string(head) + ".";
  }

  /// The queries and keys, and the attention that was recorded with them.
  Recording MakeRecording() const
  {
    return this->Name == "spiral" ? this->SpiralRecording() : this->TransformerRecording();
  }

private:
  std::string Name;

  static SharedMatrix MatrixOf(
    const std::vector<double>& values, std::int64_t rows, std::int64_t columns)
  {
    SharedMatrix matrix = SharedMatrix::Zero(rows, columns);
    std::transform(values.begin(), values.end(), matrix.values.get(),
      [](double value) { return static_cast<float>(value); });
    return matrix;
  }

  Recording SpiralRecording() const
  {
    Recording recording;
    recording.layerCount = 1;
    recording.sequenceOffsets = { 0, 200 };
    recording.tokens.sequence.assign(200, 0);
    recording.tokens.position.resize(200);
    std::iota(recording.tokens.position.begin(), recording.tokens.position.end(), 0);
    RecordedHead head;
    head.query = MatrixOf(this->Values("query"), 200, 64);
    head.key = MatrixOf(this->Values("key"), 200, 64);
    recording.layers.push_back({ 0, 0.125, { head } });
    return recording;
  }

  Recording TransformerRecording() const
  {
    const TransformerOracle transformer(this->Name);
    Recording recording;
    recording.mask = this->Name == "gpt2" ? AttentionMask::Causal : AttentionMask::Bidirectional;
    recording.layerCount = 2;
    for (const std::int64_t sequence : this->Integers("token.sequence"))
    {
      recording.tokens.sequence.push_back(static_cast<std::int32_t>(sequence));
    }
    for (const std::int64_t position : this->Integers("token.position"))
    {
      recording.tokens.position.push_back(static_cast<std::int32_t>(position));
      if (position == 0)
      {
        const std::int64_t tokens = recording.tokens.position.size();
        recording.sequenceOffsets.push_back(tokens - 1);
      }
    }
    recording.sequenceOffsets.push_back(recording.tokens.Count());
    for (std::int64_t layer = 0; layer < this->LayerCount(); ++layer)
    {
      const Shape& shape =
        transformer.Get("layer." + std::to_string(layer) + ".query").shape; // B, H, T, d
      recording.layers.push_back(
        { static_cast<std::int32_t>(layer), 1 / std::sqrt(static_cast<double>(shape[3])), {} });
      for (std::int64_t head = 0; head < this->HeadCount(); ++head)
      {
        recording.layers.back().heads.push_back(
          ReadHead(transformer, recording, layer, head, shape));
      }
    }
    return recording;
  }

  static RecordedHead ReadHead(const TransformerOracle& transformer, const Recording& recording,
    std::int64_t layer, std::int64_t h, const Shape& shape)
  {
    const std::string prefix = "layer." + std::to_string(layer) + ".";
    const std::int64_t padded = shape[2];
    std::vector<double> query;
    std::vector<double> key;
    RecordedHead head;
    for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
    {
      const std::int64_t length = recording.SequenceLength(s);
      const auto append = [&](const std::string& name, std::vector<double>& rows)
      {
        const std::vector<double> values = transformer.Values(prefix + name, s);
        const auto begin = values.begin() + h * padded * shape[3];
        rows.insert(rows.end(), begin, begin + length * shape[3]);
      };
      append("query", query);
      append("key", key);
      const std::vector<double> attention = transformer.Values(prefix + "attention", s);
      std::vector<double> corner;
      for (std::int64_t i = 0; i < length; ++i)
      {
        const auto begin = attention.begin() + (h * padded + i) * padded;
        corner.insert(corner.end(), begin, begin + length);
      }
      head.weights.push_back(MatrixOf(corner, length, length));
    }
    head.query = MatrixOf(query, recording.tokens.Count(), shape[3]);
    head.key = MatrixOf(key, recording.tokens.Count(), shape[3]);
    return head;
  }
};

/// Runs on every embedding oracle.
class OfEmbedding : public testing::TestWithParam<std::string>
{
protected:
  EmbeddingOracle Expected{ GetParam() };
  Recording Record = this->Expected.MakeRecording();
  JointRows Rows = ChooseTokens(this->Record, {});

  /// Calls check(layer, head, prefix of its quantities) for each head.
  template<class Check>
  void ForHeads(const Check& check) const
  {
    for (std::int64_t layer = 0; layer < this->Expected.LayerCount(); ++layer)
    {
      for (std::int64_t head = 0; head < this->Expected.HeadCount(); ++head)
      {
        const std::string prefix = this->Expected.Prefix(layer, head);
        SCOPED_TRACE(this->GetParam() + " " + prefix);
        check(layer, head, prefix);
      }
    }
  }

public:
  static std::string Name(const testing::TestParamInfo<std::string>& info) { return info.param; }
};

}
