#include "SpectralLayout.h"

#include "HashedNumbers.h"
#include "Index.h"
#include "Parallel.h"
#include "Principal.h"

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

/// The normalized adjacency matrix D^-1/2 G D^-1/2, without its eigenvector of eigenvalue 1, and
/// an orthogonal basis that grows by its powers.
class LanczosBasis
{
public:
  LanczosBasis(const FuzzyGraph& graph, std::int64_t mostSteps, std::uint64_t seed, int threads)
    : Graph(graph)
    , Numbers(seed, 1)
    , Threads(threads)
    , InverseRoots(graph.points)
    , Vectors(graph.points, std::min(mostSteps + 2, graph.points + 1)) // touched as it fills
  {
    Eigen::VectorXd roots(graph.points);
    this->ForRows(
      [&](std::int64_t, std::int64_t begin, std::int64_t rows)
      {
        for (std::int64_t i = begin; i < begin + rows; ++i)
        {
          double degree = 0;
          for (std::int64_t e = graph.begin[ToIndex(i)]; e < graph.begin[ToIndex(i) + 1]; ++e)
          {
            degree += static_cast<double>(graph.value[ToIndex(e)]);
          }
          roots[i] = std::sqrt(degree);
          this->InverseRoots[i] = degree > 0 ? 1 / roots[i] : 0;
        }
      });
    this->Vectors.col(0) = roots / roots.norm(); // the eigenvector that is known
    this->Count = 1;
    this->Append(this->RandomVector());
  }

  std::int64_t Steps() const { return static_cast<std::int64_t>(this->Diagonal.size()); }

  /// One more step: a further row and column of the tridiagonal matrix.
  void Step()
  {
    Eigen::VectorXd next = this->Product(this->Count - 1);
    this->Diagonal.push_back(next.dot(this->Vectors.col(this->Count - 1)));
    const double coupling = this->Append(std::move(next));
    this->Couplings.push_back(coupling);
  }

  bool IsComplete() const { return this->Count > this->Graph.points; }

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
  auto Known() const { return this->Vectors.col(0); }
  auto Krylov() const { return this->Vectors.middleCols(1, this->Steps()); }

private:
  const FuzzyGraph& Graph;
  HashedNumbers Numbers;
  int Threads;
  Eigen::VectorXd InverseRoots;
  Eigen::MatrixXd Vectors;
  std::int64_t Count = 0; ///< of vectors
  std::uint64_t Drawn = 0;
  std::vector<double> Diagonal;
  std::vector<double> Couplings;

  /// Calls function(group, first row, rows) for all groups of rows.
  template<class Function>
  void ForRows(const Function& function) const
  {
    const std::int64_t rows = this->Graph.points;
    ParallelFor((rows + GroupRows - 1) / GroupRows, this->Threads,
      [&](std::int64_t group)
      {
        const std::int64_t begin = group * GroupRows;
        function(group, begin, std::min(GroupRows, rows - begin));
      });
  }

  Eigen::VectorXd RandomVector()
  {
    Eigen::VectorXd vector(this->Graph.points);
    for (double& value : vector)
    {
      value = this->Numbers.Signed(this->Drawn++);
    }
    return vector;
  }

  Eigen::VectorXd Product(std::int64_t column) const
  {
    const Eigen::VectorXd scaled = this->Vectors.col(column).cwiseProduct(this->InverseRoots);
    Eigen::VectorXd product(this->Graph.points);
    this->ForRows(
      [&](std::int64_t, std::int64_t begin, std::int64_t rows)
      {
        for (std::int64_t i = begin; i < begin + rows; ++i)
        {
          double sum = 0;
          for (std::int64_t e = this->Graph.begin[ToIndex(i)];
            e < this->Graph.begin[ToIndex(i) + 1]; ++e)
          {
            sum += static_cast<double>(this->Graph.value[ToIndex(e)]) *
                   scaled[this->Graph.index[ToIndex(e)]];
          }
          product[i] = sum * this->InverseRoots[i];
        }
      });
    return product;
  }

  /// Removes from `vector` its part in the space of the basis.
  void Orthogonalize(Eigen::VectorXd& vector) const
  {
    const std::int64_t groups = (this->Graph.points + GroupRows - 1) / GroupRows;
    Eigen::MatrixXd partial(this->Count, groups);
    this->ForRows(
      [&](std::int64_t group, std::int64_t begin, std::int64_t rows)
      {
        partial.col(group).noalias() =
          this->Vectors.block(begin, 0, rows, this->Count).transpose() *
          vector.segment(begin, rows);
      });
    const Eigen::VectorXd parts = partial.rowwise().sum();
    this->ForRows(
      [&](std::int64_t, std::int64_t begin, std::int64_t rows)
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
      vector = this->RandomVector();
    }
    this->Vectors.col(this->Count++) = vector / std::max(vector.norm(), 1e-300);
    return length;
  }
};

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
  const auto count = static_cast<Eigen::Index>(parts.size());
  if (count == 1)
  {
    return Eigen::MatrixXd::Zero(1, dimensions);
  }
  Eigen::MatrixXd means = Eigen::MatrixXd::Zero(points.dimension, count);
  for (Eigen::Index part = 0; part < count; ++part)
  {
    const std::vector<std::uint32_t>& ofPart = parts[ToIndex(part)];
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
  // No more memory than for about 60 numbers a point in a large graph.
  const std::int64_t steps = std::clamp<std::int64_t>(60'000'000 / graph.points, 60, 400);
  Eigen::MatrixXd layout = Eigen::MatrixXd::Zero(graph.points, dimensions);
  if (graph.points > dimensions + 1)
  {
    const Eigenpairs pairs =
      LaplacianEigenpairs(graph, dimensions + 1, tolerance, steps, seed, threads);
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
  std::int64_t mostSteps, std::uint64_t seed, int threads)
{
  const std::int64_t wanted = std::min<std::int64_t>(count, graph.points) - 1;
  LanczosBasis basis(graph, std::max(mostSteps, wanted), seed, threads);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
  for (std::int64_t check = std::max<std::int64_t>(wanted, 10), done = 0; wanted > 0 && done == 0;)
  {
    basis.Step();
    const std::int64_t steps = basis.Steps();
    const bool last = basis.IsComplete() || steps == std::max(mostSteps, wanted);
    if (last || steps >= check)
    {
      check = steps + std::max<std::int64_t>(steps / 4, 1);
      solver = basis.SolveTridiagonal();
      const double residual =
        std::abs(basis.LastCoupling()) *
        solver.eigenvectors().bottomRightCorner(1, wanted).cwiseAbs().maxCoeff();
      done = last || residual <= tolerance ? 1 : 0;
    }
  }
  Eigenpairs pairs{ Eigen::VectorXd::Zero(wanted + 1), Eigen::MatrixXd(graph.points, wanted + 1) };
  pairs.vectors.col(0) = basis.Known();
  if (wanted > 0)
  {
    pairs.values.tail(wanted) = 1 - solver.eigenvalues().tail(wanted).reverse().array();
    pairs.vectors.rightCols(wanted).noalias() =
      basis.Krylov() * solver.eigenvectors().rightCols(wanted).rowwise().reverse();
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
  std::vector<float> result(ToIndex(graph.points * dimensions));
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
      result[ToIndex(i * dimensions + c)] = static_cast<float>((layout(i, c) - least) * scale);
    }
  }
  return result;
}

}
