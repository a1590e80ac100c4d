#include "TSne.h"

#include "ApproximateNeighbors.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/Attraction.h"
#include "Internal/CurveOrder.h"
#include "Internal/ExtendedNeighbors.h"
#include "Internal/LayoutNeighbors.h"
#include "Internal/PerplexitySearch.h"
#include "Internal/Repulsion.h"
#include "Internal/StartLayout.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

constexpr double EarlyMomentum = 0.5; ///< while exaggerated
constexpr double LateMomentum = 0.8;
constexpr double RateFactor = 1; ///< of the learning rate, with the gradient / 4
constexpr float LongestStep = 5; ///< of a coordinate, so that no rate makes the layout explode
constexpr float Farthest = 1e6;  ///< coordinate to start from

std::string Text(double number)
{
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
}

/// Throws unless least <= value <= largest, so not for NaN.
void CheckRange(const char* name, double value, double least, double largest)
{
  ThrowIf<OptionError>(!(value >= least && value <= largest), "t-SNE: expected ", name, " from ",
    Text(least), " to ", Text(largest), ", found ", Text(value), ".");
}

double SquareOf(float distance, PointMetric metric)
{
  const double d = distance;
  return metric == PointMetric::Cosine ? 2 * d : d * d;
}

/// The transpose; its rows have ascending columns. Entries are first sorted by blocks of columns:
/// the rows of a block stay in the cache while they fill, which all rows of many points do not.
Affinities Transpose(const Affinities& matrix, int threads)
{
  constexpr unsigned blockBits = 9;
  struct Entry
  {
    std::uint32_t column;
    std::uint32_t row;
    float value;
  };
  const std::size_t rows = matrix.points;
  Affinities transposed;
  transposed.points = matrix.points;
  transposed.begin.resize(rows + 1);
  for (const std::uint32_t column : matrix.index)
  {
    ++transposed.begin[column + 1];
  }
  std::partial_sum(transposed.begin.begin(), transposed.begin.end(), transposed.begin.begin());
  const std::size_t blocks = (rows + (1U << blockBits) - 1) >> blockBits;
  std::vector<std::int64_t> nextOfBlock(blocks);
  for (std::size_t block = 0; block < blocks; ++block)
  {
    nextOfBlock[block] = transposed.begin[block << blockBits];
  }
  const std::vector<std::int64_t> begins = nextOfBlock;
  std::vector<Entry> entries(matrix.index.size());
  for (std::size_t row = 0; row < rows; ++row)
  {
    for (std::size_t e = matrix.begin[row]; e < ToIndex(matrix.begin[row + 1]); ++e)
    {
      const std::uint32_t column = matrix.index[e];
      entries[nextOfBlock[column >> blockBits]++] = { column, static_cast<std::uint32_t>(row),
        matrix.value[e] };
    }
  }
  transposed.index.resize(entries.size());
  transposed.value.resize(entries.size());
  std::vector<std::int64_t> next(transposed.begin.begin(), transposed.begin.end() - 1);
  ParallelFor(static_cast<std::int64_t>(blocks), threads,
    [&](std::int64_t block)
    {
      for (std::int64_t e = begins[block]; e < nextOfBlock[block]; ++e)
      {
        const Entry& entry = entries[e];
        const std::int64_t to = next[entry.column]++;
        transposed.index[to] = entry.row;
        transposed.value[to] = entry.value;
      }
    });
  return transposed;
}

/// (c + c') / (2 points) without entries that are 0, where both have ascending columns.
Affinities Symmetrized(const Affinities& matrix, const Affinities& transposed)
{
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  Affinities sum;
  sum.points = matrix.points;
  sum.begin.push_back(0);
  sum.index.reserve(2 * matrix.index.size());
  sum.value.reserve(2 * matrix.index.size());
  const double share = 0.5 / static_cast<double>(sum.points);
  for (std::size_t row = 0; row + 1 < matrix.begin.size(); ++row)
  {
    std::size_t a = matrix.begin[row];
    std::size_t b = transposed.begin[row];
    const std::size_t endA = matrix.begin[row + 1];
    const std::size_t endB = transposed.begin[row + 1];
    while (a < endA || b < endB)
    {
      const std::uint32_t columnA = a < endA ? matrix.index[a] : none;
      const std::uint32_t columnB = b < endB ? transposed.index[b] : none;
      const double ofA = columnA <= columnB ? matrix.value[a] : 0;
      const double ofB = columnB <= columnA ? transposed.value[b] : 0;
      a += columnA <= columnB ? 1 : 0;
      b += columnB <= columnA ? 1 : 0;
      if (ofA + ofB > 0)
      {
        sum.index.push_back(std::min(columnA, columnB));
        sum.value.push_back(static_cast<float>((ofA + ofB) * share));
      }
    }
    sum.begin.push_back(sum.index.size());
  }
  return sum;
}

