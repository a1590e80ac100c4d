#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

/// Eigenvalues and singular values of the circuits of heads. Input: a transformer. The circuit of
/// each head is W_V W_O (OV) or W_Q W_K^T (QK), [d_model, d_model] of rank d_head; with Full over
/// the vocabulary, E W_V W_O U or E W_Q W_K^T E^T (Elhage et al. 2021). Formulas: Core's
/// HeadSpectra.h.
///
/// Output port 0: a vtkTable with a row per head. Columns: Layer, Head (int); Copying (double): sum
/// Re lambda / sum |lambda|, from -1 to 1; Eigenvalue k (double, real and imaginary part), k = 0
/// ... d_head - 1, by falling modulus rounded to 12 decimals, then by falling imaginary part;
/// Singular Value k (double), falling. Copying of OV circuits is near 1 if a token raises itself
/// among the logits; of QK circuits it says how much tokens attend to tokens of the same direction.
///
/// Output port 1: a vtkPolyData with a square of side 0.96 per head at x = head, y = -row of the
/// layer, with the cell arrays Layer, Head (int) and Copying Score (double), the same as Copying.
///
/// Output port 2: a vtkPolyData with a vertex per eigenvalue, in the complex plane of its head:
/// within that square, 0 at its center, the real axis rightwards, the largest modulus of the head
/// at a distance of 0.44 from the center. Point arrays: Layer, Head, Index (int, k), Real,
/// Imaginary, Modulus (double).
///
/// Output port 3: titles of layers and heads, a vtkPolyData to be shown as Token Labels.
///
/// Field data of all: Processing, Left Out (string). On several ranks the first one has all.
/// Canceling leaves all empty.
class ATTENTIONATLASCIRCUITS_EXPORT vtkHeadSpectra : public vtkTaskAlgorithm
{
public:
  static vtkHeadSpectra* New();
  vtkTypeMacro(vtkHeadSpectra, vtkTaskAlgorithm);

  enum CircuitType
  {
    OV = 0,
    QK = 1
  };

  /// OV: what a head writes when it attends to a token. QK: which tokens it attends to. Default:
  /// OV.
  vtkSetClampMacro(Circuit, int, OV, QK);
  vtkGetMacro(Circuit, int);

  /// Off: the circuit between residual streams. On: between the tokens of the vocabulary. Default:
  /// off.
  vtkSetMacro(Full, bool);
  vtkGetMacro(Full, bool);
  vtkBooleanMacro(Full, bool);

  /// The index of the layer, from 0; -1 for all. Default: -1.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0; -1 for all. Default: -1.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// Whether weights are processed as TransformerLens does. Default: on.
  vtkSetMacro(Processing, bool);
  vtkGetMacro(Processing, bool);
  vtkBooleanMacro(Processing, bool);

  /// -1 for all, and the last layer or head of the input; -1, 0 without input.
  vtkGetVector2Macro(LayerRange, int);
  vtkGetVector2Macro(HeadRange, int);

protected:
  vtkHeadSpectra();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  int Circuit = OV;
  bool Full = false;
  int Layer = -1;
  int Head = -1;
  bool Processing = true;
  int LayerRange[2] = { -1, 0 };
  int HeadRange[2] = { -1, 0 };
};
