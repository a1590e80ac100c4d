#include "ApproximateNeighbors.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/HashedNumbers.h"
#include "Internal/NeighborCandidates.h"
#include "Numerics/InstructionSets.h"
#include "Numerics/MatrixProduct.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <Eigen/Core>

namespace atlas
{
namespace
{

/// The largest number of points of a cell. Products of so many are fast, and sorting points into
/// cells that are smaller is not.
constexpr std::int64_t CellPoints = 512;
/// How often all points are divided into cells.
constexpr int Divisions = 8;
/// How often the neighbors of neighbors are tried, at most: less if few points gain any.
constexpr int Passes = 4;
/// Passes end when less than this share of the neighbors is replaced by one.
constexpr double FewReplaced = 0.002;
/// Points are given to threads in groups of this size.
constexpr std::int64_t GroupPoints = 256;

struct Candidate
{
  float square = std::numeric_limits<float>::infinity(); ///< of the distance
  std::uint32_t place = std::numeric_limits<std::uint32_t>::max();
  bool isNew = true; ///< since the last pass

  bool operator<(const Candidate& other) const
  {
    return this->square != other.square ? this->square < other.square : this->place < other.place;
  }
};

/// Inserts a candidate into `count` sorted ones, of which the last is dropped, unless it is there
/// or is farther away than all.
void Insert(Candidate* candidates, int count, const Candidate& candidate)
{
  Candidate* const end = candidates + count;
  if (!(candidate < end[-1]))
  {
    return;
  }
  Candidate* const place = std::lower_bound(candidates, end, candidate);
  // Equal points have equal distances, which do not depend on the order of the two.
  if (place->place == candidate.place)
  {
    return;
  }
  std::move_backward(place, end - 1, end);
  *place = candidate;
}

/// Places that were seen, for as many as are tried for one point.
class SeenPlaces
{
public:
  void Clear() { this->Slots.fill(None); }
  /// Whether it was not seen before. May forget some if there are very many.
  bool Add(std::uint32_t place)
  {
    std::size_t slot = (place * 2654435769U) >> 20U; // 12 bits
    for (int step = 0; step < 32; ++step, slot = (slot + 1) % Size)
    {
      if (this->Slots[slot] == place)
      {
        return false;
      }
      if (this->Slots[slot] == None)
      {
        this->Slots[slot] = place;
        return true;
      }
    }
    return true;
  }

private:
  static constexpr std::size_t Size = 4096;
  static constexpr std::uint32_t None = std::numeric_limits<std::uint32_t>::max();
  std::array<std::uint32_t, Size> Slots;
};

/// The lists in the form that neighbors of neighbors are read from: of each place, those that are
/// new first.
struct PlaceLists
{
  std::vector<std::uint32_t> places; ///< [places, neighbors]
  std::vector<int> news;             ///< how many are new
};

/// For each place, those that have it in their lists.
struct ReverseLists
{
  std::vector<std::int64_t> begin; ///< [places + 1]
  std::vector<std::uint32_t> places;
};

class NeighborDescent
{
public:
  NeighborDescent(
    const PointView& points, PointMetric metric, int count, std::uint64_t seed, int threads)
    : Metric(metric)
    , IsCosine(metric != PointMetric::Euclidean)
    , Count(points.count)
    , Dimension(points.dimension)
    , Neighbors(count)
    , Seed(seed)
    , Threads(threads)
    , Values(points.values, points.values + points.count * points.dimension)
    , Scales(ScalesOf(points, metric))
    , Mean(Eigen::VectorXd::Zero(points.dimension))
    , Order(points.count)
  {
    std::iota(this->Order.begin(), this->Order.end(), 0U);
    for (std::int64_t i = 0; i < this->Count && !this->IsCosine; ++i)
    {
      this->Mean +=
        Eigen::Map<const Eigen::VectorXf>(points.Row(i), this->Dimension).cast<double>() /
        static_cast<double>(this->Count);
    }
  }

