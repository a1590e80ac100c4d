#pragma once

#include "AttentionEvaluation.h"

#include <array>
#include <cstddef>
#include <vector>

namespace atlas
{

/// The harmonics of a score, in the order of every list of coefficients.
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

/// Their names, as users see them.
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

/// The score of a head as a trigonometric polynomial, exactly, in double. With e_s = sqrt(3) E c_s,
/// E = [u v] (TorusAngles.h) and c_s = (cos t_s, sin t_s), the score
///
///     x_2^T W (x_1 - x_2) = c_2^T M (c_1 - c_2) + b . (c_1 - c_2) + a . c_2 + k
///
/// where M = 3 E^T W E, b = sqrt(3) E^T W^T p_2, a = sqrt(3) E^T W (p_1 - p_2), k = p_2^T W (p_1 -
/// p_2) and W = W_Q^T W_K / sqrt(d_h); products of sines and cosines then turn into those of sums
/// of angles. As M meets c_1 and -c_2 alike, coef(cos 2t2) = -coef(cos(t1+t2)) and coef(sin 2t2) =
/// -coef(sin(t1+t2)). Precondition: `head` is one of the
/// model. Throws ModelError if a coefficient leaves the range of double.
HarmonicCoefficients ScoreHarmonics(const AttentionOnlyModel& model, std::size_t head);

/// The number of parameters that a score of a head of dimension d_h really has. The 3 x 3 matrix
/// [M a; b k] of ScoreHarmonics gives the 9 coefficients that the two ties leave, and the other way
/// round. Its rank is at most d_h, and the matrices of rank at most r make up r (6 - r) dimensions:
/// 5 for d_h = 1, where the score is a product; 8 for d_h = 2, where the determinant is 0; 9 from
/// d_h = 3 on.
int FreeParameterCount(Eigen::Index headDimension);

/// A cosine with its phase: amplitude cos(x - phase).
struct Wave
{
  double amplitude = 0; ///< at least 0
  double phase = 0;     ///< radians, in (-pi, pi]; 0 if the amplitude is
};

/// The wave c cos x + s sin x that `harmonic` is the cosine or the sine of; none, 0 and 0, for the
/// constant.
Wave WaveOf(const HarmonicCoefficients& coefficients, std::size_t harmonic);

/// Makes cos 2t2 and sin 2t2 follow from cos(t1+t2) and sin(t1+t2), as in every score.
void ApplyTies(HarmonicCoefficients& coefficients);

/// The score of a head of dimension 1: the product of what token 2 asks for and what the tokens
/// differ in,
///
///     score = (A cos(t2 - alpha) + B) (C [cos(t1 - gamma) - cos(t2 - gamma)] + D)
///
/// For a head, A and alpha are those of sqrt(3) W_Q e(t2), B = W_Q p_2, C and gamma those of
/// sqrt(3) W_K e(t), D = W_K (p_1 - p_2). These are 6 numbers for 5 free parameters: (A, B) times s
/// and (C, D) divided by s is the same score. The ties hold by themselves, as the same key C
/// cos(t - gamma) is of both tokens.
struct ProductParameters
{
  double a = 3;
  double alpha = 0.5; ///< radians
  double b = 1;
  double c = 2;
  double gamma = -1; ///< radians
  double d = 0.5;
};

/// Throws OptionError for a parameter that is not finite.
HarmonicCoefficients ProductHarmonics(const ProductParameters& parameters);

/// The value of a trigonometric polynomial, in double, term by term.
double EvaluateHarmonics(const HarmonicCoefficients& coefficients, double theta1, double theta2);

/// Evaluates a trigonometric polynomial over the rows of a chart, in float. Row by row it is
/// constant + f cos t1 + g sin t1. All methods are const and may run concurrently; a value depends
/// on nothing but its point, not on the columns around it.
class HarmonicField
{
public:
  /// `theta1`: the angles of the columns, in radians. Throws OptionError for a coefficient that is
  /// not finite, or if they are too large for single precision.
  HarmonicField(
    const HarmonicCoefficients& coefficients, Pattern pattern, const std::vector<double>& theta1);

  /// The points (theta1[i], theta2), one value for each column: the score, and the attention that
  /// the pattern makes of it, 0 to 1.
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
