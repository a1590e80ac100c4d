#pragma once

#include "vtkTorusAlgorithm.h"

namespace atlas
{
class HarmonicCoefficients;
class HarmonicField;
}

/// An attention pattern on the torus that is computed from its harmonics instead of a model. Source
/// without input. Output: a vtkImageData, x = theta_1 (token 1), y = theta_2 (token 2), from -pi to
/// pi including both ends, as in vtkAttentionTorus. Point arrays:
/// - Score (float): the trigonometric polynomial
/// - Attention (float): the attention from token 2 to token 1 for that score, 0 to 1
///
/// Field data: Coefficients (double, 11 tuples), those of the image, in the order of
/// vtkScoreHarmonics; and Swept Value (double) while a parameter is swept.
///
/// While a parameter is swept, the source has SweepSteps time steps from 0 to 1. Over them the
/// parameter changes linearly from the first to the second value of SweepRange. Times between steps
/// are used as they are; times outside [0, 1] are clamped. The zero level set of Score is the
/// decision boundary of the hardmax.
///
/// Formulas: Core's Harmonics.h. Computed in single precision and in parallel; results are equal to
/// the byte for any number of threads and ranks. After an error the output is empty, and the next
/// update tries again.
class ATTENTIONATLASTORUS_EXPORT vtkHarmonicHead : public vtkTaskAlgorithm
{
public:
  static vtkHarmonicHead* New();
  vtkTypeMacro(vtkHarmonicHead, vtkTaskAlgorithm);

  enum ParametrizationType
  {
    COEFFICIENTS = 0,
    PRODUCT = 1
  };

  /// The parameters that can be swept: none; the coefficients in their order, starting at
  /// COEFFICIENT; the parameters A, Alpha, B, C, Gamma, D of the product, starting at PARAMETER.
  enum SweptParameterType
  {
    NOTHING = 0,
    COEFFICIENT = 1,
    PARAMETER = 12,
    LAST_PARAMETER = 17
  };

  /// Number of points along theta_1 and theta_2, each at least 2. Default: 512, 512.
  vtkSetVector2Macro(Resolution, int);
  vtkGetVector2Macro(Resolution, int);

  /// How Attention follows from the score, one of vtkTorusAlgorithm::PatternType. Default: SOFTMAX.
  vtkSetClampMacro(Pattern, int, vtkTorusAlgorithm::SOFTMAX, vtkTorusAlgorithm::HARDMAX);
  vtkGetMacro(Pattern, int);

  /// How the score is defined: COEFFICIENTS, a sum of harmonics; or PRODUCT, the score of a head of
  /// dimension 1. Default: COEFFICIENTS.
  vtkSetClampMacro(Parametrization, int, COEFFICIENTS, PRODUCT);
  vtkGetMacro(Parametrization, int);

  /// The coefficient of a harmonic, from 0 to 10, in the order of vtkScoreHarmonics. Any finite
  /// number. Default: 0.5, 2, 0, 0, -1, -1.5, 1, 1.5, -1, 3, 0.
  void SetCoefficient(int harmonic, double coefficient);
  double GetCoefficient(int harmonic) const;

  /// Whether the coefficients of cos 2t2 and sin 2t2 follow from those of cos(t1+t2) and
  /// sin(t1+t2), as in the score of any head. If on, the values set for them are ignored. Default:
  /// on.
  vtkSetMacro(Ties, vtkTypeBool);
  vtkGetMacro(Ties, vtkTypeBool);
  vtkBooleanMacro(Ties, vtkTypeBool);

  /// The parameters of PRODUCT: score = (A cos(t2 - Alpha) + B) (C [cos(t1 - Gamma) - cos(t2 -
  /// Gamma)] + D). Alpha and Gamma are in radians. Multiplying (A, B) and dividing (C, D) by the
  /// same number does not change the score. Default: 3, 0.5, 1, 2, -1, 0.5.
  vtkSetMacro(A, double);
  vtkGetMacro(A, double);
  vtkSetMacro(Alpha, double);
  vtkGetMacro(Alpha, double);
  vtkSetMacro(B, double);
  vtkGetMacro(B, double);
  vtkSetMacro(C, double);
  vtkGetMacro(C, double);
  vtkSetMacro(Gamma, double);
  vtkGetMacro(Gamma, double);
  vtkSetMacro(D, double);
  vtkGetMacro(D, double);

  /// The parameter that changes over time, see SweptParameterType. Default: NOTHING, no time steps.
  vtkSetClampMacro(SweptParameter, int, NOTHING, LAST_PARAMETER);
  vtkGetMacro(SweptParameter, int);

  /// The values of the swept parameter at the times 0 and 1, in the units of the parameter.
  /// Default: -pi, pi.
  vtkSetVector2Macro(SweepRange, double);
  vtkGetVector2Macro(SweepRange, double);

  /// Number of time steps of a sweep, at least 2. Default: 60.
  vtkSetClampMacro(SweepSteps, int, 2, 1000000);
  vtkGetMacro(SweepSteps, int);

protected:
  vtkHarmonicHead();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  bool IsSwept() const { return this->SweptParameter != NOTHING; }
  double SweptValueAt(double time) const;
  void CheckSweep() const;
  atlas::HarmonicCoefficients CoefficientsAt(double time) const;
  void Evaluate(const atlas::HarmonicField& field, const AttentionAtlas::Task& task) const;

  int Resolution[2] = { 512, 512 };
  int Pattern = vtkTorusAlgorithm::SOFTMAX;
  int Parametrization = COEFFICIENTS;
  double Coefficients[11] = { 0.5, 2, 0, 0, -1, -1.5, 1, 1.5, -1, 3, 0 };
  vtkTypeBool Ties = 1;
  double A = 3;
  double Alpha = 0.5;
  double B = 1;
  double C = 2;
  double Gamma = -1;
  double D = 0.5;
  int SweptParameter = NOTHING;
  double SweepRange[2] = { -3.141592653589793, 3.141592653589793 };
  int SweepSteps = 60;
};
