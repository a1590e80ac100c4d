#pragma once

#include "AttentionAtlasCircuitsModule.h"
#include "RecordingRanges.h"

#include <vtkTaskAlgorithm.h>

#include <memory>

namespace atlas
{
struct LensCells;
struct Recording;
class Transformer;
}

/// What a model would predict before each of its layers. Input port 0: a recording with the
/// residual stream. Input port 1: the transformer that was recorded; a language model. The residual
/// stream before a layer is normalized and multiplied with the unembedding, as if the layers that
/// follow were not there (the logit lens; nostalgebraist 2020). Weights as stored. Formulas: Core's
/// LogitLens.h.
///
/// Output 0: a vtkImageData with a point per position (rightward) and layer (upward, 0 at the
/// bottom; the top row is after the last layer), of which the residual stream was recorded. The
/// spacing is 3 in x, room for a word, and 1 in y. Point arrays: Probability (float) of the token
/// with the largest logit, its Token (string), TokenId (int) and Logit (float); Next Rank (int: 1
/// if the token that follows in the text has the largest logit) and Next Probability (float), both
/// -1 at the last position; Layer, Position, Sequence (int) and Token Index. Field data: the labels
/// Key Token (the tokens of the text) and Query Token (the layers), Sequence (int) and Sequence
/// Text (string: how the text begins, if it is known). Columns are twice as wide as rows are high.
///
/// Output 1: a vtkTable with a row per cell and rank: Layer, Sequence, Position (int), Token Index
/// (id type; the pedigree id), Rank (int, from 1), Token (string), TokenId (int), Logit and
/// Probability (float).
///
/// Output 2: vtkPolyData, a point per cell at its left end, with Token, Layer, Position and Side,
/// for the representation Token Labels.
///
/// The size of the image depends on the recording and the model, so UpdateInformation updates both.
/// On several ranks the first one has the table and the labels.
class ATTENTIONATLASCIRCUITS_EXPORT vtkLogitLens : public vtkTaskAlgorithm
{
public:
  static vtkLogitLens* New();
  vtkTypeMacro(vtkLogitLens, vtkTaskAlgorithm);

  /// Sets the transformer of the recording.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The index of the sequence, from 0. Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// How many tokens of each cell the table has, at least 1. Default: 5.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// The first and last sequence of the input as of the last UpdateInformation; 0, 0 without input.
  int* GetSequenceRange() VTK_SIZEHINT(2) { return this->Ranges.sequence; }

protected:
  vtkLogitLens();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Memory;
  atlas::LensCells Read(const atlas::Recording& recording, const atlas::Transformer& model,
    const AttentionAtlas::Task& task) const;

  int Sequence = 0;
  int Top = 5;
  AttentionAtlas::RecordingRanges Ranges;
  std::shared_ptr<Memory> Kept;
};
