#include "BeliefStates.h"

#include "Base/Index.h"
#include "Run/RecordTransformer.h"

#include <cmath>
#include <utility>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

constexpr Belief Uniform = { 1. / 3, 1. / 3, 1. / 3 };
/// Directions of the residual stream with less than this share of the largest variance are left
/// out.
constexpr double SmallestVariance = 1e-12;

/// The probabilities of each state together with a symbol, after a belief.
Belief Joint(const Mess3& process, const Belief& belief, std::int64_t symbol)
{
  Belief joint = {};
  for (std::int64_t to = 0; to < Mess3States; ++to)
  {
    for (std::int64_t from = 0; from < Mess3States; ++from)
    {
      joint[to] += belief[from] * process.Transition(symbol, from, to);
    }
  }
  return joint;
}

double Sum(const Belief& joint)
{
  return joint[0] + joint[1] + joint[2];
}

Belief Updated(const Mess3& process, const Belief& belief, std::int64_t symbol)
{
  Belief joint = Joint(process, belief, symbol);
  const double sum = Sum(joint);
  for (double& share : joint)
  {
    share /= sum;
  }
  return joint;
}

/// The inverse of a symmetric matrix in the directions in which it is not 0.
Eigen::MatrixXd PseudoInverse(const Eigen::MatrixXd& matrix)
{
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  const Eigen::VectorXd& values = solver.eigenvalues();
  const double least = SmallestVariance * values.maxCoeff();
  const Eigen::VectorXd inverse =
    values.unaryExpr([least](double value) { return value > least ? 1 / value : 0; });
  return solver.eigenvectors() * inverse.asDiagonal() * solver.eigenvectors().transpose();
}

}

double Mess3::Transition(std::int64_t symbol, std::int64_t from, std::int64_t to) const
{
  const double go = from == to ? 1 - 2 * this->x : this->x;
  return go * (symbol == to ? this->alpha : (1 - this->alpha) / 2);
}

std::vector<Belief> BeliefsAfter(const Mess3& process, const std::vector<std::int64_t>& symbols)
{
  std::vector<Belief> beliefs;
  beliefs.reserve(symbols.size());
  Belief belief = Uniform;
  for (const std::int64_t symbol : symbols)
  {
    belief = Updated(process, belief, symbol);
    beliefs.push_back(belief);
  }
  return beliefs;
}

Belief NextSymbol(const Mess3& process, const Belief& belief)
{
  Belief probabilities = {};
  for (std::int64_t symbol = 0; symbol < Mess3States; ++symbol)
  {
    probabilities[symbol] = Sum(Joint(process, belief, symbol));
  }
  return probabilities;
}

std::vector<double> OptimalLosses(const Mess3& process, const std::vector<std::int64_t>& symbols)
{
  std::vector<double> losses;
  Belief belief = Uniform;
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
  {
    belief = Updated(process, belief, symbols[i]);
    losses.push_back(-std::log(NextSymbol(process, belief)[symbols[i + 1]]));
  }
  return losses;
}

BeliefRegression RegressBeliefs(
  std::vector<Belief> beliefs, const float* rows, std::int64_t dimension)
{
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Points = Eigen::Matrix<double, Eigen::Dynamic, Mess3States, Eigen::RowMajor>;
  BeliefRegression result;
  result.beliefs = std::move(beliefs);
  const std::int64_t count = result.beliefs.size();
  result.predicted.resize(result.beliefs.size());
  if (count == 0)
  {
    return result;
  }
  const Eigen::Map<const Points> points(result.beliefs[0].data(), count, Mess3States);
  Eigen::MatrixXd stream = Eigen::Map<const RowMajor>(rows, count, dimension).cast<double>();
  stream.rowwise() -= stream.colwise().mean().eval();
  const Eigen::RowVector3d mean = points.colwise().mean();
  const Points centered = points.rowwise() - mean;
  const Eigen::MatrixXd covariance = stream.transpose() * stream;
  const Eigen::MatrixXd slopes = PseudoInverse(covariance) * (stream.transpose() * centered);
  const Points fitted = stream * slopes;
  Eigen::Map<Points>(result.predicted[0].data(), count, Mess3States) = fitted.rowwise() + mean;
  const double total = centered.squaredNorm();
  result.r2 = total > 0 ? 1 - (centered - fitted).squaredNorm() / total : 0;
  return result;
}

BeliefRegression RegressBeliefs(const Mess3& process, const Transformer& model,
  const std::vector<std::vector<std::int64_t>>& sequences, int threads)
{
  std::vector<Belief> beliefs;
  for (const std::vector<std::int64_t>& sequence : sequences)
  {
    const std::vector<Belief> some = BeliefsAfter(process, sequence);
    beliefs.insert(beliefs.end(), some.begin(), some.end());
  }
  RecordOptions options;
  options.queriesAndKeys = options.values = false;
  options.residual = true;
  options.layers = { model.GetConfig().layers - 1 };
  options.threads = threads;
  TransformerInput input;
  input.tokens = sequences;
  const Recording recording = RecordTransformer(model, input, options);
  const SharedMatrix& residual = recording.residual.back();
  return RegressBeliefs(std::move(beliefs), residual.Row(0), residual.columns);
}

}
