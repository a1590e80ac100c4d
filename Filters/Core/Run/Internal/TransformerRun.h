#pragma once

#include "CrossPart.h"
#include "LayerRunner.h"
#include "PackedSequences.h"
#include "PictureProjector.h"
#include "PositionEncoding.h"
#include "Run/RecordOptions.h"
#include "TransformerLayer.h"

#include <map>
#include <set>

namespace atlas
{

/// The layers and residuals that are recorded.
class RecordSelection
{
public:
  /// `least`: the number of layers that run in any case. Layers that the configuration does not
  /// have are ignored: they may be those of the decoder alone.
  RecordSelection(
    const TransformerConfig& config, const RecordOptions& options, std::int64_t least = 0);

  bool HasLayer(std::int64_t layer) const
  {
    return layer >= 0 && ToIndex(layer) < this->Layers.size() && this->Layers[layer];
  }

  /// Whether the residual before layer l (after all layers: l = L) is recorded.
  bool HasResidual(std::int64_t l) const
  {
    return this->Residual && (this->HasLayer(l) || this->HasLayer(l - 1));
  }

  /// The number of layers that must run for them.
  std::int64_t LayersToRun() const;

private:
  std::vector<bool> Layers;
  bool Residual;
  std::int64_t Least;
};

/// One run of a transformer on an input that passes CheckInput. It applies the layers to the
/// residual stream one by one and keeps the requested quantities. If there is an encoder, it runs
/// first. All arguments must outlive this object.
class TransformerRun
{
public:
  /// Throws OptionError if the range of sequences exceeds the input.
  TransformerRun(
    const Transformer& model, const TransformerInput& input, const RecordOptions& options);

  ~TransformerRun();

  /// Estimates the memory that Run needs.
  MemoryEstimate EstimateMemory() const;

  /// As RecordTransformer. Must be called only once.
  Recording Run();

  /// What the encoder returns for the sources of some sequences: [their tokens, d_model]; or what
  /// the projectors make of their pictures: [their image tokens, d_model].
  static EncodedSource Encode(const Transformer& model, const TransformerInput& input,
    const SequenceRange& sequences, int threads);

private:
  const Transformer& Model;
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  const TransformerInput& Input;
  const RecordOptions& Options;
  RecordSelection Selected;
  PackedSequences Sequences;
  std::set<PlaceInLayer> SourceNeeds; ///< of the other input of interventions
  Activations Source;
  double SourceShare = 0; ///< of the work, for the progress
  Recording Record;
  SharedMatrix Residual;                ///< x, [rows to run, d_model]
  std::vector<SharedMatrix> Read;       ///< of an encoder: what the decoder or projectors read
  std::vector<std::int64_t> ReadLayers; ///< the numbers of layers before each
  std::vector<RotaryPlace> Places;      ///< of the rows of all sequences; empty: by position alone
  LayerWorkspace Work;
  std::vector<RecordedHead> Spare; ///< [rows of a group, ...], for quantities of a layer that are
                                   ///< not recorded
  std::map<std::int64_t, std::vector<RecordedHead>> Kept; ///< keys and values of layers that others
                                                          ///< share, [rows, ...]
  RunSides Sides;
  std::string Name; ///< in messages: "encoder, ", or empty

  /// The encoder and what is computed from it, if there is one.
  struct EncoderPart;
  std::unique_ptr<EncoderPart> Encoder;
  double EncoderShare = 0; ///< of the work, for the progress

  TransformerRun(const Transformer& model, const TransformerConfig& config,
    const TransformerWeights& weights, const TransformerInput& input, const RecordOptions& options,
    PackedSequences sequences, const std::vector<std::int64_t>& readLayers);
  CrossPart* Cross() const;
  /// Whether layer l is part of the recording, which has only those with attention.
  bool Records(std::int64_t l) const
  {
    return this->Selected.HasLayer(l) && this->Config.HasAttention(l);
  }
  void RunEncoder();
  void RunSource();
  void Change(ActivationPlace place, std::int64_t l, const RowGroup& group, float* values) const;
  void ChangeResidual(std::int64_t l);
  ActivationVisitor VisitorOf(std::int64_t l) const;
  /// The residual stream at a row of the recording.
  float* ResidualRow(std::int64_t row) const
  {
    return this->Residual.Row(row - this->Sequences.FirstRow());
  }
  void Describe();
  void DescribeSequence(std::int64_t sequence);
  void Embed();
  template<class Visitor>
  void VisitPictures(const SharedMatrix& features, const Visitor& visit) const;
  void RunLayer(std::int64_t l, const PositionEncoding& positions, const Progress& progress);
  void RecordBiases(
    std::int64_t l, const TransformerLayer& layer, const PositionEncoding& positions);
  void RecordResidual(std::int64_t l);
  void AllocateHeads(std::int64_t l);
  void AllocateHead(std::int64_t l, std::size_t h, std::vector<RecordedHead>* recorded);
  bool SharesKeys(std::int64_t l) const;
  std::vector<HeadRows> RowsOf(std::int64_t l, const RowGroup& group) const;
  void AllocateRouting(std::int64_t l);
  RoutingRows RoutingOf(std::int64_t l, const RowGroup& group) const;
  void Finish();
  void CheckFinite(const std::string& name, std::int64_t begin, std::int64_t end) const;
};

}
