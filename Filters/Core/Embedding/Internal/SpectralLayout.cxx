#include "SpectralLayout.h"

#include "Base/Index.h"
#include "Embedding/Principal.h"
#include "HashedNumbers.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

/// Rows are given to threads, and sums over rows are added up, in groups of this size.
constexpr std::int64_t GroupRows = 2048;

Eigen::VectorXd RandomVector(std::int64_t size, std::uint64_t seed)
{
  const HashedNumbers numbers(seed, 1);
  Eigen::VectorXd vector(size);
  for (std::int64_t i = 0; i < size; ++i)
  {
    vector[i] = numbers.Signed(static_cast<std::uint64_t>(i));
  }
  return vector;
}

/// The normalized adjacency matrix D^-1/2 G D^-1/2 of a connected graph. Its eigenvalues are from
/// -1 to 1, of which 1 is one.
class NormalizedAdjacency
{
public:
  NormalizedAdjacency(const FuzzyGraph& graph, int threads)
    : Graph(graph)
    , Threads(threads)
    , InverseRoots(graph.points)
    , Roots(graph.points)
  {
    this->ForRows(
      [&](std::int64_t begin, std::int64_t rows)
      {
        for (std::int64_t i = begin; i < begin + rows; ++i)
        {
          double degree = 0;
          for (std::int64_t e = graph.begin[i]; e < graph.begin[ToIndex(i) + 1]; ++e)
          {
            degree += static_cast<double>(graph.value[e]);
          }
          this->Roots[i] = std::sqrt(degree);
          this->InverseRoots[i] = degree > 0 ? 1 / this->Roots[i] : 0;
        }
      });
    this->Roots /= std::max(this->Roots.norm(), 1e-300);
  }

  std::int64_t Size() const { return this->Graph.points; }
  /// The eigenvector of the eigenvalue 1, of length 1.
  const Eigen::VectorXd& Known() const { return this->Roots; }

  /// scale (this matrix) x + shift x - behind, if there is something behind.
  Eigen::VectorXd Multiply(const Eigen::VectorXd& x, double scale = 1, double shift = 0,
    const Eigen::VectorXd* behind = nullptr) const
  {
    const Eigen::VectorXd scaled = x.cwiseProduct(this->InverseRoots);
    Eigen::VectorXd product(x.size());
    this->ForRows(
      [&](std::int64_t begin, std::int64_t rows)
      {
        for (std::int64_t i = begin; i < begin + rows; ++i)
        {
          double sum = 0;
          for (std::size_t e = this->Graph.begin[i]; e < ToIndex(this->Graph.begin[ToIndex(i) + 1]);
            ++e)
          {
            sum += static_cast<double>(this->Graph.value[e]) * scaled[this->Graph.index[e]];
          }
          product[i] = scale * sum * this->InverseRoots[i] + shift * x[i];
          product[i] -= behind ? (*behind)[i] : 0;
        }
      });
    return product;
  }

  /// The Chebyshev polynomial of this degree of the matrix, moved such that eigenvalues from -1 to
  /// `edge` stay within +-1 and those above grow.
  Eigen::VectorXd Filter(const Eigen::VectorXd& x, int degree, double edge) const
  {
    const double scale = 2 / (1 + edge);
    const double shift = (1 - edge) / (1 + edge);
    Eigen::VectorXd behind = x;
    Eigen::VectorXd last = this->Multiply(x, scale, shift);
    for (int k = 1; k < degree; ++k)
    {
      Eigen::VectorXd next = this->Multiply(last, 2 * scale, 2 * shift, &behind);
      behind.swap(last);
      last.swap(next);
    }
    return last;
  }

  /// Calls function(first row, rows) for all groups of rows.
  template<class Function>
  void ForRows(const Function& function) const
  {
    ForBlocks(this->Graph.points, GroupRows, this->Threads,
      [&](std::int64_t begin, std::int64_t end) { function(begin, end - begin); });
  }

private:
  const FuzzyGraph& Graph;
  int Threads;
  Eigen::VectorXd InverseRoots;
  Eigen::VectorXd Roots; ///< of the degrees
};

