#pragma once

#include "Activations.h"
#include "Base/Progress.h"
#include "TransformerLayer.h"
#include "Weights/Transformer.h"

#include <functional>

namespace atlas
{

/// Runs layers on residual streams without recording anything.
class LayerRunner
{
public:
  /// For sequences of at most `length` tokens. The model must outlive this object.
  LayerRunner(const Transformer& model, std::int64_t length, int threads);

  /// Applies layer l to the residual stream x [rows, d_model] of these sequences, and shows the
  /// visitor the matrices inside. Reports after each group.
  void Run(std::int64_t l, const PackedSequences& sequences, float* x,
    const ActivationVisitor& visitor, const Progress& progress);

  /// An upper bound on the floats that Run allocates for groups of `rows` rows.
  static std::int64_t WorkingFloats(
    const TransformerConfig& config, std::int64_t rows, int threads);

private:
  const Transformer& Model;
  PositionEncoding Positions;
  LayerWorkspace Work;
  std::vector<float> Spare; ///< queries, keys and values of a group
  int Threads;

  std::vector<HeadRows> RowsOf(std::int64_t rows);
};

/// Called with each matrix of layer l of a run, as an ActivationVisitor is.
using LayerVisitor = std::function<void(
  std::int64_t l, ActivationPlace place, const RowGroup& group, const float* values)>;

/// Runs sequences of an input up to a matrix, and shows the visitor that and all before. Throws
/// ModelError if a residual stream is not finite.
void VisitActivations(const Transformer& model, const TransformerInput& input,
  const PackedSequences& sequences, const PlaceInLayer& last, int threads,
  const LayerVisitor& visitor, const Progress& progress);

/// An upper bound on the floats that VisitActivations allocates.
std::int64_t VisitFloats(
  const TransformerConfig& config, const PackedSequences& sequences, int threads);

/// Runs one sequence and returns the matrices at these places. Throws ModelError if a residual
/// stream is not finite.
Activations CaptureActivations(const Transformer& model, const TransformerInput& input,
  const std::set<PlaceInLayer>& places, int threads, const Progress& progress);

/// An upper bound on the floats that CaptureActivations allocates for one sequence, those of its
/// result included.
std::int64_t CaptureFloats(const TransformerConfig& config, std::int64_t length,
  const std::set<PlaceInLayer>& places, int threads);

}
