#pragma once

#include "vtkModelAlgorithm.h"

/// The scores of the heads of an attention-only transformer as trigonometric polynomials. Input:
/// the model. Output: a vtkTable with one row per harmonic of the isometric angles t1 and t2: 1,
/// cos t1, sin t1, cos t2, sin t2, cos 2t2, sin 2t2, cos(t1+t2), sin(t1+t2), cos(t1-t2),
/// sin(t1-t2). A score has no other harmonics. Columns, h = 0 ... H-1:
/// - Harmonic (string): its name
/// - Head h (double): its coefficient in score_h
/// - Amplitude h, Phase h (double): of the wave amplitude cos(x - phase) that the cosine and sine
///   of the same argument form, in both of their rows; phase in radians, in (-pi, pi]. 0 for the
///   constant.
///
/// The coefficients are exact, include the position embeddings, and are computed in double
/// precision; Core's Harmonics.h has the formulas. That scores have these 11 harmonics is from
/// "Visualizing small Attention-only Transformers". In each column coef(cos 2t2) =
/// -coef(cos(t1+t2)) and coef(sin 2t2) = -coef(sin(t1+t2)).
///
/// Field data: the model's dimensions, and FreeParameters (int), the number of free parameters of a
/// score: 5 for heads of dimension 1, 8 for 2, 9 for 3 and more. On several ranks, rank 0 has the
/// table.
class ATTENTIONATLASTORUS_EXPORT vtkScoreHarmonics : public vtkModelAlgorithm
{
public:
  static vtkScoreHarmonics* New();
  vtkTypeMacro(vtkScoreHarmonics, vtkModelAlgorithm);

protected:
  vtkScoreHarmonics();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;
};