/// An orthogonal basis that grows by multiplication with a symmetric matrix, which has become
/// tridiagonal in it, and that leaves out an eigenvector that is known.
class LanczosBasis
{
public:
  LanczosBasis(const NormalizedAdjacency& matrix, std::int64_t mostSteps, Eigen::VectorXd start,
    std::uint64_t seed)
    : Matrix(matrix)
    , Seed(seed)
    // Memory is taken as it fills.
    , Vectors(matrix.Size(), std::min(mostSteps + 2, matrix.Size() + 1))
  {
    this->Vectors.col(0) = matrix.Known();
    this->Count = 1;
    this->Append(std::move(start));
  }

  std::int64_t Steps() const { return this->Diagonal.size(); }

  /// One more step: a further row and column of the tridiagonal matrix. `multiply` is the matrix.
  template<class Multiply>
  void Step(const Multiply& multiply)
  {
    const Eigen::VectorXd last = this->Vectors.col(this->Count - 1);
    Eigen::VectorXd next = multiply(last);
    this->Diagonal.push_back(next.dot(last));
    this->Couplings.push_back(this->Append(std::move(next)));
  }

  /// Whether it is a basis of the whole space.
  bool IsComplete() const { return this->Count > this->Matrix.Size(); }

  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> SolveTridiagonal() const
  {
    const std::int64_t steps = this->Steps();
    const Eigen::VectorXd diagonal =
      Eigen::Map<const Eigen::VectorXd>(this->Diagonal.data(), steps);
    const Eigen::VectorXd couplings = Eigen::Map<const Eigen::VectorXd>(
      this->Couplings.data(), std::max<std::int64_t>(steps - 1, 0));
    Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
    solver.computeFromTridiagonal(diagonal, couplings);
    return solver;
  }

  double LastCoupling() const { return this->Couplings.back(); }
  auto Krylov() const { return this->Vectors.middleCols(1, this->Steps()); }

private:
  const NormalizedAdjacency& Matrix;
  std::uint64_t Seed;
  Eigen::MatrixXd Vectors;
  std::int64_t Count = 0; ///< of vectors
  std::uint64_t Drawn = 0;
  std::vector<double> Diagonal;
  std::vector<double> Couplings;

  /// Removes from `vector` its part in the space of the basis.
  void Orthogonalize(Eigen::VectorXd& vector) const
  {
    Eigen::MatrixXd partial(this->Count, BlockCount(vector.size(), GroupRows));
    this->Matrix.ForRows(
      [&](std::int64_t begin, std::int64_t rows)
      {
        partial.col(begin / GroupRows).noalias() =
          this->Vectors.block(begin, 0, rows, this->Count).transpose() *
          vector.segment(begin, rows);
      });
    const Eigen::VectorXd parts = partial.rowwise().sum();
    this->Matrix.ForRows(
      [&](std::int64_t begin, std::int64_t rows)
      {
        vector.segment(begin, rows).noalias() -=
          this->Vectors.block(begin, 0, rows, this->Count) * parts;
      });
  }

  /// Makes `vector` the next of the basis and returns the length of what was new in it: 0 if that
  /// was nothing but rounding, and a random vector is taken instead.
  double Append(Eigen::VectorXd vector)
  {
    const double before = vector.norm();
    double length = 0;
    for (int attempt = 0; attempt < 3 && !this->IsComplete(); ++attempt)
    {
      this->Orthogonalize(vector);
      this->Orthogonalize(vector);
      length = vector.norm();
      if (length > 1e-13 * before)
      {
        break;
      }
      length = 0;
      vector = RandomVector(vector.size(), this->Seed + ++this->Drawn);
    }
    this->Vectors.col(this->Count++) = vector / std::max(vector.norm(), 1e-300);
    return length;
  }
};

/// The largest eigenvalues, falling, and their eigenvectors, but for the known one.
struct LargestPairs
{
  Eigen::VectorXd values; ///< more than there are vectors, of which the last are inaccurate
  Eigen::MatrixXd vectors;
  bool isAccurate = false;
};

