#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkHeadAlgorithm.h>

#include <memory>

/// Why a head attends: a score as the sum over pairs of components. Input port 0: a recording with
/// queries and keys of the layer, and with the residual stream and head outputs of the layers
/// before it. Input port 1: the transformer that was recorded. The residual streams at the query
/// and at the key are sums over components: embedding, position, and heads, biases and MLPs of the
/// layers before. With the scales of the normalization as they are, the score of the head before
/// the softmax is the sum over all pairs of a component at the query and one at the key, with the
/// biases b_Q and b_K and ALiBi as components of their own. Rotary models too. Formulas: Core's
/// ScoreAttribution.h.
///
/// Output 0: a vtkImageData with a point per component at the query (downward) and at the key
/// (rightward), and the point arrays ScoreContribution (double), Query Component, Key Component
/// (string), Query Layer, Query Head, Key Layer and Key Head (int; -1 where there is none). Many
/// components are joined, see Grouping. Field data: the labels Query Token and Key Token (the
/// components).
///
/// Output 1: a vtkTable with the pairs of largest magnitude: Rank (int, from 1) and the same
/// arrays.
///
/// Field data of both: Score, Sum and Miss (double: the score as recorded, the sum of all
/// contributions, and their difference), Sequence, Layer, Head, Query and Key (int, positions),
/// Sequence Text (how the text begins, if it is known), Query Text, Key Text and Processing
/// (string).
///
/// The size of the image depends on the recording and the model, so UpdateInformation updates both.
/// On several ranks the first one has the table.
class ATTENTIONATLASCIRCUITS_EXPORT vtkScoreAttribution : public vtkHeadAlgorithm
{
public:
  static vtkScoreAttribution* New();
  vtkTypeMacro(vtkScoreAttribution, vtkHeadAlgorithm);

  enum GroupingType
  {
    AUTOMATIC = 0,
    HEADS = 1,
    LAYERS = 2
  };

  enum ProcessingType
  {
    NONE = 0,
    TRANSFORMER_LENS = 1
  };

  /// Sets the transformer of the recording.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The position of the query, from 0; -1: the last. Default: -1.
  vtkSetMacro(Query, int);
  vtkGetMacro(Query, int);

  /// The position of the key, from 0; -1: the one with the largest score. Default: -1.
  vtkSetMacro(Key, int);
  vtkGetMacro(Key, int);

  /// What rows and columns are. HEADS: the components. LAYERS: the heads and the bias of a layer
  /// together. AUTOMATIC: HEADS for up to 40 rows, otherwise LAYERS. Default: AUTOMATIC.
  vtkSetClampMacro(Grouping, int, AUTOMATIC, LAYERS);
  vtkGetMacro(Grouping, int);

  /// How many pairs the table has, at least 1. Default: 20.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

  /// Whether biases of values belong to the heads, as in the weights that are stored, or to the
  /// bias of their layer, as in those that TransformerLens processes. Default: TRANSFORMER_LENS.
  vtkSetClampMacro(Processing, int, NONE, TRANSFORMER_LENS);
  vtkGetMacro(Processing, int);

  /// -1 and the last position of the sequence, as of the last UpdateInformation; 0, 0 without
  /// input.
  vtkGetVector2Macro(PositionRange, int);

protected:
  vtkScoreAttribution();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Memory;

  int Query = -1;
  int Key = -1;
  int Grouping = AUTOMATIC;
  int Top = 20;
  int Processing = TRANSFORMER_LENS;
  int PositionRange[2] = { 0, 0 };
  std::shared_ptr<Memory> Kept;
};