  NeighborLists Find(const Progress& progress)
  {
    constexpr int steps = Divisions + Passes;
    std::vector<std::uint32_t> cells = this->Divide(0);
    this->Renumber(cells); // so that near points are near in memory
    this->Lists.resize(this->Count * this->Neighbors);
    for (int division = 0; division < Divisions; ++division)
    {
      progress(division, steps);
      if (division > 0)
      {
        cells = this->Divide(division);
      }
      this->SearchCells(cells);
    }
    for (int pass = 0; pass < Passes; ++pass)
    {
      progress(Divisions + pass, steps);
      if (this->TryNeighborsOfNeighbors() < FewReplaced)
      {
        break;
      }
    }
    return this->Finish();
  }

private:
  PointMetric Metric;
  bool IsCosine;
  std::int64_t Count;
  std::int64_t Dimension;
  int Neighbors;
  std::uint64_t Seed;
  int Threads;
  std::vector<float> Values;        ///< the points in their places
  std::vector<float> Units;         ///< their unit vectors, if only angles count
  std::vector<double> Scales;       ///< by which they are multiplied
  Eigen::VectorXd Mean;             ///< 0 if the metric has a fixed origin
  std::vector<std::uint32_t> Order; ///< the point in each place
  std::vector<Candidate> Lists;     ///< [Count, Neighbors]

  const float* Row(std::uint32_t place) const
  {
    return this->Values.data() + static_cast<std::int64_t>(place) * this->Dimension;
  }

  std::int64_t Levels() const
  {
    std::int64_t levels = 0;
    while ((this->Count >> levels) > CellPoints)
    {
      ++levels;
    }
    return levels;
  }

  /// The first place of a cell of a level, in the order of a division.
  std::int64_t CellBegin(std::int64_t cell, std::int64_t level) const
  {
    return this->Count * cell >> level;
  }

  /// Divides all places by hyperplanes between two random ones of each cell, at the median, until
  /// cells are small. Returns the places in the order of the cells.
  std::vector<std::uint32_t> Divide(int division) const
  {
    const HashedNumbers numbers(this->Seed, static_cast<std::uint64_t>(100 + division));
    std::vector<std::uint32_t> cells(this->Count);
    std::iota(cells.begin(), cells.end(), 0U);
    for (std::int64_t level = 0; level < this->Levels(); ++level)
    {
      ParallelFor(std::int64_t{ 1 } << level, this->Threads,
        [&](std::int64_t cell)
        {
          const std::int64_t begin = this->CellBegin(cell, level);
          const auto size = static_cast<std::uint64_t>(this->CellBegin(cell + 1, level) - begin);
          const auto number = static_cast<std::uint64_t>(2 * ((std::int64_t{ 1 } << level) + cell));
          std::uint32_t* places = cells.data() + begin;
          this->Split(places, size, places[numbers.Below(number, size)],
            places[numbers.Below(number + 1, size)],
            this->CellBegin(2 * cell + 1, level + 1) - begin);
        });
    }
    return cells;
  }

  /// Puts the `first` places that are nearer to a than to b before the others.
  void Split(std::uint32_t* places, std::uint64_t size, std::uint32_t a, std::uint32_t b,
    std::int64_t first) const
  {
    std::vector<float> direction(this->Dimension);
    for (std::size_t c = 0; c < direction.size(); ++c)
    {
      direction[c] = static_cast<float>(static_cast<double>(this->Row(b)[c]) * this->Scales[b] -
                                        static_cast<double>(this->Row(a)[c]) * this->Scales[a]);
    }
    using Vector = Eigen::Map<const Eigen::VectorXf>;
    const Vector across(direction.data(), this->Dimension);
    std::vector<std::pair<float, std::uint32_t>> sides(size);
    for (std::size_t i = 0; i < size; ++i)
    {
      const float side = across.dot(Vector(this->Row(places[i]), this->Dimension));
      sides[i] = { side * static_cast<float>(this->Scales[places[i]]), places[i] };
    }
    std::nth_element(sides.begin(), sides.begin() + first, sides.end());
    for (std::size_t i = 0; i < size; ++i)
    {
      places[i] = sides[i].second;
    }
  }

