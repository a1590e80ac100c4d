#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkTaskAlgorithm.h>

/// How much each head changes the residual stream, and in which direction. Input port 0: a
/// recording with head outputs and residual. Input port 1 (optional): the transformer that was
/// recorded, for the output bias of its layers. With x the residual stream before a layer and u_h =
/// z_h W_O^h the output of a head (Claus, "Attention Focus Plots"):
///
/// Output 0: a vtkTable with a row per head and token: Layer, Head, Sequence, Position (int), Token
/// Index (id type: the row of the token in the recording; also the pedigree id), Token (string),
/// Magnitude |u| / |x|, Orientation u . x / (|u| |x|), from -1 to 1, and Context Magnitude |z| /
/// |x| (float; absent if the recording has no values, or no queries and keys). 0 where a vector is
/// 0.
///
/// Output 1: a vtkTable with histograms of 50 equal bins per head: Layer, Head, Bin (int),
/// Magnitude Low, Magnitude High (double: from 0 to the largest magnitude in the layer), Magnitude
/// Count (int), Orientation Low, Orientation High (double: from -1 to 1), Orientation Count (int).
/// A bin holds its lower end; the last one also its upper end.
///
/// Output 2: a vtkTable with means over the heads and sequences that have a position: Layer,
/// Position (int), Magnitude, Orientation (double), Tokens (int: how many).
///
/// Output 3: a vtkTable with what all heads of a layer add together, u = sum_h u_h + b_O: Layer,
/// Head (int, -1), Sequence, Position, Token Index, Token, Magnitude and Orientation (float). Empty
/// without the transformer.
///
/// On several ranks the heads are shared among them; the first one has the tables.
class ATTENTIONATLASANALYSIS_EXPORT vtkHeadUpdates : public vtkTaskAlgorithm
{
public:
  static vtkHeadUpdates* New();
  vtkTypeMacro(vtkHeadUpdates, vtkTaskAlgorithm);

  /// Bins of each histogram.
  static constexpr int Bins = 50;

  /// Sets the transformer of the recording. Default: none.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

protected:
  vtkHeadUpdates();

  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Work;
};
