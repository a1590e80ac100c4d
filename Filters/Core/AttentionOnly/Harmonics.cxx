#include "Harmonics.h"

#include "Base/Error.h"
#include "Numerics/VectorMath.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atlas
{
namespace
{

/// Throws OptionError if a score could overflow float.
void CheckCoefficients(const HarmonicCoefficients& coefficients)
{
  double largest = 0;
  for (std::size_t i = 0; i < HarmonicCount; ++i)
  {
    ThrowIf<OptionError>(!std::isfinite(coefficients[i]),
      "Coefficients: expected finite numbers, found ", coefficients[i], " for ",
      HarmonicNames.at(i), ".");
    largest += std::abs(coefficients[i]);
  }
  ThrowIf<OptionError>(!(largest < static_cast<double>(std::numeric_limits<float>::max()) / 4),
    "Coefficients: expected a score that single precision can hold, found coefficients whose "
    "magnitudes add up to ",
    largest, ".");
}

}

HarmonicCoefficients ScoreHarmonics(const AttentionOnlyModel& model, std::size_t head)
{
  using Eigen::Vector2d;
  using Eigen::Vector3d;
  const AttentionHead& weights = model.heads[head];
  const Eigen::Matrix3d form =
    weights.query.transpose() * weights.key / std::sqrt(static_cast<double>(model.HeadDimension()));
  const double pi = std::acos(-1.0);
  Eigen::Matrix<double, 3, 2> plane; // sqrt(3) [u v]
  plane.col(0) = EmbeddingAtAngle(0, AngleMap::Isometric);
  plane.col(1) = EmbeddingAtAngle(pi / 2, AngleMap::Isometric);
  const Vector3d p2 = model.positionEmbedding.row(1).transpose();
  const Vector3d step = model.positionEmbedding.row(0).transpose() - p2;

  const Eigen::Matrix2d m = plane.transpose() * form * plane;
  const Vector2d a = plane.transpose() * form * step;
  const Vector2d b = plane.transpose() * form.transpose() * p2;

  HarmonicCoefficients result;
  result[Harmonic::Constant] = p2.dot(form * step) - m.trace() / 2;
  result[Harmonic::CosT1] = b.x();
  result[Harmonic::SinT1] = b.y();
  result[Harmonic::CosT2] = a.x() - b.x();
  result[Harmonic::SinT2] = a.y() - b.y();
  result[Harmonic::CosSum] = (m(0, 0) - m(1, 1)) / 2;
  result[Harmonic::SinSum] = (m(0, 1) + m(1, 0)) / 2;
  result[Harmonic::CosDifference] = m.trace() / 2;
  result[Harmonic::SinDifference] = (m(0, 1) - m(1, 0)) / 2;
  ApplyTies(result);
  ThrowIf<ModelError>(
    !std::all_of(result.begin(), result.end(), [](double k) { return std::isfinite(k); }),
    "the scores of head ", head, " are too large for double precision.");
  return result;
}

int FreeParameterCount(Eigen::Index headDimension)
{
  const auto rank = static_cast<int>(std::min<Eigen::Index>(headDimension, 3));
  return rank * (6 - rank);
}

Wave WaveOf(const HarmonicCoefficients& coefficients, std::size_t harmonic)
{
  if (harmonic == 0)
  {
    return {};
  }
  const std::size_t cosine = harmonic % 2 == 1 ? harmonic : harmonic - 1;
  // + 0.0 turns -0 into 0; -0 would give a spurious phase of pi or -pi.
  const double c = coefficients[cosine] + 0.0;
  const double s = coefficients[cosine + 1] + 0.0;
  return { std::hypot(c, s), std::atan2(s, c) };
}

void ApplyTies(HarmonicCoefficients& coefficients)
{
  coefficients[Harmonic::CosTwiceT2] = -coefficients[Harmonic::CosSum];
  coefficients[Harmonic::SinTwiceT2] = -coefficients[Harmonic::SinSum];
}

HarmonicCoefficients ProductHarmonics(const ProductParameters& parameters)
{
  const auto& [a, alpha, b, c, gamma, d] = parameters;
  for (const double parameter : { a, alpha, b, c, gamma, d })
  {
    ThrowIf<OptionError>(!std::isfinite(parameter),
      "Product: expected finite numbers A, Alpha, B, C, Gamma, D, found ", parameter,
      " among them.");
  }
  const double half = a * c / 2;
  HarmonicCoefficients result;
  result[Harmonic::Constant] = b * d - half * std::cos(gamma - alpha);
  result[Harmonic::CosT1] = b * c * std::cos(gamma);
  result[Harmonic::SinT1] = b * c * std::sin(gamma);
  result[Harmonic::CosT2] = a * d * std::cos(alpha) - b * c * std::cos(gamma);
  result[Harmonic::SinT2] = a * d * std::sin(alpha) - b * c * std::sin(gamma);
  result[Harmonic::CosSum] = half * std::cos(alpha + gamma);
  result[Harmonic::SinSum] = half * std::sin(alpha + gamma);
  result[Harmonic::CosDifference] = half * std::cos(gamma - alpha);
  result[Harmonic::SinDifference] = half * std::sin(gamma - alpha);
  ApplyTies(result);
  return result;
}

HarmonicField::HarmonicField(
  const HarmonicCoefficients& coefficients, Pattern pattern, const std::vector<double>& theta1)
  : Coefficients(coefficients)
  , AttentionPattern(pattern)
  , ColumnCount(theta1.size())
  , Cos((theta1.size() + BlockSize - 1) / BlockSize)
  , Sin(Cos.size())
{
  CheckCoefficients(coefficients);
  for (std::size_t i = 0; i < this->Cos.size() * BlockSize; ++i)
  {
    // The last block is padded with copies of its last point, so all blocks are full and every lane
    // goes through the same instructions.
    const double theta = theta1[std::min(i, theta1.size() - 1)];
    this->Cos[i / BlockSize].data()[i % BlockSize] = static_cast<float>(std::cos(theta));
    this->Sin[i / BlockSize].data()[i % BlockSize] = static_cast<float>(std::sin(theta));
  }
}

void HarmonicField::EvaluateRow(double theta2, float* score, float* attention) const
{
  const HarmonicCoefficients& k = this->Coefficients;
  const double cos2 = std::cos(theta2);
  const double sin2 = std::sin(theta2);
  const auto constant =
    static_cast<float>(k[Harmonic::Constant] + k[Harmonic::CosT2] * cos2 +
                       k[Harmonic::SinT2] * sin2 + k[Harmonic::CosTwiceT2] * std::cos(2 * theta2) +
                       k[Harmonic::SinTwiceT2] * std::sin(2 * theta2));
  const auto ofCos = static_cast<float>(k[Harmonic::CosT1] +
                                        (k[Harmonic::CosSum] + k[Harmonic::CosDifference]) * cos2 +
                                        (k[Harmonic::SinSum] - k[Harmonic::SinDifference]) * sin2);
  const auto ofSin = static_cast<float>(k[Harmonic::SinT1] +
                                        (k[Harmonic::SinSum] + k[Harmonic::SinDifference]) * cos2 +
                                        (k[Harmonic::CosDifference] - k[Harmonic::CosSum]) * sin2);
  for (std::size_t block = 0; block < this->Cos.size(); ++block)
  {
    const std::size_t begin = block * BlockSize;
    const std::size_t count = std::min(BlockSize, this->ColumnCount - begin);
    const Lanes scores = constant + ofCos * this->Cos[block] + ofSin * this->Sin[block];
    Lanes attentions;
    if (this->AttentionPattern == Pattern::Hardmax)
    {
      attentions = (scores > 0.F).cast<float>();
    }
    else
    {
      Logistic(scores.data(), BlockSize, attentions.data());
    }
    std::copy_n(scores.data(), count, score + begin);
    std::copy_n(attentions.data(), count, attention + begin);
  }
}

}
