#include "ClassAreas.h"

#include "Base/Error.h"
#include "Base/Pi.h"
#include "HeadAccuracy.h"

#include <cmath>
#include <numeric>

namespace atlas
{
namespace
{

constexpr std::int64_t MaximumPoints = std::int64_t{ 1 } << 33;
constexpr int ProbabilityBits = 30; // the sum of 2^33 probabilities fits into 63 bits

}

double MiddleAngle(std::int64_t i, std::int64_t n)
{
  return Pi * ((2. * static_cast<double>(i) + 1) / static_cast<double>(n) - 1);
}

std::vector<double> MiddleAngles(std::int64_t n)
{
  std::vector<double> angles;
  angles.reserve(n);
  for (std::int64_t i = 0; i < n; ++i)
  {
    angles.push_back(MiddleAngle(i, n));
  }
  return angles;
}

void ClassCounts::Add(const ClassCounts& other)
{
  for (std::size_t k = 0; k < this->points.size(); ++k)
  {
    this->points[k] += other.points[k];
    this->probability[k] += other.probability[k];
  }
}

double ClassCounts::Area(std::size_t predicted) const
{
  const std::int64_t all =
    std::accumulate(this->points.begin(), this->points.end(), std::int64_t{ 0 });
  return all == 0 ? 0 : static_cast<double>(this->points[predicted]) / static_cast<double>(all);
}

double ClassCounts::MeanProbability(std::size_t predicted) const
{
  const std::int64_t count = this->points[predicted];
  return count == 0
           ? 0
           : std::ldexp(static_cast<double>(this->probability[predicted]), -ProbabilityBits) /
               static_cast<double>(count);
}

ClassCounter::ClassCounter(const AttentionOnlyModel& model, const EvaluationOptions& options,
  std::int64_t columns, std::int64_t rows)
  : Evaluator(model, options)
  , Classes(model.VocabularySize())
  , Columns(columns)
  , Rows(rows)
{
  ThrowIf<OptionError>(columns < 1 || rows < 1,
    "Resolution: expected at least 1 x 1 points, found ", columns, " x ", rows, ".");
  ThrowIf<OptionError>(columns > MaximumPoints / rows,
    "Resolution: expected at most 2^33 points, found ", columns, " x ", rows, ".");
  this->Evaluator.SetColumns(MiddleAngles(columns));
}

ClassCounts ClassCounter::Count(std::int64_t begin, std::int64_t end) const
{
  std::vector<std::int32_t> predicted(this->Columns);
  std::vector<float> probability(predicted.size());
  FieldArrays arrays;
  arrays.predicted = predicted.data();
  arrays.probability = probability.data();
  ClassCounts counts{ std::vector<std::int64_t>(this->Classes),
    std::vector<std::int64_t>(this->Classes) };
  for (std::int64_t row = begin; row < end; ++row)
  {
    this->Evaluator.EvaluateRow(MiddleAngle(row, this->Rows), arrays, 0);
    for (std::size_t i = 0; i < predicted.size(); ++i)
    {
      const std::size_t k = predicted[i];
      ++counts.points[k];
      counts.probability[k] += std::lround(std::ldexp(probability[i], ProbabilityBits));
    }
  }
  return counts;
}

double PairCounts::Accuracy() const
{
  const std::int64_t tokens = this->predicted.size();
  return PairAccuracy(
    std::accumulate(this->correct.begin(), this->correct.end(), Eigen::Index{ 0 }),
    tokens * tokens);
}

PairCounts CountPairs(const AttentionOnlyModel& model, const EvaluationOptions& options)
{
  const std::size_t classes = model.VocabularySize();
  PairCounts counts{ std::vector<int>(classes), std::vector<int>(classes),
    std::vector<int>(classes) };
  const ReferenceEvaluator evaluator(model, options);
  Evaluation at;
  for (Eigen::Index t1 = 0; t1 < model.VocabularySize(); ++t1)
  {
    for (Eigen::Index t2 = 0; t2 < model.VocabularySize(); ++t2)
    {
      evaluator.AtTokens(t1, t2, at);
      const std::size_t found = at.predicted;
      ++counts.predicted[found];
      if (model.HasTargets())
      {
        const std::size_t target = model.nextToken(t1, t2);
        ++counts.targets[target];
        counts.correct[target] += found == target ? 1 : 0;
      }
    }
  }
  return counts;
}

}
