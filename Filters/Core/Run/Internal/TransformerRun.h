#pragma once

// Internal to Core.

#include "PackedSequences.h"
#include "PositionEncoding.h"
#include "RecordTransformer.h"
#include "TransformerLayer.h"

namespace atlas
{

/// Which layers and residuals are recorded.
class RecordSelection
{
public:
  RecordSelection(const TransformerConfig& config, const RecordOptions& options);

  bool HasLayer(std::int64_t layer) const;

  /// Whether the residual before layer l (after all layers: l = L) is recorded.
  bool HasResidual(std::int64_t l) const;

  /// Layers that must run for what is recorded.
  std::int64_t LayersToRun() const;

private:
  std::vector<bool> Layers;
  bool Residual;
  bool Logits;
};

/// One run of a transformer on an input that CheckInput accepts: takes the residual stream layer by
/// layer through the model, and keeps what is asked for. All arguments must live as long as this.
class TransformerRun
{
public:
  /// Throws OptionError for a range of sequences that the input does not have.
  TransformerRun(
    const Transformer& model, const TransformerInput& input, const RecordOptions& options);

  /// The memory that Run takes.
  MemoryEstimate EstimateMemory() const;

  /// As RecordTransformer. Call it once.
  std::optional<Recording> Run();

private:
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  const TransformerInput& Input;
  const RecordOptions& Options;
  RecordSelection Selected;
  PackedSequences Sequences;
  Recording Record;
  SharedMatrix Residual; ///< x, [rows to run, d_model]
  LayerWorkspace Work;
  std::vector<RecordedHead> Spare; ///< [rows of a group, ...], for what is not recorded of a layer

  bool Report(double done) const;
  float* ResidualRow(std::int64_t row) const;
  void Describe();
  void DescribeSequence(std::int64_t sequence);
  void Embed();
  bool RunLayer(std::int64_t l, std::int64_t layers, const PositionEncoding& positions);
  void RecordResidual(std::int64_t l);
  void AllocateHeads(std::int64_t l);
  void AllocateHead(std::size_t h, std::vector<RecordedHead>* recorded);
  std::vector<HeadRows> RowsOf(std::int64_t l, const RowGroup& group) const;
  void Finish();
  void CheckFinite(const std::string& name, std::int64_t begin, std::int64_t end) const;
};

}
