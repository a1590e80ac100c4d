#include "AttentionKernels.h"

#include "MatrixProduct.h"
#include "VectorMath.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace atlas
{
namespace
{

/// The columns first <= j < keys of scale * query . key.
void EvaluateColumns(const HeadScores& head, std::int64_t begin, std::int64_t end,
  std::int64_t first, std::int64_t keys, float* values)
{
  MultiplyMatrices(end - begin, keys - first, head.dimension, head.scale,
    { head.query + begin * head.dimension, head.dimension },
    { head.key + first * head.dimension, head.dimension, true }, values + first, keys);
}

/// A row of scores becomes their softmax together with the sink, whose weight is dropped.
void SoftmaxWithSink(std::int64_t count, float sink, float* row, std::vector<float>& memory)
{
  memory.assign(row, row + count);
  memory.push_back(sink);
  SoftmaxRow(count + 1, memory.data());
  std::copy_n(memory.data(), count, row);
}

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
  EvaluateColumns(head, begin, end, 0, keys, values);
}

void CapScores(const HeadScores& head, std::int64_t count, float* values)
{
  if (head.cap > 0)
  {
    std::transform(values, values + count, values,
      [cap = head.cap](float score) { return cap * std::tanh(score / cap); });
  }
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
  std::vector<float> memory;
  for (std::int64_t query = begin; query < end; ++query)
  {
    float* row = values + (query - begin) * keys;
    const std::int64_t first = head.FirstKey(query);
    const std::int64_t allowed = head.KeyCount(query + 1);
    if (head.HasSink())
    {
      SoftmaxWithSink(allowed - first, head.sink, row + first, memory);
    }
    else
    {
      SoftmaxRow(allowed - first, row + first);
    }
    std::fill(row, row + first, 0.0F);
    std::fill(row + allowed, row + keys, 0.0F);
  }
}

void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  const std::int64_t first = head.FirstKey(begin); // no query sees the keys before it
  EvaluateColumns(head, begin, end, first, keys, values);
  for (std::int64_t row = 0; head.cap > 0 && row < end - begin; ++row)
  {
    CapScores(head, keys - first, values + row * keys + first);
  }
  AddBias(head, end - begin, keys, values);
  NormalizeScores(head, begin, end, keys, values);
}

}
