#pragma once

#include "vtkTorusAlgorithm.h"

/// The pairs of tokens of an attention-only transformer as points of the torus. Input: the model.
/// Output: a vtkPolyData with one vertex per pair (t1, t2), in the order t1 N + t2, at (theta(t1),
/// theta(t2), 0), where theta(t) is the angle in (-pi, pi] of e(t) = LN(word_embedding[t]). Point
/// arrays:
/// - First, Second (int): t1 and t2
/// - Target (int): the true next token, -1 if the model has no targets
/// - Predicted (int): argmax of the logits, the lowest index on a tie
/// - Correct (int): 1 if Predicted is Target, 0 if not, -1 if there is no target
/// - Probability (float): softmax(logits) of Predicted
/// - Output (float, 3): r
/// - TargetColor (unsigned char, 3): the class color of Target, gray if there is none
///
/// Field data: the model's dimensions, and Accuracy (double), the fraction of correct pairs, if
/// there are targets. Computed in double precision. On several ranks, rank 0 has all pairs.
class ATTENTIONATLASTORUS_EXPORT vtkTokenPairs : public vtkTorusAlgorithm
{
public:
  static vtkTokenPairs* New();
  vtkTypeMacro(vtkTokenPairs, vtkTorusAlgorithm);

protected:
  vtkTokenPairs();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;
};