  void Renumber(std::vector<std::uint32_t>& cells)
  {
    std::vector<float> values(this->Values.size());
    std::vector<double> scales(this->Scales.size());
    for (std::size_t place = 0; place < cells.size(); ++place)
    {
      std::copy_n(this->Row(cells[place]), this->Dimension,
        values.begin() + static_cast<std::int64_t>(place) * this->Dimension);
      scales[place] = this->Scales[cells[place]];
    }
    this->Order = cells;
    this->Values.swap(values);
    this->Scales.swap(scales);
    this->Units.resize(this->IsCosine ? this->Values.size() : 0);
    for (std::size_t i = 0; i < this->Units.size(); ++i)
    {
      const double scale = this->Scales[i / ToIndex(this->Dimension)];
      this->Units[i] = static_cast<float>(static_cast<double>(this->Values[i]) * scale);
    }
    std::iota(cells.begin(), cells.end(), 0U);
  }

  PointView Places() const { return { this->Values.data(), this->Count, this->Dimension }; }

  /// Inserts others into the list of a place. Leaves in `others` those that may have been near
  /// enough.
  void InsertAll(
    std::uint32_t place, std::vector<std::uint32_t>& others, std::vector<double>& squares)
  {
    Candidate* list = this->Lists.data() + static_cast<std::int64_t>(place) * this->Neighbors;
    // Unit vectors are rounded by 2^-24 of their length.
    const double rounding = this->IsCosine ? 0x1p-22 : 0;
    const std::vector<float>& rows = this->IsCosine ? this->Units : this->Values;
    KeepNear(rows.data() + static_cast<std::int64_t>(place) * this->Dimension, rows.data(),
      this->Dimension, static_cast<double>(list[this->Neighbors - 1].square), rounding, others);
    SquaredDistances(this->Places(), this->Scales, place, others.data(), others.size(), squares);
    for (std::size_t i = 0; i < others.size(); ++i)
    {
      Insert(list, this->Neighbors, { static_cast<float>(squares[i]), others[i], true });
    }
  }

  /// Adds the nearest points of each point's cell to its list.
  void SearchCells(const std::vector<std::uint32_t>& cells)
  {
    const std::int64_t level = this->Levels();
    ParallelFor(std::int64_t{ 1 } << level, this->Threads,
      [&](std::int64_t cell)
      {
        const std::int64_t begin = this->CellBegin(cell, level);
        this->SearchCell(cells.data() + begin, this->CellBegin(cell + 1, level) - begin);
      });
  }

  void SearchCell(const std::uint32_t* places, std::int64_t size)
  {
    // The nearest have the largest x y - y^2 / 2; this is x y - 1/2 of unit vectors.
    using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Matrix rows(size, this->Dimension);
    for (std::int64_t i = 0; i < size; ++i)
    {
      const float* row = this->Row(places[i]);
      for (std::int64_t c = 0; c < this->Dimension; ++c)
      {
        rows(i, c) =
          static_cast<float>(static_cast<double>(row[c]) * this->Scales[places[i]] - this->Mean[c]);
      }
    }
    const Eigen::RowVectorXf halfSquares = rows.rowwise().squaredNorm() * -0.5F;
    Matrix scores(size, size);
    scores.rowwise() = halfSquares;
    MultiplyMatrices(size, size, this->Dimension, 1, { rows.data(), this->Dimension },
      { rows.data(), this->Dimension, true }, scores.data(), size, true);
    NeighborCandidates candidates;
    std::vector<std::uint32_t> others;
    std::vector<double> squares;
    for (std::int64_t i = 0; i < size; ++i)
    {
      candidates.Begin(this->Neighbors + 1, 0);
      candidates.Append(scores.data() + i * size, size, 0);
      candidates.Finish();
      others.clear();
      for (std::size_t c = 0; c < candidates.Count(); ++c)
      {
        if (candidates.Index()[c] != i)
        {
          others.push_back(places[candidates.Index()[c]]);
        }
      }
      this->InsertAll(places[i], others, squares);
    }
  }

