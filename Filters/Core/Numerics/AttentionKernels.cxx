#include "AttentionKernels.h"

#include "Lanes.h"
#include "MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atlas
{

void SoftmaxRow(std::int64_t count, float* values)
{
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  Lanes maxima = Lanes::Constant(lowest);
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { maxima = maxima.max(Load(values + i, left, lowest)); });
  const float maximum = maxima.maxCoeff();
  Lanes sum = Lanes::Zero();
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      // Beyond the row exp(-infinity) is not 0, but exp of the lowest argument that Eigen's float
      // exp has: about 3e-39 in version 3.4. The sum is at least 1, the term of the maximum, and
      // rounds to a multiple of 2^-23; these at most 15 lanes add less than 1e-37 to it.
      const Lanes x = (Load(values + i, left, lowest) - maximum).exp();
      sum += x;
      Store(x, left, values + i);
    });
  const float factor = 1 / sum.sum();
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { Store(Load(values + i, left, 0) * factor, left, values + i); });
}

double Softmax(Eigen::VectorXd& logits, Eigen::Index target)
{
  logits.array() -= logits.maxCoeff();
  const double own = logits[target];
  logits = logits.array().exp();
  const double sum = logits.sum();
  logits /= sum;
  return own - std::log(sum);
}

void EvaluateContent(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  MultiplyMatrices(end - begin, keys, head.dimension, head.scale,
    { head.query + begin * head.dimension, head.dimension }, { head.key, head.dimension, true },
    values, keys);
}

void AddBias(const HeadScores& head, std::int64_t rows, std::int64_t keys, float* values)
{
  if (head.slope == 0)
  {
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
  {
    for (std::int64_t key = 0; key < keys; ++key)
    {
      values[row * keys + key] += head.slope * static_cast<float>(key);
    }
  }
}

void NormalizeScores(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  for (std::int64_t query = begin; query < end; ++query)
  {
    float* row = values + (query - begin) * keys;
    const std::int64_t allowed = head.KeyCount(query + 1);
    SoftmaxRow(allowed, row);
    std::fill(row + allowed, row + keys, 0.0F);
  }
}

void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  EvaluateContent(head, begin, end, keys, values);
  AddBias(head, end - begin, keys, values);
  NormalizeScores(head, begin, end, keys, values);
}

}
