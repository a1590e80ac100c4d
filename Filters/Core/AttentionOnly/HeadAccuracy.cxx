#include "HeadAccuracy.h"

#include "Base/Error.h"

#include <algorithm>
#include <string>

namespace atlas
{
namespace
{

using Eigen::Index;
using Eigen::Vector3d;

int ArgMax(const Eigen::VectorXd& logits)
{
  Index largest = 0;
  logits.maxCoeff(&largest);
  return static_cast<int>(largest);
}

EvaluationOptions WithResidual(Residual residual)
{
  EvaluationOptions options;
  options.residual = residual;
  return options;
}

/// Options under which r is the mixture without its three heads.
EvaluationOptions WithoutHeads(
  const AttentionOnlyModel& model, const std::array<int, 3>& heads, Residual residual)
{
  EvaluationOptions options = WithResidual(residual);
  options.headWeights.assign(model.HeadCount(), 1);
  for (const int head : heads)
  {
    options.headWeights[head] = 0;
  }
  return options;
}

void CheckHeads(const AttentionOnlyModel& model, const std::array<int, 3>& heads)
{
  const auto count = static_cast<int>(model.HeadCount());
  const auto& [a, b, c] = heads;
  const bool inRange =
    std::all_of(heads.begin(), heads.end(), [&](int h) { return h >= 0 && h < count; });
  if (!inRange || a == b || b == c || a == c)
  {
    const std::string which = count == 1 ? "head 0" : Concat("0 to ", count - 1);
    throw OptionError("HeadIndices: expected three different heads of the model, which has ", count,
      " (", which, "), found ", a, ", ", b, ", ", c, ".");
  }
}

using Lanes3 = std::array<HeadMixture::Lanes, 3>;

void SetLane(Lanes3& lanes, Index lane, const Vector3d& value)
{
  for (std::size_t c = 0; c < 3; ++c)
  {
    lanes[c][lane] = value[static_cast<Index>(c)];
  }
}

std::array<double, 3> GetLane(const Lanes3& lanes, Index lane)
{
  return { lanes[0][lane], lanes[1][lane], lanes[2][lane] };
}

/// The vector of the mixture. This function and LogitOf round in the same way for single numbers
/// and for blocks, so single and block predictions agree.
template<class Number>
std::array<Number, 3> Mix(const MixtureTerms<Number>& terms, const Vector3d& weights)
{
  std::array<Number, 3> r = terms.base;
  for (std::size_t c = 0; c < 3; ++c)
  {
    for (std::size_t i = 0; i < 3; ++i)
    {
      r[c] += 3 * weights[static_cast<Index>(i)] * terms.outputs[i][c];
    }
  }
  return r;
}

template<class Number>
Number LogitOf(const Rows3& unembedding, Index k, const std::array<Number, 3>& r)
{
  return unembedding(k, 0) * r[0] + unembedding(k, 1) * r[1] + unembedding(k, 2) * r[2];
}

}

void RequireTargets(const AttentionOnlyModel& model)
{
  const Index n = model.VocabularySize();
  ThrowIf<ModelError>(!model.HasTargets(), "Input: expected a model with the tensor 'next_token' [",
    n, ", ", n, "], the true next token of each pair, which accuracy compares with; found none.");
}

HeadAccuracies CountCorrect(const AttentionOnlyModel& model, Residual residual)
{
  RequireTargets(model);
  const ReferenceEvaluator evaluator(model, WithResidual(residual));
  const Index n = model.VocabularySize();
  HeadAccuracies result;
  result.pairs = n * n;
  result.alone.resize(model.HeadCount());
  Evaluation at;
  for (Index pair = 0; pair < n * n; ++pair)
  {
    evaluator.AtTokens(pair / n, pair % n, at);
    const std::int64_t target = model.nextToken(pair / n, pair % n);
    bool any = false;
    for (std::size_t h = 0; h < model.HeadCount(); ++h)
    {
      const bool correct = ArgMax(model.unembedding * at.heads[h].output) == target;
      result.alone[h] += correct ? 1 : 0;
      any = any || correct;
    }
    result.any += any ? 1 : 0;
    result.all += at.predicted == target ? 1 : 0;
  }
  return result;
}

HeadMixture::HeadMixture(
  const AttentionOnlyModel& model, const std::array<int, 3>& heads, Residual residual)
  : Unembedding(model.unembedding)
  , Pairs(model.VocabularySize() * model.VocabularySize())
  , ByTarget(model.VocabularySize())
  , Blocks((Pairs + BlockSize - 1) / BlockSize)
{
  RequireTargets(model);
  CheckHeads(model, heads);
  const ReferenceEvaluator evaluator(model, WithoutHeads(model, heads, residual));
  const Index n = model.VocabularySize();
  Evaluation at;
  for (Index lane = 0; lane < static_cast<std::int64_t>(this->Blocks.size()) * BlockSize; ++lane)
  {
    const Index pair = std::min(lane, this->Pairs - 1);
    evaluator.AtTokens(pair / n, pair % n, at);
    Block& block = this->Blocks[lane / BlockSize];
    SetLane(block.terms.base, lane % BlockSize, at.output);
    for (std::size_t i = 0; i < 3; ++i)
    {
      SetLane(block.terms.outputs.at(i), lane % BlockSize, at.heads[heads.at(i)].output);
    }
    const auto target = static_cast<int>(model.nextToken(pair / n, pair % n));
    block.targets.at(lane % BlockSize) = lane == pair ? target : -1;
    this->ByTarget[target] += lane == pair ? 1 : 0;
  }
}

/// The predicted classes as doubles, so that the loop uses lanes of a single width.
HeadMixture::Lanes HeadMixture::PredictBlock(const Block& block, const Vector3d& weights) const
{
  const Lanes3 r = Mix(block.terms, weights);
  Lanes largest = LogitOf(this->Unembedding, 0, r);
  Lanes predicted = Lanes::Zero();
  for (Index k = 1; k < this->Unembedding.rows(); ++k)
  {
    const Lanes value = LogitOf(this->Unembedding, k, r);
    const auto number = static_cast<double>(k);
    for (Index i = 0; i < BlockSize; ++i)
    {
      predicted.data()[i] = value.data()[i] > largest.data()[i] ? number : predicted.data()[i];
      largest.data()[i] = value.data()[i] > largest.data()[i] ? value.data()[i] : largest.data()[i];
    }
  }
  return predicted;
}

MixtureAccuracy HeadMixture::Evaluate(const Vector3d& weights) const
{
  MixtureAccuracy result;
  result.correctByTarget.resize(this->ByTarget.size());
  for (const Block& block : this->Blocks)
  {
    const Lanes predicted = this->PredictBlock(block, weights);
    for (Index i = 0; i < BlockSize; ++i)
    {
      const int target = block.targets[i];
      if (predicted[i] == static_cast<double>(target))
      {
        ++result.correct;
        ++result.correctByTarget[target];
      }
    }
  }
  return result;
}

int HeadMixture::Predict(const Vector3d& weights, Index pair) const
{
  const std::array<double, 3> r = Mix(this->Terms(pair), weights);
  double largest = LogitOf(this->Unembedding, 0, r);
  Index predicted = 0;
  for (Index k = 1; k < this->Unembedding.rows(); ++k)
  {
    const double value = LogitOf(this->Unembedding, k, r);
    if (value > largest)
    {
      predicted = k;
      largest = value;
    }
  }
  return static_cast<int>(predicted);
}

int HeadMixture::Target(Index pair) const
{
  return this->Blocks[pair / BlockSize].targets[pair % BlockSize];
}

MixtureTerms<double> HeadMixture::Terms(Index pair) const
{
  const MixtureTerms<Lanes>& lanes = this->Blocks[pair / BlockSize].terms;
  const Index lane = pair % BlockSize;
  return { GetLane(lanes.base, lane),
    { GetLane(lanes.outputs[0], lane), GetLane(lanes.outputs[1], lane),
      GetLane(lanes.outputs[2], lane) } };
}

Vector3d SimplexPoint(int segments, int first, int second)
{
  return Vector3d(first, second, segments - second - first) / segments;
}

std::vector<Vector3d> SimplexGrid(int segments)
{
  std::vector<Vector3d> points;
  for (int second = 0; second <= segments; ++second)
  {
    for (int first = 0; first <= segments - second; ++first)
    {
      points.push_back(SimplexPoint(segments, first, second));
    }
  }
  return points;
}

std::vector<std::array<std::ptrdiff_t, 3>> SimplexTriangles(int segments)
{
  std::vector<std::array<std::ptrdiff_t, 3>> triangles;
  std::ptrdiff_t row = 0;
  for (int second = 0; second < segments; ++second)
  {
    const std::ptrdiff_t length = segments - second;
    const std::ptrdiff_t next = row + length + 1;
    for (std::ptrdiff_t i = 0; i < length; ++i)
    {
      triangles.push_back({ row + i, row + i + 1, next + i });
      if (i + 1 < length)
      {
        triangles.push_back({ row + i + 1, next + i + 1, next + i });
      }
    }
    row = next;
  }
  return triangles;
}

}