  /// The places that have each place in their lists, up to `Neighbors` of them.
  ReverseLists Reverse() const
  {
    ReverseLists reverse;
    reverse.begin.assign(ToIndex(this->Count) + 1, 0);
    for (const Candidate& candidate : this->Lists)
    {
      std::int64_t& count = reverse.begin[ToIndex(candidate.place) + 1];
      count += count < this->Neighbors ? 1 : 0;
    }
    std::partial_sum(reverse.begin.begin(), reverse.begin.end(), reverse.begin.begin());
    std::vector<std::int64_t> next(reverse.begin.begin(), reverse.begin.end() - 1);
    reverse.places.resize(reverse.begin.back());
    for (std::size_t e = 0; e < this->Lists.size(); ++e)
    {
      const std::size_t to = this->Lists[e].place;
      if (next[to] < reverse.begin[to + 1])
      {
        reverse.places[next[to]++] =
          static_cast<std::uint32_t>(e / static_cast<std::size_t>(this->Neighbors));
      }
    }
    return reverse;
  }

  /// The lists as they are now, whose places are then no longer new.
  PlaceLists Publish()
  {
    PlaceLists lists{ std::vector<std::uint32_t>(this->Lists.size()),
      std::vector<int>(this->Count) };
    ForBlocks(this->Count, GroupPoints, this->Threads,
      [&](std::int64_t begin, std::int64_t end)
      {
        for (std::int64_t i = begin; i < end; ++i)
        {
          Candidate* list = this->Lists.data() + i * this->Neighbors;
          std::uint32_t* first = lists.places.data() + i * this->Neighbors;
          std::uint32_t* last = first + this->Neighbors;
          for (int k = 0; k < this->Neighbors; ++k)
          {
            const bool isNew = std::exchange(list[k].isNew, false);
            *(isNew ? first++ : --last) = list[k].place;
            lists.news[i] += isNew ? 1 : 0;
          }
        }
      });
    return lists;
  }

  /// Tries, for each point, the neighbors of its neighbors and of the points of which it is a
  /// neighbor, unless they were tried before. Returns the share of neighbors that were replaced.
  double TryNeighborsOfNeighbors()
  {
    const ReverseLists reverse = this->Reverse();
    const PlaceLists before = this->Publish();
    std::atomic<std::int64_t> replaced = 0;
    ForBlocks(this->Count, GroupPoints, this->Threads,
      [&](std::int64_t begin, std::int64_t end)
      {
        SeenPlaces seen;
        std::vector<std::uint32_t> others;
        std::vector<double> squares;
        for (std::int64_t i = begin; i < end; ++i)
        {
          const auto place = static_cast<std::uint32_t>(i);
          this->ListNeighborsOfNeighbors(place, before, reverse, seen, others);
          this->InsertAll(place, others, squares);
          const Candidate* now = this->Lists.data() + i * this->Neighbors;
          replaced += std::count_if(
            now, now + this->Neighbors, [](const Candidate& candidate) { return candidate.isNew; });
        }
      });
    return static_cast<double>(replaced) / static_cast<double>(this->Lists.size());
  }

  void ListNeighborsOfNeighbors(std::uint32_t place, const PlaceLists& lists,
    const ReverseLists& reverse, SeenPlaces& seen, std::vector<std::uint32_t>& others) const
  {
    const auto listOf = [&](std::uint32_t of)
    { return lists.places.data() + static_cast<std::int64_t>(of) * this->Neighbors; };
    seen.Clear();
    seen.Add(place);
    others.clear();
    const std::uint32_t* own = listOf(place);
    for (int k = 0; k < this->Neighbors; ++k)
    {
      seen.Add(own[k]);
    }
    // What is neither new in one list nor in the other was tried in the last pass.
    const auto add = [&](std::uint32_t between, bool all)
    {
      const std::uint32_t* list = listOf(between);
      const int count = all ? this->Neighbors : lists.news[between];
      for (int k = 0; k < count; ++k)
      {
        if (seen.Add(list[k]))
        {
          others.push_back(list[k]);
        }
      }
    };
    for (int k = 0; k < this->Neighbors; ++k)
    {
      add(own[k], k < lists.news[place]);
    }
    for (std::int64_t e = reverse.begin[place]; e < reverse.begin[ToIndex(place) + 1]; ++e)
    {
      const std::uint32_t from = reverse.places[e];
      if (seen.Add(from))
      {
        others.push_back(from);
      }
      add(from, false);
    }
  }

