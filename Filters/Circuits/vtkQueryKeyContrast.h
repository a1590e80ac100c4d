#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkRecordingAlgorithm.h>

#include <string>

class vtkMultiBlockDataSet;

namespace atlas
{
struct QueryKeyContrast;
struct QueryKeyContrastOptions;
struct Recording;
}

/// The directions of queries and keys that distinguish one set of pairs from all others. Input: a
/// recording with queries and keys. For each head
///
///     D = mean of q_i k_j^T over the pairs in the set - mean of q_i k_j^T over all other pairs,
///
/// over pairs of a query i and a key j of the same sequence (of causal models j <= i; of cross
/// attention i of the target and j of the source), and its singular value decomposition D = U S
/// V^T: the difference of two uncentered cross-covariances. Queries along a left singular vector
/// and keys along the right one have larger scores in the set. Queries and keys are those recorded,
/// after any rotation. Formula: Core's QueryKeyContrast.h.
///
/// Output port 0: a vtkPolyData with a vertex per query and key of each head, head by head: the
/// queries projected on the first three left singular vectors, the keys on the first three right
/// ones. Point arrays: Projection (float [3]) and those of vtkHeadEmbedding (Kind, Token Index,
/// Layer, Head, Sequence, Position, Norm, Token, TokenId, TokenColor, ...). Coordinates: each head
/// has a cube of side 1, layers downward, heads rightward, with 0 in its center and one scale for
/// all axes; queries are divided and keys multiplied by the square root of the ratio of their root
/// mean squares, which changes no product. One head alone is at the origin.
///
/// Output port 1: a vtkTable with a row per head and singular value: Layer, Head, Index (int),
/// Singular Value, Share (of the sum of squares), Score Difference (double, of the head: the mean
/// score in the set minus that of the others, without ALiBi).
///
/// Output port 2: titles of layers and heads, as of vtkHeadEmbedding.
///
/// Field data of all: By (string), Pairs, Other Pairs (double, their numbers), Left Out (string).
/// On several ranks the first one has all. Canceling leaves all empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkQueryKeyContrast : public vtkRecordingAlgorithm
{
public:
  static vtkQueryKeyContrast* New();
  vtkTypeMacro(vtkQueryKeyContrast, vtkRecordingAlgorithm);

  enum ByType
  {
    SAME_TOKEN = 0,
    PREVIOUS_TOKEN = 1,
    COLUMN = 2
  };

  /// The set of pairs. SAME_TOKEN: query and key are the same token of the vocabulary.
  /// PREVIOUS_TOKEN: the key is Distance tokens before the query; not of cross attention. COLUMN:
  /// both have the same value in the column Column of the recording's tokens. Default: SAME_TOKEN.
  vtkSetClampMacro(By, int, SAME_TOKEN, COLUMN);
  vtkGetMacro(By, int);

  /// For PREVIOUS_TOKEN: how many tokens before the query the key is, at least 1; without a causal
  /// mask also behind it. Default: 1.
  vtkSetClampMacro(Distance, int, 1, VTK_INT_MAX);
  vtkGetMacro(Distance, int);

  /// For COLUMN: the name of a column of numbers or texts. Default: "Segment".
  vtkSetStdStringFromCharMacro(Column);
  vtkGetCharFromStdStringMacro(Column);

  /// Whether the query and the key of one and the same token are a pair. Default: off.
  vtkSetMacro(IncludeSelf, bool);
  vtkGetMacro(IncludeSelf, bool);
  vtkBooleanMacro(IncludeSelf, bool);

  /// The index of the layer in the model, from 0; -1 for all that are recorded. Default: -1.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0; -1 for all. Default: -1.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// The index of the sequence or image, from 0; -1 for all. Default: -1.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// -1 for all, and the last sequence, layer or head of the input; -1, 0 without input.
  vtkGetVector2Macro(SequenceRange, int);
  vtkGetVector2Macro(LayerRange, int);
  vtkGetVector2Macro(HeadRange, int);

protected:
  vtkQueryKeyContrast();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  atlas::QueryKeyContrastOptions OptionsOf(const atlas::Recording& recording,
    vtkMultiBlockDataSet* input, const AttentionAtlas::Task& task);
  void MakeOutputs(const atlas::Recording& recording, const atlas::QueryKeyContrast& contrast,
    vtkInformationVector* outputVector) const;

  int By = SAME_TOKEN;
  int Distance = 1;
  std::string Column = "Segment";
  bool IncludeSelf = false;
  int Layer = -1;
  int Head = -1;
  int Sequence = -1;
  int SequenceRange[2] = { -1, 0 };
  int LayerRange[2] = { -1, 0 };
  int HeadRange[2] = { -1, 0 };
};
