#ifndef vtkAttentionHarmonics_h
#define vtkAttentionHarmonics_h

#include "vtkModelAlgorithm.h"

/**
 * @class vtkAttentionHarmonics
 * @brief The scores of the heads of an attention-only transformer as trigonometric polynomials.
 *
 * Input: the model. Output: a vtkTable with a row per harmonic of the isometric angles t1 and t2:
 * 1, cos t1, sin t1, cos t2, sin t2, cos 2t2, sin 2t2, cos(t1+t2), sin(t1+t2), cos(t1-t2),
 * sin(t1-t2), the only ones that a score has. Columns, h = 0 ... H-1:
 *
 * - Harmonic (string): its name
 * - Head h (double): its coefficient in score_h
 * - Amplitude h, Phase h (double): of the wave amplitude cos(x - phase) that the harmonic is the
 * cosine or the sine of, in both of their rows; phase in radians, in (-pi, pi]. 0 for the constant.
 *
 * The formulas are in Core's Harmonics.h; the coefficients are exact, of words with their
 * positions, and computed in double. In each column coef(cos 2t2) = -coef(cos(t1+t2)) and
 * coef(sin 2t2) = -coef(sin(t1+t2)).
 *
 * Field data: the model's dimensions, and FreeParameters (int), the number of parameters that a
 * score really has: 5 for heads of dimension 1, 8 for 2, 9 for 3 and more. On several ranks, rank 0
 * has the table.
 */
class ATTENTIONATLASTORUS_EXPORT vtkAttentionHarmonics : public vtkModelAlgorithm
{
public:
  static vtkAttentionHarmonics* New();
  vtkTypeMacro(vtkAttentionHarmonics, vtkModelAlgorithm);

protected:
  vtkAttentionHarmonics() = default;
  ~vtkAttentionHarmonics() override = default;

  int FillOutputPortInformation(int port, vtkInformation* info) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkAttentionHarmonics(const vtkAttentionHarmonics&) = delete;
  void operator=(const vtkAttentionHarmonics&) = delete;
};

#endif
