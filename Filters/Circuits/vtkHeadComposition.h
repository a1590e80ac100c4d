#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <memory>

/// Which heads read what heads of earlier layers write, as a graph. Input: a transformer. The score
/// of a head and one of a later layer is |W_OV1 W| / (|W_OV1| |W|) with Frobenius norms, W = W_QK,
/// W_QK^T or W_OV of the later head by Kind, from 0 to 1; by chance it is 1 / sqrt(d_model), the
/// baseline (Elhage et al. 2021). Formulas: Core's HeadComposition.h.
///
/// Output port 0: a vtkPolyData, the graph: a point per head at (head, layer, 0), with the point
/// arrays Layer, Head (int) and Head Name (string, "2.5" for head 5 of layer 2); and a line from
/// the earlier head to the later one for the Top strongest pairs whose score is at least Threshold,
/// by rising score, with the cell arrays From Layer, From Head, To Layer, To Head (int), Layer and
/// Head (those of the later head), Score and Corrected (double; without the baseline), Head Name
/// (string, "0.3 to 2.5"), Opacity (float, 0.15 for the weakest line to 1 for the strongest) and
/// CompositionColor (unsigned char [4], the color of Kind with that opacity). Field data: Kind
/// (string), Baseline (double), Lines Left Out (int, pairs of at least Threshold beyond Top),
/// Listed (string, such as "60 of 64 pairs", if some are left out), CompositionColor Legend
/// (string).
///
/// Output port 1: a vtkTable with a row per pair of heads of different layers: From Layer, From
/// Head, To Layer, To Head (int), Score, Corrected (double).
///
/// Output port 2: a vtkPolyData with a vertex per head at its point, with Layer, Head (int), Head
/// Name and Token (string, the same, to be shown as Token Labels).
///
/// Field data of all: Processing, Left Out (string). On several ranks the first one has all. A
/// change of Corrected, Threshold or Top computes nothing again. Canceling leaves all empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkHeadComposition : public vtkTaskAlgorithm
{
public:
  static vtkHeadComposition* New();
  vtkTypeMacro(vtkHeadComposition, vtkTaskAlgorithm);

  enum KindType
  {
    Q = 0,
    K = 1,
    V = 2
  };

  /// What of the later head reads: queries, keys or values. Default: K, as in induction heads.
  vtkSetClampMacro(Kind, int, Q, V);
  vtkGetMacro(Kind, int);

  /// Whether Threshold is of the score without the baseline. Default: on.
  vtkSetMacro(Corrected, bool);
  vtkGetMacro(Corrected, bool);
  vtkBooleanMacro(Corrected, bool);

  /// The least score of a line, from -1 to 1. Default: 0.
  vtkSetMacro(Threshold, double);
  vtkGetMacro(Threshold, double);

  /// The largest number of lines, those of the largest scores; 0 for all. Default: 60.
  vtkSetClampMacro(Top, int, 0, VTK_INT_MAX);
  vtkGetMacro(Top, int);

  /// Whether weights are processed as TransformerLens does. Default: on.
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);
  vtkBooleanMacro(Processing, bool);

protected:
  vtkHeadComposition();

  void Execute(AttentionAtlas::Task& task) override;

private:
  int Kind = K;
  bool Corrected = true;
  double Threshold = 0;
  int Top = 60;
  bool Processing = true;

  struct Memory;
  std::shared_ptr<Memory> Kept;
};
