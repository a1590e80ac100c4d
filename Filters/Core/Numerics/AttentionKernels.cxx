#include "AttentionKernels.h"

#include "MatrixProduct.h"
#include "VectorMath.h"

#include <algorithm>
#include <cmath>

namespace atlas
{

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