/// Values in rows of `stride`, of which the first `dimensions` are taken from rows packed.
std::vector<float> Spread(const std::vector<float>& packed, const std::vector<std::uint32_t>& order,
  int dimensions, std::int64_t stride)
{
  std::vector<float> spread(order.size() * ToIndex(stride));
  for (std::size_t row = 0; row < order.size(); ++row)
  {
    const auto from = packed.begin() + static_cast<std::int64_t>(order[row]) * dimensions;
    std::copy_n(from, dimensions, spread.begin() + static_cast<std::int64_t>(row) * stride);
  }
  return spread;
}

/// Gradient descent with momentum and a gain per coordinate (Jacobs 1988). Points are renumbered
/// along a space-filling curve, so that those that attract each other are near in memory.
class Descent
{
public:
  /// begun: the part of all time that has passed.
  Descent(const Affinities& affinities, std::vector<float> start, const TSneOptions& options,
    double begun)
    : P(affinities)
    , Options(options)
    , Begun(begun)
    , Stride(options.dimensions == 2 ? 2 : 4)
    , Start(std::move(start))
    , Order(affinities.points)
    , Repulsion_(options.dimensions, affinities.points, this->Stride, options.theta)
  {
    std::iota(this->Order.begin(), this->Order.end(), 0U);
    this->Begin();
    this->Forces.resize(this->Points.size());
    this->Repulsions.resize(this->Points.size());
    for (const float p : affinities.value)
    {
      this->Entropy += p > 0 ? static_cast<double>(p) * std::log(static_cast<double>(p)) : 0;
    }
    this->Renumber();
  }

  Layout Run()
  {
    Layout layout;
    const int exaggerated = this->ExaggeratedIterations();
    while (true)
    {
      const int done = layout.iterations;
      if (done > 0 && done == exaggerated && this->HasCollapsed())
      {
        this->Begin();
      }
      if (done > 0 && (done == exaggerated || this->IsToRenumber(done)))
      {
        this->Renumber();
      }
      this->Sum = this->Repulsion_.Evaluate(
        this->Points.data(), this->Options.threads, this->Repulsions.data());
      const bool isLast = done == this->Options.iterations;
      if (isLast || (this->Options.progress && done % this->Options.interval == 0))
      {
        layout.divergence = this->Divergence();
        layout.stopped = !this->Report(done, layout.divergence);
        if (isLast || layout.stopped)
        {
          break;
        }
      }
      this->Attraction_->Evaluate(this->Points.data(), this->Options.threads, this->Forces.data());
      this->Step(done < exaggerated);
      ++layout.iterations;
    }
    layout.points = this->Result();
    return layout;
  }

private:
  const Affinities& P;
  const TSneOptions& Options;
  double Begun;
  std::int64_t Stride;
  std::vector<float> Start;         ///< [points, dimensions], in the order of the input
  std::vector<std::uint32_t> Order; ///< the point of each row below
  std::vector<float> Points;        ///< [points, Stride], as all that follow
  std::vector<float> Update;
  std::vector<float> Gain;
  std::vector<float> Forces; ///< attraction
  std::vector<float> Repulsions;
  Repulsion Repulsion_;
  std::unique_ptr<Attraction> Attraction_; ///< in the order of the rows
  double Sum = 0;                          ///< Z
  double Entropy = 0;                      ///< sum of p ln p

  int ExaggeratedIterations() const
  {
    if (this->Options.exaggeratedIterations >= 0)
    {
      return this->Options.exaggeratedIterations;
    }
    return this->Options.start ? 0 : this->Options.iterations / 3;
  }

  void Begin()
  {
    this->Points = Spread(this->Start, this->Order, this->Options.dimensions, this->Stride);
    this->Update.assign(this->Points.size(), 0);
    this->Gain.assign(this->Points.size(), 1);
  }