/// Lanczos' method, until the residuals of the `wanted` largest are at most `tolerance` times the
/// largest, or after `mostSteps`, at least `wanted`.
template<class Multiply>
LargestPairs FindLargest(const NormalizedAdjacency& matrix, const Multiply& multiply,
  Eigen::VectorXd start, std::int64_t wanted, double tolerance, std::int64_t mostSteps,
  std::uint64_t seed)
{
  mostSteps = std::max(mostSteps, wanted);
  LanczosBasis basis(matrix, mostSteps, std::move(start), seed);
  std::int64_t check = std::max<std::int64_t>(wanted, 10);
  while (true)
  {
    basis.Step(multiply);
    const std::int64_t steps = basis.Steps();
    const bool isLast = basis.IsComplete() || steps == mostSteps;
    if (!isLast && steps < check)
    {
      continue;
    }
    check = steps + std::max<std::int64_t>(steps / 4, 1);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver = basis.SolveTridiagonal();
    const double residual =
      std::abs(basis.LastCoupling()) *
      solver.eigenvectors().bottomRightCorner(1, wanted).cwiseAbs().maxCoeff();
    const bool isAccurate =
      basis.IsComplete() || residual <= tolerance * std::abs(solver.eigenvalues()[steps - 1]);
    if (isLast || isAccurate)
    {
      return { solver.eigenvalues().reverse(),
        basis.Krylov() * solver.eigenvectors().rightCols(wanted).rowwise().reverse(), isAccurate };
    }
  }
}

void NormalizeColumns(Eigen::MatrixXd& vectors)
{
  for (Eigen::Index c = 0; c < vectors.cols(); ++c)
  {
    Eigen::Index largest = 0;
    vectors.col(c).cwiseAbs().maxCoeff(&largest);
    vectors.col(c) *= (vectors(largest, c) < 0 ? -1 : 1) / vectors.col(c).norm();
  }
}

/// The mean points of the parts of a graph, projected to their `dimensions` principal components.
/// For all metrics but Euclidean, means of unit vectors.
Eigen::MatrixXd PartCenters(const PointView& points, PointMetric metric,
  const std::vector<std::vector<std::uint32_t>>& parts, int dimensions)
{
  const std::int64_t count = parts.size();
  if (count == 1)
  {
    return Eigen::MatrixXd::Zero(1, dimensions);
  }
  Eigen::MatrixXd means = Eigen::MatrixXd::Zero(points.dimension, count);
  for (Eigen::Index part = 0; part < count; ++part)
  {
    const std::vector<std::uint32_t>& ofPart = parts[part];
    for (const std::uint32_t point : ofPart)
    {
      const Eigen::VectorXd row =
        Eigen::Map<const Eigen::VectorXf>(points.Row(point), points.dimension).cast<double>();
      const double length = metric == PointMetric::Euclidean ? 1 : row.norm();
      means.col(part) += row / (std::max(length, 1e-300) * static_cast<double>(ofPart.size()));
    }
  }
  const Eigen::MatrixXf rows = means.cast<float>();
  const PointView view{ rows.data(), count, points.dimension };
  const std::vector<float> centers =
    Project(view, FindPrincipalComponents(view, dimensions), dimensions);
  return Eigen::Map<const Eigen::MatrixXf>(centers.data(), dimensions, count)
    .transpose()
    .cast<double>();
}

/// Half of the distance from each center to the nearest other one; 1 if there is no other.
Eigen::VectorXd CenterRadii(const Eigen::MatrixXd& centers)
{
  Eigen::VectorXd radii = Eigen::VectorXd::Ones(centers.rows());
  for (Eigen::Index i = 0; centers.rows() > 1 && i < centers.rows(); ++i)
  {
    Eigen::VectorXd squares = (centers.rowwise() - centers.row(i)).rowwise().squaredNorm();
    squares[i] = std::numeric_limits<double>::infinity();
    radii[i] = std::sqrt(squares.minCoeff()) / 2;
  }
  return radii;
}

/// The coordinates of a connected part, within [-1, 1].
Eigen::MatrixXd PartLayout(const FuzzyGraph& graph, int dimensions, std::uint64_t seed, int threads)
{
  constexpr double tolerance = 1e-4;
  // Less than the optimization takes.
  const std::int64_t products = std::clamp<std::int64_t>(
    4'000'000'000 / (static_cast<std::int64_t>(graph.index.size()) + 1), 100, 1000);
  Eigen::MatrixXd layout = Eigen::MatrixXd::Zero(graph.points, dimensions);
  if (graph.points > dimensions + 1)
  {
    const Eigenpairs pairs =
      LaplacianEigenpairs(graph, dimensions + 1, tolerance, products, seed, threads);
    layout = pairs.vectors.rightCols(dimensions);
    layout /= layout.cwiseAbs().maxCoeff();
  }
  return layout;
}

std::vector<std::vector<std::uint32_t>> ListParts(const FuzzyGraph& graph)
{
  std::vector<std::vector<std::uint32_t>> parts;
  std::uint32_t point = 0;
  for (const std::uint32_t part : ConnectedParts(graph))
  {
    parts.resize(std::max<std::size_t>(parts.size(), part + 1));
    parts[part].push_back(point++);
  }
  return parts;
}

}

