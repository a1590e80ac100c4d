#include "ExactTSne.h"

#include "Error.h"
#include "Index.h"
#include "Parallel.h"
#include "PerplexitySearch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace atlas
{
namespace
{

/// |y_i - y_j|^2
double SquaredDistance(const ExactLayout& layout, std::int64_t i, std::int64_t j)
{
  double sum = 0;
  for (std::int64_t c = 0; c < layout.dimensions; ++c)
  {
    const double difference =
      layout.values[i * layout.dimensions + c] - layout.values[j * layout.dimensions + c];
    sum += difference * difference;
  }
  return sum;
}

/// Calls function(i, j, w_ij) for all pairs i != j.
template<class Function>
void ForPairs(const ExactLayout& layout, const Function& function)
{
  for (std::int64_t i = 0; i < layout.points; ++i)
  {
    for (std::int64_t j = 0; j < layout.points; ++j)
    {
      if (i != j)
      {
        function(i, j, 1 / (1 + SquaredDistance(layout, i, j)));
      }
    }
  }
}

/// sum_j factor(i, j, w_ij) (y_i - y_j) of each point.
template<class Factor>
std::vector<double> SumDifferences(const ExactLayout& layout, const Factor& factor)
{
  std::vector<double> sums(layout.points * layout.dimensions);
  ForPairs(layout,
    [&](std::int64_t i, std::int64_t j, double w)
    {
      const double f = factor(i, j, w);
      for (std::int64_t c = 0; c < layout.dimensions; ++c)
      {
        sums[i * layout.dimensions + c] +=
          f * (layout.values[i * layout.dimensions + c] - layout.values[j * layout.dimensions + c]);
      }
    });
  return sums;
}

double At(
  const std::vector<double>& matrix, const ExactLayout& layout, std::int64_t i, std::int64_t j)
{
  return matrix[i * layout.points + j];
}

double SumOfWeights(const ExactLayout& layout)
{
  double sum = 0;
  ForPairs(layout, [&](std::int64_t, std::int64_t, double w) { sum += w; });
  return sum;
}

}

std::vector<double> ExactAffinities(const PointView& points, PointMetric metric, double perplexity)
{
  CheckPoints(points, "t-SNE");
  if (!(perplexity >= 1 && perplexity < static_cast<double>(points.count - 1)))
  {
    throw OptionError("t-SNE: expected a perplexity from 1 to less than " +
                      std::to_string(points.count - 1) + ", found " + std::to_string(perplexity) +
                      ".");
  }
  const auto count = static_cast<int>(points.count - 1);
  const NeighborLists neighbors = FindNeighbors(points, metric, count, 1);
  std::vector<double> p(points.count * points.count);
  std::vector<double> squares(count);
  std::vector<double> row(squares.size());
  for (std::int64_t i = 0; i < points.count; ++i)
  {
    for (std::int64_t k = 0; k < count; ++k)
    {
      const double distance = neighbors.distance[i * count + k];
      squares[k] = metric == PointMetric::Cosine ? 2 * distance : distance * distance;
    }
    SearchPerplexity(squares.data(), squares.size(), std::log(perplexity), row.data());
    for (std::int64_t k = 0; k < count; ++k)
    {
      const std::int64_t j = neighbors.index[i * count + k];
      const double half = row[k] / static_cast<double>(2 * points.count);
      p[i * points.count + j] += half;
      p[j * points.count + i] += half;
    }
  }
  return p;
}

std::vector<double> DenseAffinities(const Affinities& affinities)
{
  std::vector<double> dense(affinities.points * affinities.points);
  for (std::int64_t i = 0; i < affinities.points; ++i)
  {
    for (std::int64_t e = affinities.begin[i]; e < affinities.begin[i + 1]; ++e)
    {
      dense[ToIndex(i * affinities.points) + affinities.index[e]] = affinities.value[e];
    }
  }
  return dense;
}

std::vector<double> ExactRepulsion(const ExactLayout& layout, double& sum)
{
  sum = SumOfWeights(layout);
  return SumDifferences(layout, [](std::int64_t, std::int64_t, double w) { return w * w; });
}

std::vector<double> ExactAttraction(const std::vector<double>& p, const ExactLayout& layout)
{
  return SumDifferences(
    layout, [&](std::int64_t i, std::int64_t j, double w) { return At(p, layout, i, j) * w; });
}

std::vector<double> ExactGradient(const std::vector<double>& p, const ExactLayout& layout)
{
  const double sum = SumOfWeights(layout);
  return SumDifferences(layout, [&](std::int64_t i, std::int64_t j, double w)
    { return 4 * (At(p, layout, i, j) - w / sum) * w; });
}

double ExactDivergence(const std::vector<double>& p, const ExactLayout& layout)
{
  const double sum = SumOfWeights(layout);
  double divergence = 0;
  ForPairs(layout,
    [&](std::int64_t i, std::int64_t j, double w)
    {
      const double value = At(p, layout, i, j);
      divergence += value > 0 ? value * std::log(value * sum / w) : 0;
    });
  return divergence;
}

std::vector<double> ExactDescent(
  const std::vector<double>& p, const ExactLayout& start, const ExactDescentOptions& options)
{
  std::vector<double> exaggerated = p;
  for (double& value : exaggerated)
  {
    value *= options.exaggeration;
  }
  std::vector<double> layout(start.values, start.values + start.points * start.dimensions);
  std::vector<double> update(layout.size());
  std::vector<double> gain(layout.size(), 1);
  for (int step = 0; step < options.steps; ++step)
  {
    const std::vector<double> gradient =
      ExactGradient(exaggerated, { layout.data(), start.points, start.dimensions });
    for (std::size_t i = 0; i < layout.size(); ++i)
    {
      gain[i] = gradient[i] * update[i] < 0 ? gain[i] + 0.2 : std::max(gain[i] * 0.8, 0.01);
      update[i] = options.momentum * update[i] - options.rate * gain[i] * gradient[i];
      layout[i] += update[i];
    }
  }
  return layout;
}

double TSneDivergence(
  const Affinities& affinities, const float* layout, int dimensions, int threads)
{
  const std::vector<double> values(layout, layout + affinities.points * dimensions);
  const ExactLayout exact = { values.data(), affinities.points, dimensions };
  std::vector<double> weights(affinities.points); // sums of w by row
  std::vector<double> terms(weights.size());
  ParallelFor(affinities.points, threads,
    [&](std::int64_t i)
    {
      double sum = 0;
      for (std::int64_t j = 0; j < affinities.points; ++j)
      {
        sum += 1 / (1 + SquaredDistance(exact, i, j));
      }
      weights[i] = sum - 1; // without itself
      for (std::int64_t e = affinities.begin[i]; e < affinities.begin[i + 1]; ++e)
      {
        const double p = affinities.value[e];
        const double square = SquaredDistance(exact, i, affinities.index[e]);
        terms[i] += p > 0 ? p * (std::log(p) + std::log1p(square)) : 0;
      }
    });
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  return std::accumulate(terms.begin(), terms.end(), std::log(sum));
}

}