  /// Whether all points have come together in some direction. Exaggerated attraction does that
  /// where the perplexity is large for so few points; later iterations cannot part them in time.
  bool HasCollapsed() const
  {
    const Eigen::Map<const Eigen::MatrixXf> rows(this->Points.data(), this->Stride, this->P.points);
    const Eigen::MatrixXd points = rows.topRows(this->Options.dimensions).cast<double>();
    const Eigen::MatrixXd centered = points.colwise() - points.rowwise().mean();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      centered * centered.transpose(), Eigen::EigenvaluesOnly);
    constexpr double deviation = 1e-4; // that of the start
    return !(solver.eigenvalues()[0] > deviation * deviation * static_cast<double>(this->P.points));
  }

  static bool IsToRenumber(int done)
  {
    return done == 50 || done == 100 || done == 350 || (done > 350 && done % 500 == 0);
  }

  /// Puts the points in the order of the curve.
  void Renumber()
  {
    const std::vector<std::uint32_t> rows =
      CurveOrder(this->Points.data(), this->P.points, this->Options.dimensions, this->Stride);
    std::vector<std::uint32_t> order;
    order.reserve(rows.size());
    for (const std::uint32_t row : rows)
    {
      order.push_back(this->Order[row]);
    }
    const auto stride = static_cast<int>(this->Stride);
    this->Points = Spread(this->Points, rows, stride, stride);
    this->Update = Spread(this->Update, rows, stride, stride);
    this->Gain = Spread(this->Gain, rows, stride, stride);
    this->Order = std::move(order);
    this->Attraction_ = std::make_unique<Attraction>(
      this->P, this->Order, this->Options.dimensions, this->Options.threads);
    this->Repulsion_.Forget();
  }

  void Step(bool isExaggerated)
  {
    const double exaggeration = isExaggerated ? this->Options.exaggeration : 1;
    const double rate = this->Options.learningRate > 0
                          ? this->Options.learningRate
                          : static_cast<double>(this->P.points) / exaggeration;
    const auto momentum = static_cast<float>(isExaggerated ? EarlyMomentum : LateMomentum);
    const auto attraction = static_cast<float>(rate * RateFactor * exaggeration);
    const auto repulsion = static_cast<float>(rate * RateFactor / this->Sum);
    ForBlocks(this->Points.size(), 1 << 14, this->Options.threads,
      [&](std::int64_t begin, std::int64_t end)
      {
        for (std::int64_t i = begin; i < end; ++i)
        {
          const float slope = attraction * this->Forces[i] - repulsion * this->Repulsions[i];
          float gain = this->Gain[i];
          gain = slope * this->Update[i] < 0 ? gain + 0.2F : std::max(gain * 0.8F, 0.01F);
          const float update =
            std::clamp(momentum * this->Update[i] - gain * slope, -LongestStep, LongestStep);
          this->Gain[i] = gain;
          this->Update[i] = update;
          this->Points[i] += update;
        }
      });
  }

  double Divergence() const
  {
    return this->Entropy + std::log(this->Sum) +
           this->Attraction_->EvaluateDivergence(this->Points.data(), this->Options.threads);
  }

  bool Report(int done, double divergence) const
  {
    const double share = done / std::max<double>(this->Options.iterations, 1);
    return !this->Options.progress ||
           this->Options.progress(
             { this->Begun + (1 - this->Begun) * share, done, divergence, this->Result().data() });
  }

  /// The layout in the order of the input, centered.
  std::vector<float> Result() const
  {
    const std::size_t dimensions = this->Options.dimensions;
    const std::size_t stride = this->Stride;
    std::array<double, 3> mean = {};
    for (std::size_t row = 0; row < this->Order.size(); ++row)
    {
      for (std::size_t i = 0; i < dimensions; ++i)
      {
        mean[i] += this->Points[row * stride + i] / static_cast<double>(this->P.points);
      }
    }
    std::vector<float> result(this->Order.size() * dimensions);
    for (std::size_t row = 0; row < this->Order.size(); ++row)
    {
      for (std::size_t i = 0; i < dimensions; ++i)
      {
        result[this->Order[row] * dimensions + i] =
          static_cast<float>(this->Points[row * stride + i] - mean[i]);
      }
    }
    return result;
  }
};

/// The neighbors that t-SNE needs. Of very many points only the nearest are sought; the others are
/// neighbors of neighbors.
NeighborLists NeighborsFor(
  const PointView& points, const TSneOptions& options, const Progress& progress)
{
  const int count = TSneNeighborCount(options.perplexity);
  const int sought = std::max(20, count / 5);
  if (points.count < ApproximateNeighborsFrom || sought >= count)
  {
    return FindNeighbors(points, options.metric, count, options.threads, progress);
  }
  const NeighborLists nearest = FindNeighborsApproximately(
    points, options.metric, sought, options.seed, options.threads, progress);
  return ExtendNeighbors(points, options.metric, nearest, count, options.threads);
}

