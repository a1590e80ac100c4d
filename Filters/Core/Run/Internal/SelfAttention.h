#pragma once

// Internal to Core.

#include "PackedSequences.h"
#include "PositionEncoding.h"
#include "TransformerLinear.h"

#include <vector>

namespace atlas
{

/// Where the queries, keys and values of a head go, at the rows of a group. Heads that share a key
/// share its memory.
struct HeadRows
{
  float* query = nullptr;  ///< [rows, d_head]
  float* key = nullptr;    ///< [rows, d_head]
  float* value = nullptr;  ///< [rows, d_head]
  float* output = nullptr; ///< [rows, d_model]; nullptr: not wanted
};

/// What is computed for the rows of a group and thrown away.
struct AttentionWorkspace
{
  std::vector<float> shifted; ///< [rows, d_model], what is read plus positions: shortformer
  std::vector<float> mixed;   ///< [rows, H d_head], the values that each head mixed
};

/// The attention of one layer in single precision: the matrices W_Q, W_K, W_V and W_O of its heads.
class SelfAttention
{
public:
  /// `positions` must live as long as this. `layer` is the number of the layer.
  SelfAttention(const TransformerConfig& config, const LayerTensors& tensors, std::int64_t layer,
    const PositionEncoding& positions);

  /// to += sum_h A_h (from W_V^h + b_V^h) W_O^h + b_O, see RecordTransformer; `from`
  /// [rows, d_model] may be `to`. Fills `heads`, of which there are H. In parallel.
  void Add(const RowGroup& group, const float* from, const std::vector<HeadRows>& heads, float* to,
    AttentionWorkspace& work, int threads) const;

  /// Floats that Add takes at the most for groups of so many rows: its workspace, and what each
  /// thread takes.
  static std::int64_t WorkingFloats(
    const TransformerConfig& config, std::int64_t rows, int threads);

private:
  const TransformerConfig& Config;
  const PositionEncoding& Positions;
  float Scale;
  Linear Query;
  Linear Key;
  Linear Value;
  Linear Output;

  const float* AddPositions(
    const RowGroup& group, const float* from, std::vector<float>& shifted) const;
  void ProjectHeads(const RowGroup& group, const float* from, const std::vector<HeadRows>& heads,
    AttentionWorkspace& work, int threads) const;
  void ProjectHead(const Linear& linear, std::int64_t head, const RowGroup& group,
    const RowTile& tile, const float* from, float* to, bool rotates) const;
  void MixValues(
    const RowGroup& group, const std::vector<HeadRows>& heads, float* mixed, int threads) const;
  void MixBlock(const RowGroup& group, std::size_t sequence, std::int64_t begin, std::int64_t head,
    const HeadRows& rows, float* mixed) const;
  void SeparateOutputs(const RowGroup& group, const std::vector<HeadRows>& heads,
    const float* mixed, int threads) const;
};

}
