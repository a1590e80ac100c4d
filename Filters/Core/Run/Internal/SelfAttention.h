#pragma once

#include "Activations.h"
#include "Base/Progress.h"
#include "Numerics/AttentionKernels.h"
#include "PackedSequences.h"
#include "PositionEncoding.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"

#include <vector>

namespace atlas
{

/// Where the queries, keys and values of a head are written, for the rows of a group. Heads that
/// share a key also share its memory.
struct HeadRows
{
  float* query = nullptr;     ///< [rows, d_head]
  float* key = nullptr;       ///< [rows, d_head]
  float* value = nullptr;     ///< [rows, d_value]
  float* output = nullptr;    ///< [rows, d_model]; nullptr if not recorded
  float* valueNorm = nullptr; ///< [rows]; nullptr if not recorded
};

/// Temporary values for the rows of a group.
struct AttentionWorkspace
{
  std::vector<float> shifted; ///< [rows, d_model], input plus positions, for Shortformer
  std::vector<float> mixed;   ///< [rows, H d_value], each head's weighted sum of values
  std::vector<float> grams; ///< [H, d_value, d_value], W_O W_O^T of each head, for norms of values
  std::vector<float> latents;     ///< [rows, ...], latent vectors with the rotated part of keys
  std::vector<float> keyLatent;   ///< [rows, keyLatent], normalized
  std::vector<float> queryLatent; ///< [rows, queryLatent], normalized
};

/// What the cross attention of a layer reads for the rows of a group: the source of each of its
/// sequences.
struct CrossSource
{
  const RowGroup* group = nullptr; ///< the same sequences, with the tokens of their sources
  const float* rows = nullptr;     ///< [group->Rows(), d_model], what the encoder returns
  std::vector<HeadRows> heads; ///< query and output: for the rows of the target; the others: for
                               ///< those of the source
  bool hasKeys = false;        ///< keys and values are there already, from an earlier call
};

/// The attention of one layer in single precision (Vaswani et al. 2017), with the matrices W_Q,
/// W_K, W_V and W_O of its heads. That of a decoder to its encoder has matrices of its own.
class SelfAttention
{
public:
  /// `positions` must outlive this object. `layer` is the index of the layer.
  SelfAttention(const TransformerConfig& config, const LayerTensors& tensors, std::int64_t layer,
    const PositionEncoding& positions);

  /// Computes to += sum_h A_h (from W_V^h + b_V^h) W_O^h + b_O, see RecordTransformer; `from`
  /// [rows, d_model] may be the same as `to`. Fills the H `heads`. `visitor`, unless it is empty,
  /// may change the weighted sums of values, Mixed. Runs in parallel. `progress` is that of the
  /// weighted sums, beside which the rest of a long sequence is short.
  void Add(const RowGroup& group, const float* from, const std::vector<HeadRows>& heads, float* to,
    AttentionWorkspace& work, int threads, const ActivationVisitor& visitor,
    const Progress& progress) const;

  /// About how many multiplications Add needs for a group.
  double Work(const RowGroup& group) const;

  /// The same with keys and values of a source. Queries are not rotated, no key is masked, and
  /// scores have no bias.
  void AddCross(const RowGroup& group, const float* from, const CrossSource& source, float* to,
    AttentionWorkspace& work, int threads) const;

  /// An upper bound on the floats that Add allocates for groups of `rows` rows: its workspace and
  /// the memory of each thread. The outputs of heads and products with weights need more, see
  /// TransformerRun::EstimateMemory.
  static std::int64_t WorkingFloats(
    const TransformerConfig& config, std::int64_t rows, int threads);