  /// The lists in the order of the points.
  NeighborLists Finish() const
  {
    NeighborLists lists = NeighborLists::Of(this->Count, this->Neighbors);
    ForBlocks(this->Count, GroupPoints, this->Threads,
      [&](std::int64_t begin, std::int64_t end)
      {
        std::vector<std::uint32_t> others;
        std::vector<double> squares;
        FoundNeighbors found;
        for (std::int64_t i = begin; i < end; ++i)
        {
          const Candidate* list = this->Lists.data() + i * this->Neighbors;
          others.clear();
          std::transform(list, list + this->Neighbors, std::back_inserter(others),
            [](const Candidate& candidate) { return candidate.place; });
          SquaredDistances(this->Places(), this->Scales, i, others.data(), others.size(), squares);
          found.clear();
          for (std::size_t k = 0; k < others.size(); ++k)
          {
            found.emplace_back(DistanceOf(squares[k], this->Metric), this->Order[others[k]]);
          }
          KeepNearest(found, this->Order[i], lists);
        }
      });
    return lists;
  }
};

}

NeighborLists FindNeighborsApproximately(const PointView& points, PointMetric metric, int count,
  std::uint64_t seed, int threads, const Progress& progress)
{
  if (points.count <= 4 * CellPoints || count > CellPoints / 4)
  {
    return FindNeighbors(points, metric, count, threads, progress);
  }
  CheckPoints(points, "neighbors");
  ThrowIf<OptionError>(count < 1, "neighbors: expected at least 1, found ", count, ".");
  // Squared distances of cells are in single precision, which must hold them.
  const double limit = std::sqrt(static_cast<double>(std::numeric_limits<float>::max()) / 8 /
                                 static_cast<double>(points.dimension));
  const std::int64_t numbers = points.count * points.dimension;
  if (metric == PointMetric::Euclidean &&
      std::any_of(points.values, points.values + numbers,
        [limit](float number) { return std::abs(number) > limit; }))
  {
    return FindNeighbors(points, metric, count, threads, progress);
  }
  InitializeTarget();
  const SingleThreadedBlas blas;
  return NeighborDescent(points, metric, count, seed, threads).Find(progress);
}

double NeighborRecall(const PointView& points, PointMetric metric, const NeighborLists& lists,
  std::int64_t sample, int threads)
{
  CheckPoints(points, "neighbors");
  ThrowIf<OptionError>(lists.points != points.count || lists.count < 1 || sample < 1,
    "Recall of neighbors: expected lists of ", points.count,
    " points and a sample of at least 1, found ", lists.points, " and ", sample, ".");
  InitializeTarget();
  const std::int64_t chosen = std::min(sample, points.count);
  const std::vector<double> scales = ScalesOf(points, metric);
  std::vector<std::uint32_t> all(points.count);
  std::iota(all.begin(), all.end(), 0U);
  std::atomic<std::int64_t> found = 0;
  ParallelFor(chosen, threads,
    [&](std::int64_t number)
    {
      const std::int64_t i = number * points.count / chosen;
      std::vector<double> squares;
      SquaredDistances(points, scales, i, all.data(), all.size(), squares);
      squares[i] = std::numeric_limits<double>::infinity();
      std::vector<double> sorted = squares;
      const auto last = sorted.begin() + (lists.count - 1);
      std::nth_element(sorted.begin(), last, sorted.end());
      const std::uint32_t* list = lists.index.data() + i * lists.count;
      found += std::count_if(
        list, list + lists.count, [&](std::uint32_t j) { return squares[j] <= *last; });
    });
  return static_cast<double>(found) / static_cast<double>(chosen * lists.count);
}

}
