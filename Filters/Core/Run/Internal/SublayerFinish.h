#pragma once

#include "WideMath.h"

#include <optional>
#include <vector>

namespace atlas
{

/// The steps between the output of a sublayer and the residual stream: a normalization, then a
/// factor for each component, where a model has them.
class SublayerFinish
{
public:
  SublayerFinish(const TransformerConfig& config, const NormTensors& norm, const TensorView& scale)
    : Factors(WideRow(scale))
  {
    if (config.normPlace == NormPlace::BeforeAndAfter || config.normPlace == NormPlace::AfterOutput)
    {
      this->Norm.emplace(config, norm, config.norm, config.modelDimension);
    }
    if (this->Factors.empty())
    {
      this->Factors.assign(config.modelDimension, 1);
    }
    for (double& factor : this->Factors)
    {
      factor *= config.residualScale;
    }
  }

  bool HasNorm() const { return this->Norm.has_value(); }

  DoubleMatrix Apply(const DoubleMatrix& x) const
  {
    return this->Scaled(this->Norm ? this->Norm->Apply(x) : x);
  }
  DoubleMatrix Backward(const DoubleMatrix& x, const DoubleMatrix& dy) const
  {
    const DoubleMatrix scaled = this->Scaled(dy);
    return this->Norm ? this->Norm->Backward(x, scaled) : scaled;
  }
  DoubleMatrix Forward(const DoubleMatrix& x, const DoubleMatrix& dx) const
  {
    return this->Scaled(this->Norm ? this->Norm->Forward(x, dx) : dx);
  }
  /// Exactly: what x + dx gives beyond x, which is not read without a normalization.
  DoubleMatrix Change(const DoubleMatrix& x, const DoubleMatrix& dx) const
  {
    return this->Norm ? this->Apply(x + dx) - this->Apply(x) : this->Scaled(dx);
  }

private:
  std::optional<WideNorm> Norm;
  std::vector<double> Factors;

  DoubleMatrix Scaled(DoubleMatrix x) const
  {
    x.array().rowwise() *=
      Eigen::Map<const Eigen::ArrayXd>(this->Factors.data(), x.cols()).transpose();
    return x;
  }
};

}