Eigenpairs LaplacianEigenpairs(const FuzzyGraph& graph, int count, double tolerance,
  std::int64_t mostProducts, std::uint64_t seed, int threads)
{
  constexpr std::int64_t plainSteps = 40;
  constexpr int degree = 10;
  const std::int64_t wanted = std::min<std::int64_t>(count, graph.points) - 1;
  const NormalizedAdjacency matrix(graph, threads);
  Eigenpairs pairs{ Eigen::VectorXd::Zero(wanted + 1), Eigen::MatrixXd(graph.points, wanted + 1) };
  pairs.vectors.col(0) = matrix.Known();
  if (wanted > 0)
  {
    LargestPairs largest = FindLargest(
      matrix, [&matrix](const Eigen::VectorXd& x) { return matrix.Multiply(x); },
      RandomVector(graph.points, seed), wanted, tolerance, std::min(plainSteps, mostProducts),
      seed);
    if (!largest.isAccurate && mostProducts > plainSteps)
    {
      // Eigenvalues are near 1 and near each other. A filter moves those that are wanted apart.
      const double edge =
        largest.values[std::min<Eigen::Index>(wanted + 1, largest.values.size() - 1)];
      largest = FindLargest(
        matrix, [&matrix, edge](const Eigen::VectorXd& x)
        { return matrix.Filter(x, degree, edge); }, largest.vectors.rowwise().sum(), wanted,
        tolerance, (mostProducts - plainSteps) / degree, seed);
    }
    pairs.vectors.rightCols(wanted) = largest.vectors;
    for (Eigen::Index c = 1; c <= wanted; ++c)
    {
      const Eigen::VectorXd vector = pairs.vectors.col(c);
      pairs.values[c] = 1 - vector.dot(matrix.Multiply(vector));
    }
  }
  NormalizeColumns(pairs.vectors);
  return pairs;
}

std::vector<float> SpectralLayout(const PointView& points, PointMetric metric,
  const FuzzyGraph& graph, int dimensions, std::uint64_t seed, int threads)
{
  constexpr double noise = 1e-5; // of the extent
  constexpr double extent = 10;
  const std::vector<std::vector<std::uint32_t>> parts = ListParts(graph);
  const Eigen::MatrixXd centers = PartCenters(points, metric, parts, dimensions);
  const Eigen::VectorXd radii = CenterRadii(centers);
  Eigen::MatrixXd layout(graph.points, dimensions);
  for (std::size_t part = 0; part < parts.size(); ++part)
  {
    const auto row = static_cast<Eigen::Index>(part);
    const Eigen::MatrixXd ofPart =
      parts.size() == 1 ? PartLayout(graph, dimensions, seed, threads)
                        : PartLayout(PartOf(graph, parts[part]), dimensions, seed, threads);
    for (std::size_t i = 0; i < parts[part].size(); ++i)
    {
      layout.row(parts[part][i]) =
        centers.row(row) + radii[row] * ofPart.row(static_cast<Eigen::Index>(i));
    }
  }
  const HashedNumbers numbers(seed, 2);
  layout *= 1 / std::max(layout.cwiseAbs().maxCoeff(), 1e-300);
  std::vector<float> result(graph.points * dimensions);
  for (Eigen::Index c = 0; c < dimensions; ++c)
  {
    for (Eigen::Index i = 0; i < graph.points; ++i)
    {
      layout(i, c) += noise * numbers.Signed(static_cast<std::uint64_t>(i * dimensions + c));
    }
    const double least = layout.col(c).minCoeff();
    const double scale = extent / std::max(layout.col(c).maxCoeff() - least, noise);
    for (Eigen::Index i = 0; i < graph.points; ++i)
    {
      result[i * dimensions + c] = static_cast<float>((layout(i, c) - least) * scale);
    }
  }
  return result;
}

}
