#include "PerplexitySearch.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Embedding/Internal/PerplexitySearch.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// Writes e_j = exp(-beta (s_j - s_0)), and their sums: of e, of s e and of s^2 e, with s - s_0.
void SumWeights(
  const double* squares, std::size_t count, double beta, double* weights, double* sums)
{
  const hn::ScalableTag<double> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto nearest = hn::Set(d, squares[0]);
  const auto factor = hn::Set(d, -beta);
  auto sum = hn::Zero(d);
  auto first = hn::Zero(d);
  auto second = hn::Zero(d);
  HWY_ALIGN double rest[hn::MaxLanes(hn::ScalableTag<double>())];
  for (std::size_t i = 0; i < count; i += lanes)
  {
    const std::size_t left = std::min(lanes, count - i);
    if (left < lanes)
    {
      std::fill(std::copy_n(squares + i, left, rest), rest + lanes, squares[0]);
    }
    const auto square =
      hn::Sub(left < lanes ? hn::Load(d, rest) : hn::LoadU(d, squares + i), nearest);
    const auto weight = hn::IfThenElseZero(
      hn::FirstN(d, left), hn::Exp(d, hn::Max(hn::Mul(square, factor), hn::Set(d, -700.0))));
    const auto product = hn::Mul(square, weight);
    sum = hn::Add(sum, weight);
    first = hn::Add(first, product);
    second = hn::MulAdd(square, product, second);
    if (left < lanes)
    {
      hn::Store(weight, d, rest);
      std::copy_n(rest, left, weights + i);
    }
    else
    {
      hn::StoreU(weight, d, weights + i);
    }
  }
  sums[0] = hn::GetLane(hn::SumOfLanes(d, sum));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, first));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, second));
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(SumWeights);

double SearchPerplexity(
  const double* squares, std::size_t count, double entropy, double* probabilities)
{
  const auto isNearest = [&](double square) { return square <= squares[0]; };
  const std::size_t nearest = std::count_if(squares, squares + count, isNearest);
  if (static_cast<double>(nearest) >= std::exp(entropy) * (1 - 1e-12))
  {
    std::fill(std::fill_n(probabilities, nearest, 1 / static_cast<double>(nearest)),
      probabilities + count, 0);
    return std::numeric_limits<double>::infinity();
  }
  double mean = 0;
  for (std::size_t i = 0; i < count; ++i)
  {
    mean += (squares[i] - squares[0]) / static_cast<double>(count);
  }
  // Newton's method for ln beta, within bounds that bisection narrows where it leaves them.
  double low = -700;
  double high = 700;
  double x = std::clamp(-std::log(mean), low, high);
  double sums[3] = {};
  for (int step = 0; step < 200; ++step)
  {
    const double beta = std::exp(x);
    HWY_DYNAMIC_DISPATCH(SumWeights)(squares, count, beta, probabilities, sums);
    const double average = sums[1] / sums[0];
    const double difference = std::log(sums[0]) + beta * average - entropy;
    (difference > 0 ? low : high) = x;
    if (std::abs(difference) < 1e-12 || high - low < 1e-15)
    {
      break;
    }
    const double variance = sums[2] / sums[0] - average * average;
    const double next = x + difference / (beta * beta * variance);
    x = next > low && next < high ? next : low + (high - low) / 2;
  }
  for (std::size_t i = 0; i < count; ++i)
  {
    probabilities[i] /= sums[0];
  }
  return std::exp(x);
}

}

#endif
