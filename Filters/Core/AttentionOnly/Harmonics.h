#pragma once

#include "AttentionEvaluation.h"

#include <array>
#include <cstddef>
#include <vector>

namespace atlas
{

/// The harmonics of a score. Every list of coefficients is in this order.
enum class Harmonic : std::size_t
{
  Constant,
  CosT1,
  SinT1,
  CosT2,
  SinT2,
  CosTwiceT2,
  SinTwiceT2,
  CosSum,        ///< cos(t1 + t2)
  SinSum,        ///< sin(t1 + t2)
  CosDifference, ///< cos(t1 - t2)
  SinDifference  ///< sin(t1 - t2)
};

inline constexpr std::size_t HarmonicCount = 11;

/// The names of the harmonics as shown to users.
inline constexpr std::array<const char*, HarmonicCount> HarmonicNames = { "1", "cos t1", "sin t1",
  "cos t2", "sin t2", "cos 2t2", "sin 2t2", "cos(t1+t2)", "sin(t1+t2)", "cos(t1-t2)",
  "sin(t1-t2)" };

/// The coefficients of a trigonometric polynomial in the isometric angles t1 and t2, in radians.
class HarmonicCoefficients : public std::array<double, HarmonicCount>
{
public:
  using std::array<double, HarmonicCount>::operator[];
  double& operator[](Harmonic harmonic) { return (*this)[static_cast<std::size_t>(harmonic)]; }
  double operator[](Harmonic harmonic) const { return (*this)[static_cast<std::size_t>(harmonic)]; }
};

/// Returns the score of a head as an exact trigonometric polynomial, in double precision
/// ("Visualizing small Attention-only Transformers" names it; the derivation is ours). With e_s =
/// sqrt(3) E c_s, E = [u v] (TorusAngles.h) and c_s = (cos t_s, sin t_s), the score is
///
///     x_2^T W (x_1 - x_2) = c_2^T M (c_1 - c_2) + b . (c_1 - c_2) + a . c_2 + k
///
/// where M = 3 E^T W E, b = sqrt(3) E^T W^T p_2, a = sqrt(3) E^T W (p_1 - p_2), k = p_2^T W (p_1 -
/// p_2) and W = W_Q^T W_K / sqrt(d_h). Products of sines and cosines then become sines and cosines
/// of sums of angles. Since M multiplies both c_1 and -c_2, coef(cos 2t2) = -coef(cos(t1+t2)) and
/// coef(sin 2t2) = -coef(sin(t1+t2)). Precondition: `head` is one of the model. Throws ModelError
/// if a coefficient leaves the range of double.
HarmonicCoefficients ScoreHarmonics(const AttentionOnlyModel& model, std::size_t head);

/// The number of free parameters of the score of a head of dimension d_h. The 3 x 3 matrix [M a; b
/// k] of ScoreHarmonics determines the 9 independent coefficients, and they determine it. Its rank
/// is at most d_h, and the matrices of rank at most r form a set of dimension r (6 - r): 5 for d_h
/// = 1, where the score is a product; 8 for d_h = 2, where the determinant is 0; 9 for d_h >= 3.
int FreeParameterCount(Eigen::Index headDimension);

/// A cosine with a phase: amplitude cos(x - phase).
struct Wave
{
  double amplitude = 0; ///< at least 0
  double phase = 0;     ///< in radians, in (-pi, pi]; 0 if the amplitude is 0
};

/// Returns the wave c cos x + s sin x whose cosine or sine term is `harmonic`; amplitude and phase
/// are 0 for the constant.
Wave WaveOf(const HarmonicCoefficients& coefficients, std::size_t harmonic);

/// Sets the coefficients of cos 2t2 and sin 2t2 from those of cos(t1+t2) and sin(t1+t2), to which
/// they are tied in every score.
void ApplyTies(HarmonicCoefficients& coefficients);

/// The score of a head of dimension 1: the query of token 2 times the difference of the keys,
///
///     score = (A cos(t2 - alpha) + B) (C [cos(t1 - gamma) - cos(t2 - gamma)] + D)
///
/// For a head, A and alpha are those of sqrt(3) W_Q e(t2), B = W_Q p_2, C and gamma those of
/// sqrt(3) W_K e(t), D = W_K (p_1 - p_2). These 6 numbers have 5 degrees of freedom: multiplying
/// (A, B) and dividing (C, D) by the same s leaves the score unchanged. The ties of ApplyTies hold
/// automatically, because the key C cos(t - gamma) is the same for both tokens.
struct ProductParameters
{
  double a = 3;
  double alpha = 0.5; ///< radians
  double b = 1;
  double c = 2;
  double gamma = -1; ///< radians
  double d = 0.5;
};

/// The coefficients of that product. Throws OptionError if a parameter is not finite.
HarmonicCoefficients ProductHarmonics(const ProductParameters& parameters);

/// Evaluates a trigonometric polynomial over the rows of a chart in single precision. In a row it
/// is constant + f cos t1 + g sin t1. All methods are const and may run concurrently; a value
/// depends only on its point, not on neighboring columns.
class HarmonicField
{
public:
  /// `theta1`: the angles of the columns, in radians. Throws OptionError if a coefficient is not
  /// finite or the coefficients are too large for single precision.
  HarmonicField(
    const HarmonicCoefficients& coefficients, Pattern pattern, const std::vector<double>& theta1);

  /// Evaluates the points (theta1[i], theta2), one per column: the score, and the attention, 0 to
  /// 1, that follows from it.
  void EvaluateRow(double theta2, float* score, float* attention) const;

  static constexpr std::size_t BlockSize = 64;
  using Lanes = Eigen::Array<float, BlockSize, 1>;

private:
  HarmonicCoefficients Coefficients;
  Pattern AttentionPattern;
  std::size_t ColumnCount;
  std::vector<Lanes, Eigen::aligned_allocator<Lanes>> Cos; ///< of theta_1 in blocks, padded
  std::vector<Lanes, Eigen::aligned_allocator<Lanes>> Sin;
};

}
