#include "VectorNorm.h"

#include <cmath>
#include <vector>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

}

Vector ToVector(const TensorView& view)
{
  const std::vector<double> values = view.data == nullptr ? std::vector<double>() : view.ToDouble();
  return Eigen::Map<const Vector>(values.data(), values.size());
}

NormSplit SplitNorm(const TransformerConfig& config, const Vector& x)
{
  if (config.norm == NormKind::None)
  {
    return {};
  }
  const bool centers = config.norm == NormKind::LayerNorm;
  const double mean = centers ? x.mean() : 0;
  const double square = (x.array() - mean).square().mean();
  return { std::sqrt(square + config.epsilon), centers };
}

void NormalizeVector(const TransformerConfig& config, const NormTensors& norm, Vector& x)
{
  if (config.norm == NormKind::None)
  {
    return;
  }
  const NormSplit split = SplitNorm(config, x);
  if (split.centers)
  {
    x.array() -= x.mean();
  }
  x /= split.sigma;
  if (norm.gain.data != nullptr)
  {
    x.array() *= ToVector(norm.gain).array() + config.gainOffset;
  }
  if (norm.shift.data != nullptr)
  {
    x += ToVector(norm.shift);
  }
}

}
