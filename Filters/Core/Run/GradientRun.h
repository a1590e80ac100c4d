#pragma once

#include "Base/Progress.h"
#include "LogitPair.h"
#include "Preprocessing/TransformerInput.h"
#include "Weights/ProcessedWeights.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace atlas
{

/// Matrices of a layer in the run of one sequence of T tokens, in double precision, or the
/// gradients of a number with respect to them.
struct RunLayer
{
  DoubleMatrix residual; ///< [T, d_model], the residual stream that the layer reads
  DoubleMatrix query;    ///< [T, H d_head], as its matrix and bias give it, before normalization
                         ///< and rotation
  DoubleMatrix key;      ///< [T, H_kv d_head] likewise; gradients: [T, H d_head], those by way of
                         ///< each head, which add up over heads that share a key
  DoubleMatrix value;    ///< as `key`
  DoubleMatrix heads;    ///< [T, H d_head], the z of all heads, which W_O reads
  DoubleMatrix mlp;      ///< [T, d_model], what the MLP gives; empty: the model has none
};

/// A layer of a run, with what its gradients need.
struct TracedLayer : RunLayer
{
  DoubleMatrix attended; ///< [T, d_model], what W_O gives, if a normalization follows; else empty
  DoubleMatrix middle;   ///< [T, d_model], the residual stream that the MLP reads
  DoubleMatrix up;       ///< [T, mlpDimension], x W_up
  DoubleMatrix gate;     ///< likewise, of a gated MLP
};

struct TracedRun
{
  std::vector<TracedLayer> layers;
  DoubleMatrix residual; ///< [T, d_model], after the last layer
  DoubleMatrix normed;   ///< [T, d_model], after the last normalization
};

struct LayerGradients : RunLayer
{
  std::vector<DoubleMatrix> attention; ///< of each head [T, T], of its weights as numbers of their
                                       ///< own; empty unless asked for
  DoubleMatrix attended;               ///< [T, d_model], of what W_O gives
  DoubleMatrix byMlp; ///< [T, d_model], of the residual stream that the MLP reads, by way of the
                      ///< MLP alone
};

struct RunGradients
{
  std::vector<LayerGradients> layers;
  DoubleMatrix residual; ///< [T, d_model], after the last layer
  DoubleMatrix normed;   ///< [T, d_model], after the last normalization
};

/// What of a head reads the residual stream.
enum class HeadInput
{
  Query,
  Key,
  Value
};

/// Which outputs of a run are those of another run of as many tokens.
struct PatchedNodes
{
  const TracedRun* from = nullptr;
  std::vector<bool> heads; ///< [L H]: the z of a head
  std::vector<bool> mlps;  ///< [L]
};

/// The residual streams [T, d_model] that the inputs of a head read.
struct HeadStreams
{
  DoubleMatrix query;
  DoubleMatrix key;
  DoubleMatrix value;
};

/// Runs a decoder on one sequence and differentiates a difference of logits, or a loss, with
/// respect to what is inside: reverse differentiation (Rumelhart et al. 1986) in double precision,
/// of activations alone. The formulas of the run are those of RecordTransformer; factors of
/// products are not rounded, whatever Transformer::GetProducts says.
///
/// One backward pass takes about as many multiplications as a run. A block of weights at a time is
/// held in double precision by each thread. Results are equal to the byte for any number of
/// threads.
class GradientRun
{
public:
  /// For sequences of at most `length` tokens. The model must outlive this object. Throws as
  /// CheckGradients. `threads`: see ThreadCount.
  GradientRun(const Transformer& model, std::int64_t length, int threads = 0);
  ~GradientRun();

  /// What the first layer reads for one sequence of text [T, d_model]; embeddings are computed in
  /// single precision.
  DoubleMatrix Embed(const TransformerInput& input) const;

  /// Runs all layers from a residual stream [T, d_model] on. Throws ModelError with the layer if it
  /// is not finite before one, or after the last.
  TracedRun Run(const DoubleMatrix& embedding, const PatchedNodes& patched = {},
    const Progress& progress = {}) const;

  /// The same from a layer on, which reads this residual stream. Layers before it stay empty.
  /// Throws as Run.
  TracedRun RunFrom(std::int64_t layer, const DoubleMatrix& residual,
    const PatchedNodes& patched = {}, const Progress& progress = {}) const;

  /// The z of a head [T, d_head] whose inputs read these streams, and what an MLP gives [T,
  /// d_model] that reads one.
  DoubleMatrix HeadOutput(std::int64_t layer, std::int64_t head, const HeadStreams& streams) const;
  DoubleMatrix MlpOutput(std::int64_t layer, const DoubleMatrix& stream) const;

  /// All logits at a position, in single precision, whatever Transformer::GetProducts says.
  std::vector<float> Logits(const TracedRun& run, std::int64_t position) const;

  /// The difference of two logits.
  double Difference(const TracedRun& run, const LogitPair& logits) const;

  /// Its gradients. `attention`: those of attention weights, too.
  RunGradients Differentiate(const TracedRun& run, const LogitPair& logits, bool attention = false,
    const Progress& progress = {}) const;

  /// The mean over the first T - 1 positions of the cross-entropy of the token that follows,
  /// -log p, in nats, where `tokens` are those of the sequence [T], at least 2.
  double Loss(const TracedRun& run, const std::vector<std::int64_t>& tokens) const;

  /// Its gradients; that of the logits at a position is softmax - onehot, divided by T - 1.
  RunGradients DifferentiateLoss(const TracedRun& run, const std::vector<std::int64_t>& tokens,
    const Progress& progress = {}) const;

  /// The gradient of the residual stream before a layer by way of one input of a head alone [T,
  /// d_model].
  DoubleMatrix ByHead(const TracedRun& run, const RunGradients& gradients, std::int64_t layer,
    std::int64_t head, HeadInput input) const;

  /// What a change of the z of a head [T, d_head] adds to what W_O gives [T, d_model].
  DoubleMatrix OutputOfHead(
    std::int64_t layer, std::int64_t head, const DoubleMatrix& change) const;

  /// What a change of what W_O or an MLP gives [T, d_model] adds to the residual stream of a run
  /// [T, d_model], through any normalization that follows.
  DoubleMatrix AddedByAttention(
    const TracedRun& run, std::int64_t layer, const DoubleMatrix& change) const;
  DoubleMatrix AddedByMlp(
    const TracedRun& run, std::int64_t layer, const DoubleMatrix& change) const;

  /// What a change of the z of a head [T, d_head] adds to the residual stream [T, d_model], to
  /// first order where a normalization follows W_O.
  DoubleMatrix WrittenByHead(
    const TracedRun& run, std::int64_t layer, std::int64_t head, const DoubleMatrix& change) const;

  /// Likewise a change of what an MLP gives [T, d_model].
  DoubleMatrix WrittenByMlp(
    const TracedRun& run, std::int64_t layer, const DoubleMatrix& change) const;

private:
  struct Impl;
  std::unique_ptr<Impl> Data;

  RunGradients Backward(
    const TracedRun& run, DoubleMatrix normed, bool attention, const Progress& progress) const;
};

/// Throws ModelError unless a model is a decoder of text with an unembedding all of whose parts
/// GradientRun knows; the message names the first other one.
void CheckGradients(const Transformer& model);

/// Upper bounds, in bytes, on the memory of a TracedRun of `length` tokens with its embedding, and
/// on that of such a run, its gradients, and what computing both takes; `loss`: those of a loss.
double TracedMemory(const Transformer& model, std::int64_t length);
double GradientMemory(
  const Transformer& model, std::int64_t length, int threads = 0, bool loss = false);

}
