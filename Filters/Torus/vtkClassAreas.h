#pragma once

#include "vtkTorusAlgorithm.h"

/// Measures the fraction of the torus on which each class is predicted, in charts of any size.
/// Input port 0: the model. Output: a vtkTable with one row per class:
/// - Class (int), 0 to N - 1
/// - Area (double): the fraction of the torus where it is predicted, 0 to 1
/// - Probability (double): its mean probability there; 0 if it is never predicted
/// - Predicted Pairs (int): the number of token pairs for which it is predicted
/// - Target Pairs, Correct Pairs (int): the number of pairs whose true next token it is, and of
///   those for which it is predicted; only if the model has targets
///
/// Field data: the model's dimensions; Accuracy (double), only if the model has targets.
///
/// Areas are fractions of the points of a chart, which are evaluated row by row and not kept, so
/// memory use does not grow with their number. The error of an area is about the length of its
/// boundary times the distance between points. On several ranks, rank 0 has the table.
class ATTENTIONATLASTORUS_EXPORT vtkClassAreas : public vtkTorusAlgorithm
{
public:
  static vtkClassAreas* New();
  vtkTypeMacro(vtkClassAreas, vtkTorusAlgorithm);

  /// The number of points along theta_1 and theta_2, each at least 1, with a product of at most
  /// 2^33. Default: 1024 1024.
  vtkSetVector2Macro(Resolution, int);
  vtkGetVector2Macro(Resolution, int);

protected:
  vtkClassAreas();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;

private:
  int Resolution[2] = { 1024, 1024 };
};
