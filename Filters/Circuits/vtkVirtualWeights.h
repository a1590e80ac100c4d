#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <memory>

namespace atlas
{
struct TransformerConfig;
}

/// The product of two heads: the weights through which one reads what the other writes. Input: a
/// transformer. For the heads 1 (FromLayer, FromHead) and 2 (ToLayer, ToHead) of a later layer, by
/// Kind and Space:
///
/// | | HEADS | HEAD_TO_STREAM | STREAMS | |---|---|---|---| | Q | W_O1 W_Q2 | W_O1 W_Q2 W_K2^T |
/// W_V1 W_O1 W_Q2 W_K2^T | | K | W_O1 W_K2 | W_O1 W_K2 W_Q2^T | W_V1 W_O1 W_K2 W_Q2^T | | V | W_O1
/// W_V2 | W_O1 W_V2 W_O2 | W_V1 W_O1 W_V2 W_O2 |
///
/// The last of these is the OV circuit of the virtual head (Elhage et al. 2021). Formulas: Core's
/// VirtualWeights.h.
///
/// Output port 0: a vtkImageData with a point per entry of the matrix, x = column, y = -row, with
/// the arrays Virtual Weights (double), Row and Column (int). Output port 1: a vtkTable with a row
/// per singular value: Index (int, from 0), Singular Value, Share (of the sum of squares; double).
/// Output port 2: titles of rows and columns, a vtkPolyData to be shown as Token Labels, for other
/// representations than Squares, which shows those in the field data of the image: Query Token and
/// Key Token, the numbers of rows and columns, and Query Title and Key Title (string).
///
/// Field data: Kind, Head Name ("0.3 to 2.5"), Processing, Left Out (string), Score (double, of
/// composition, see vtkHeadComposition). On several ranks the first one has table and titles, and
/// each its part of the image.
class ATTENTIONATLASCIRCUITS_EXPORT vtkVirtualWeights : public vtkTaskAlgorithm
{
public:
  static vtkVirtualWeights* New();
  vtkTypeMacro(vtkVirtualWeights, vtkTaskAlgorithm);

  enum KindType
  {
    Q = 0,
    K = 1,
    V = 2
  };
  enum SpaceType
  {
    HEADS = 0,
    HEAD_TO_STREAM = 1,
    STREAMS = 2
  };

  /// What of the later head reads: queries, keys or values. Default: K.
  vtkSetClampMacro(Kind, int, Q, V);
  vtkGetMacro(Kind, int);

  /// HEADS: from the components of the first head to those of the second, [d_head, d_head].
  /// HEAD_TO_STREAM: to the residual stream as the second head uses it, [d_head, d_model]. STREAMS:
  /// from the residual stream, [d_model, d_model]. Default: HEADS.
  vtkSetClampMacro(Space, int, HEADS, STREAMS);
  vtkGetMacro(Space, int);

  /// The layer and the head that write, from 0. Default: 0 and 0.
  vtkSetMacro(FromLayer, int);
  vtkGetMacro(FromLayer, int);
  vtkSetMacro(FromHead, int);
  vtkGetMacro(FromHead, int);

  /// The layer and the head that read, from 0. The layer must be after FromLayer. Default: 1 and 0.
  vtkSetMacro(ToLayer, int);
  vtkGetMacro(ToLayer, int);
  vtkSetMacro(ToHead, int);
  vtkGetMacro(ToHead, int);

  /// Whether weights are processed as TransformerLens does. Default: on.
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);
  vtkBooleanMacro(Processing, bool);

  /// 0, and the last layer or head of the input.
  vtkGetVector2Macro(LayerRange, int);
  vtkGetVector2Macro(HeadRange, int);

  /// 1, and the last layer of the input; 1, 1 without one.
  vtkGetVector2Macro(ToLayerRange, int);

protected:
  vtkVirtualWeights();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Memory;
  std::vector<std::string> LeftOut(const atlas::TransformerConfig& config) const;

  int Kind = K;
  int Space = HEADS;
  int FromLayer = 0;
  int FromHead = 0;
  int ToLayer = 1;
  int ToHead = 0;
  bool Processing = true;
  int LayerRange[2] = { 0, 0 };
  int HeadRange[2] = { 0, 0 };
  int ToLayerRange[2] = { 1, 1 };
  std::shared_ptr<Memory> Kept;
};