  /// PositionKind::Disentangled: of each head, keys and queries [H (2 D + 1), d_head] of the
  /// distances query - key = -D ... D; otherwise empty.
  const SharedMatrix& GetPositionKeys() const { return this->PositionKeys; }
  const SharedMatrix& GetPositionQueries() const { return this->PositionQueries; }

private:
  /// The queries, keys or values of all heads.
  struct Projection
  {
    const Linear* linear = nullptr;
    std::int64_t heads = 0;
    float* HeadRows::* rows = nullptr;
    const std::vector<TransformerNorm>* norms = nullptr; ///< see QueryNorms
    bool rotated = false;                                ///< where the model rotates
    std::int64_t columns = 0; ///< components of a head that the matrix gives
    std::int64_t stride = 0;  ///< from row to row of a head; the others come from elsewhere
  };

  const TransformerConfig& Config;
  const PositionEncoding& Positions;
  std::int64_t Layer;
  float Scale;
  Linear Query;
  Linear Key;
  Linear Value;
  Linear Output;
  Linear Gate;        ///< without outputs: none
  Linear QueryLatent; ///< these: latent attention
  Linear KeyLatent;
  TransformerNorm QueryLatentNorm;
  TransformerNorm KeyLatentNorm;
  std::vector<TransformerNorm> QueryNorms; ///< one for all heads, or of all together, or one for
                                           ///< each; empty: none
  std::vector<TransformerNorm> KeyNorms;
  std::vector<TransformerNorm> ValueNorms; ///< one, or empty: none
  TransformerNorm MixedNorm;               ///< of what Output reads, if it is normalized
  FloatValues Sinks;
  SharedMatrix PositionKeys;
  SharedMatrix PositionQueries;

  SharedMatrix OfDistances(const LinearTensors& tensors) const;
  const float* AddPositions(
    const RowGroup& group, const float* from, std::vector<float>& shifted) const;
  Projection Queries(bool rotated) const;
  Projection Keys(bool rotated) const;
  Projection Values() const;
  void ProjectHeads(const RowGroup& group, const float* from, const std::vector<HeadRows>& heads,
    AttentionWorkspace& work, int threads) const;
  void Project(const std::vector<Projection>& projections, const RowGroup& group, const float* from,
    const std::vector<HeadRows>& heads, int threads) const;
  void ProjectLatents(const RowGroup& group, const float* from, const std::vector<HeadRows>& heads,
    AttentionWorkspace& work, int threads) const;
  void ShareRotated(const RowGroup& group, const std::vector<HeadRows>& heads,
    std::vector<float>& latents, int threads) const;
  void FinishTogether(const Projection& projection, const RowGroup& group,
    const std::vector<HeadRows>& heads, int threads) const;
  void Rotate(const RowGroup& group, std::int64_t row, float* values) const;
  void Grow(std::int64_t position, float* query) const;
  void FinishHead(const Projection& projection, std::int64_t head, const RowGroup& group,
    std::int64_t row, float* values) const;
  void MixValues(const RowGroup& group, const RowGroup& keys, const std::vector<HeadRows>& heads,
    float* mixed, int threads, const Progress& progress) const;
  void MixBlock(const RowGroup& group, const RowGroup& keysOf, std::size_t sequence,
    std::int64_t begin, std::int64_t head, const HeadRows& rows, float* mixed) const;
  void MixWindows(const RowGroup& group, const std::vector<HeadRows>& heads, float* mixed,
    int threads, const Progress& progress) const;
  void MultiplyByGates(const RowGroup& group, const float* from, float* mixed, int threads) const;
  double ProjectionWork(const RowGroup& group) const;
  double MixingWork(const RowGroup& group) const;
  void MixWindow(const std::vector<std::int64_t>& rows, std::int64_t head, const HeadRows& from,
    float* mixed) const;
  HeadScores ScoresOf(std::int64_t head) const;
  void MeasureValues(const RowGroup& group, const std::vector<HeadRows>& heads,
    AttentionWorkspace& work, int threads) const;
  void SeparateOutputs(const RowGroup& group, const std::vector<HeadRows>& heads,
    const float* mixed, int threads) const;
  template<class Visitor>
  void VisitHeads(std::int64_t rows, int threads, const Visitor& visit) const;
};

}
