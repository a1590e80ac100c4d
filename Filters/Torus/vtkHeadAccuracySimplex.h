#pragma once

#include "vtkTorusAlgorithm.h"

/// The accuracy of mixtures of three heads of an attention-only transformer, on a triangle. Input:
/// the model, with next_token. First output: a vtkPolyData, an equilateral triangle of side 1 in
/// the plane z = 0, divided into equal triangles. A point with the barycentric weights c_0, c_1,
/// c_2 >= 0, c_0 + c_1 + c_2 = 1, represents the mixture
///
///     argmax W_U (residual + sum_i 3 c_i out_{h_i} + sum of out_h of the heads beyond the three)
///
/// The center is the whole model with that residual. In a model of three heads without residual,
/// each corner is one head alone. c_0 is 1 at (1, 0), c_1 at (1/2, sqrt(3)/2), c_2 at (0, 0). The
/// plot is from "Visualizing small Attention-only Transformers". Point arrays:
/// - Accuracy (float): the fraction of all token pairs that the mixture predicts correctly, 0 to 1
/// - Accuracy Target k (float): the same among the pairs with true next token k, for each k that
///   occurs
/// - Correct Pair (int), Predicted (int): whether the mixture predicts the pair of the property
///   Pair correctly, 1 or 0, and the class it predicts; only if a pair is chosen
/// - Barycentric (float, 3): c_0, c_1, c_2
///
/// Second output: a vtkPolyData, the corners as points c_0 = 1, c_1 = 1, c_2 = 1. Point arrays:
/// Head (int), the head that has weight 3 there; Token (string), its name "Head 0"; and Side (int),
/// where a label stands: 4 below, 5 above the point.
///
/// Field data: the model's dimensions. Computed in double precision and in parallel; on a tie the
/// lowest class is predicted. On several ranks, rank 0 has the triangle.
class ATTENTIONATLASTORUS_EXPORT vtkHeadAccuracySimplex : public vtkModelAlgorithm
{
public:
  static vtkHeadAccuracySimplex* New();

  enum Output
  {
    TRIANGLE = 0,
    CORNERS
  };

  vtkTypeMacro(vtkHeadAccuracySimplex, vtkModelAlgorithm);

  /// The heads at the corners: three different heads from 0 to H-1. Default: 0, 1, 2.
  vtkSetVector3Macro(HeadIndices, int);
  vtkGetVector3Macro(HeadIndices, int);

  /// Number of segments along each edge, at least 1. Default: 128.
  vtkSetMacro(Resolution, int);
  vtkGetMacro(Resolution, int);

  /// The residual to which the outputs of the heads are added, one of
  /// vtkTorusAlgorithm::ResidualType. Default: NONE.
  vtkSetClampMacro(
    Residual, int, vtkTorusAlgorithm::EMBEDDING_POSITION, vtkTorusAlgorithm::RAW_EMBEDDING);
  vtkGetMacro(Residual, int);

  /// The token pair (t1, t2) for the arrays Correct Pair and Predicted, each from 0 to N-1; -1, -1
  /// for none. Default: -1, -1.
  vtkSetVector2Macro(Pair, int);
  vtkGetVector2Macro(Pair, int);

protected:
  vtkHeadAccuracySimplex();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;

private:
  void CheckProperties(vtkIdType tokens) const;

  int HeadIndices[3] = { 0, 1, 2 };
  int Resolution = 128;
  int Residual = vtkTorusAlgorithm::NONE;
  int Pair[2] = { -1, -1 };
};