std::vector<float> StartOf(const PointView& points, const TSneOptions& options)
{
  if (options.start)
  {
    const std::int64_t size = points.count * options.dimensions;
    std::vector<float> start(options.start, options.start + size);
    const auto wrong = std::find_if(
      start.begin(), start.end(), [](float value) { return !(std::abs(value) <= Farthest); });
    if (wrong != start.end())
    {
      throw OptionError("t-SNE: expected coordinates of the layout to start from up to ",
        Text(Farthest), ", found ", Text(*wrong), ".");
    }
    return start;
  }
  return options.randomStart
           ? RandomStart(points.count, options.dimensions, options.seed)
           : PrincipalStart(points, options.metric, options.dimensions, options.seed);
}

/// begun: the part of all time that has passed.
Layout Place(
  const PointView& points, const NeighborLists& neighbors, const TSneOptions& options, double begun)
{
  CheckNeighbors("t-SNE", points, neighbors, TSneNeighborCount(options.perplexity));
  std::vector<float> start = StartOf(points, options);
  const Affinities affinities =
    TSneAffinities(neighbors, options.metric, options.perplexity, options.threads);
  return Descent(affinities, std::move(start), options, begun).Run();
}

}

double LargestPerplexity(std::int64_t points)
{
  return static_cast<double>(points - 1) / 3;
}

int TSneNeighborCount(double perplexity)
{
  return static_cast<int>(3 * perplexity + 1e-9);
}

void CheckTSneOptions(std::int64_t points, const TSneOptions& options)
{
  ThrowIf<OptionError>(points < 4, "t-SNE: expected at least 4 points, found ", points, ".");
  ThrowIf<OptionError>(options.dimensions != 2 && options.dimensions != 3,
    "t-SNE: expected 2 or 3 dimensions, found ", options.dimensions, ".");
  const double largest = LargestPerplexity(points);
  ThrowIf<OptionError>(!(options.perplexity >= 1 && options.perplexity <= largest * (1 + 1e-12)),
    "t-SNE: expected a perplexity from 1 to ", Text(std::floor(largest * 100) / 100),
    ", the largest that works for ", points, " points, found ", Text(options.perplexity), ".");
  CheckRange("a number of iterations", options.iterations, 0, 1e6);
  CheckRange("theta", options.theta, 0, 1);
  CheckRange("an exaggeration", options.exaggeration, 1, 1000);
  CheckRange("a learning rate", options.learningRate, 0, 1e9);
  CheckRange("an interval of reports", options.interval, 1, 1e6);
}

Affinities TSneAffinities(
  const NeighborLists& neighbors, PointMetric metric, double perplexity, int threads)
{
  const int count = TSneNeighborCount(perplexity);
  ThrowIf<OptionError>(count < 1 || count > neighbors.count, "t-SNE: expected ", count,
    " neighbors of each point for perplexity ", Text(perplexity), ", found ", neighbors.count, ".");
  Affinities rows;
  rows.points = neighbors.points;
  const std::size_t size = neighbors.points * count;
  rows.begin.resize(neighbors.points + 1);
  rows.index.resize(size);
  rows.value.resize(size);
  ForBlocks(neighbors.points, 256, threads,
    [&](std::int64_t begin, std::int64_t end)
    {
      std::vector<double> squares(count);
      std::vector<double> probabilities(squares.size());
      for (std::int64_t i = begin; i < end; ++i)
      {
        const float* distances = neighbors.distance.data() + i * neighbors.count;
        std::transform(distances, distances + count, squares.begin(),
          [&](float distance) { return SquareOf(distance, metric); });
        SearchPerplexity(
          squares.data(), squares.size(), std::log(perplexity), probabilities.data());
        const std::int64_t to = i * count;
        rows.begin[i + 1] = to + count;
        std::copy_n(neighbors.index.begin() + i * neighbors.count, count, rows.index.begin() + to);
        std::transform(probabilities.begin(), probabilities.end(), rows.value.begin() + to,
          [](double p) { return static_cast<float>(p); });
      }
    });
  const Affinities transposed = Transpose(rows, threads);
  return Symmetrized(Transpose(transposed, threads), transposed);
}

Layout TSne(const PointView& points, const NeighborLists& neighbors, const TSneOptions& options)
{
  CheckPoints(points, "t-SNE");
  CheckTSneOptions(points.count, options);
  return Place(points, neighbors, options, 0);
}

Layout TSne(const PointView& points, const TSneOptions& options)
{
  CheckPoints(points, "t-SNE");
  CheckTSneOptions(points.count, options);
  const double share = SearchShare(points.count, options.iterations);
  const auto neighbors = FindUnlessStopped(options.progress, share,
    [&](const Progress& progress) { return NeighborsFor(points, options, progress); });
  return neighbors
           ? Place(points, *neighbors, options, share)
           : Layout{ StartOf(points, options), std::numeric_limits<double>::quiet_NaN(), 0, true };
}

}
