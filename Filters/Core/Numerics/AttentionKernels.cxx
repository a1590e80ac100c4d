#include "AttentionKernels.h"

#include "DotProduct.h"
#include "Lanes.h"
#include "MatrixProduct.h"
#include "PackedProduct.h"
#include "VectorMath.h"

#include <cmath>
#include <vector>

namespace atlas
{
namespace
{

/// Lets a sink take its share of the weights of a row, whose largest score was `largest`. With p
/// the largest weight, the sum of all exp(x - largest) is 1 / p.
void DropSink(float sink, float largest, std::int64_t count, float* row)
{
  const auto weight = static_cast<double>(*std::max_element(row, row + count));
  const double ratio = std::exp(static_cast<double>(sink) - static_cast<double>(largest));
  const auto share = static_cast<float>(1 / (1 + weight * ratio));
  std::for_each(row, row + count, [share](float& value) { value *= share; });
}

/// Turns the scores of keys first <= j < last of a query into its attention.
void NormalizeRow(
  const std::optional<float>& sink, std::int64_t first, std::int64_t last, float* row)
{
  const bool drops = sink && last > first;
  const float largest = drops ? *std::max_element(row + first, row + last) : 0;
  SoftmaxRow(last - first, row + first);
  if (drops)
  {
    DropSink(*sink, largest, last - first, row + first);
  }
}

/// The same of the keys of these that are in the query's window of patches.
void NormalizeWindow(
  const HeadScores& head, std::int64_t query, std::int64_t first, std::int64_t last, float* row)
{
  std::vector<float> seen;
  for (std::int64_t key = first; key < last; ++key)
  {
    if (head.SharesWindow(query, key))
    {
      seen.push_back(row[key]);
    }
  }
  NormalizeRow(head.sink, 0, static_cast<std::int64_t>(seen.size()), seen.data());
  auto next = seen.begin();
  for (std::int64_t key = first; key < last; ++key)
  {
    row[key] = head.SharesWindow(query, key) ? *next++ : 0;
  }
}

/// Products of queries with keys from <= j < keys, in rows of `keys` values of which these
/// are written.
void MultiplyKeys(const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t from,
  std::int64_t keys, float* values)
{
  MultiplyMatrices(end - begin, keys - from, head.dimension, head.scale,
    { head.query + (begin - head.firstQuery) * head.dimension, head.dimension },
    { head.key + from * head.dimension, head.dimension, true }, values + from, keys);
}

}

float HeadScores::ContentToPosition(std::int64_t i, std::int64_t j) const
{
  if (this->positionKey == nullptr)
  {
    return 0;
  }
  const std::int64_t distance = std::clamp(i - j, -this->positionReach, this->positionReach);
  return this->scale *
         static_cast<float>(DotProduct(this->query + (i - this->firstQuery) * this->dimension,
           this->positionKey + distance * this->dimension, this->dimension));
}

float HeadScores::PositionToContent(std::int64_t i, std::int64_t j) const
{
  if (this->positionQuery == nullptr)
  {
    return 0;
  }
  const std::int64_t distance = std::clamp(i - j, -this->positionReach, this->positionReach);
  return this->scale * static_cast<float>(DotProduct(this->key + j * this->dimension,
                         this->positionQuery + distance * this->dimension, this->dimension));
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
  MultiplyKeys(head, begin, end, 0, keys, values);
}

void CapScores(const HeadScores& head, std::int64_t rows, std::int64_t keys, float* values)
{
  if (head.cap <= 0)
  {
    return;
  }
  ForLanes(rows * keys,
    [&](std::int64_t i, std::int64_t left)
    {
      const Lanes x = Load(values + i, left, 0) / head.cap;
      Store(head.cap * x.tanh(), left, values + i);
    });
}

double AlibiBias(double slope, double unit, std::int64_t position)
{
  const auto place = static_cast<double>(position);
  if (unit <= 0)
  {
    return slope * place;
  }
  const auto rounded = [](double value)
  {
    auto number = static_cast<float>(value);
    RoundToBfloat16(1, &number);
    return static_cast<double>(number);
  };
  return unit * rounded(rounded(slope / unit) * rounded(place));
}

void AddBias(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  const bool rounds = head.slope != 0 && head.slopeUnit > 0;
  std::vector<float> rounded(rounds ? ToIndex(keys) : 0);
  for (std::size_t key = 0; key < rounded.size(); ++key)
  {
    rounded[key] = static_cast<float>(
      AlibiBias(static_cast<double>(head.slope), static_cast<double>(head.slopeUnit), key));
  }
  for (std::int64_t row = 0; row < end - begin && head.slope != 0; ++row)
  {
    for (std::int64_t key = 0; key < keys; ++key)
    {
      values[row * keys + key] += rounds ? rounded[key] : head.slope * static_cast<float>(key);
    }
  }
  for (std::int64_t query = begin; query < end && head.distanceBias != nullptr; ++query)
  {
    float* row = values + (query - begin) * keys;
    for (std::int64_t key = 0; key < keys; ++key)
    {
      row[key] += head.distanceBias[std::clamp(key - query, -head.reach, head.reach)];
    }
  }
  for (std::int64_t query = begin; query < end && head.patchBias != nullptr; ++query)
  {
    for (std::int64_t key = 0; key < keys; ++key)
    {
      values[(query - begin) * keys + key] += head.patchBias[head.PatchPlace(query, key)];
    }
  }
  const bool hasVectors = head.positionKey != nullptr || head.positionQuery != nullptr;
  for (std::int64_t query = begin; query < end && hasVectors; ++query)
  {
    for (std::int64_t key = 0; key < keys; ++key)
    {
      values[(query - begin) * keys + key] +=
        head.ContentToPosition(query, key) + head.PositionToContent(query, key);
    }
  }
}

void NormalizeScores(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  for (std::int64_t query = begin; query < end; ++query)
  {
    float* row = values + (query - begin) * keys;
    const std::int64_t first = head.FirstKey(query);
    const std::int64_t last = head.KeyCount(query + 1);
    if (head.patchWindow > 0)
    {
      NormalizeWindow(head, query, first, last, row);
    }
    else
    {
      NormalizeRow(head.sink, first, last, row);
    }
    std::fill(row, row + first, 0.0F);
    std::fill(row + last, row + keys, 0.0F);
  }
}

void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  const std::int64_t from = std::min(head.FirstKey(begin), keys);
  MultiplyKeys(head, begin, end, from, keys, values);
  for (std::int64_t row = 0; row < end - begin && from > 0; ++row)
  {
    std::fill_n(values + row * keys, from, 0.0F);
  }
  CapScores(head, end - begin, keys, values);
  AddBias(head, begin, end, keys, values);
  NormalizeScores(head, begin, end, keys, values);
}

}
