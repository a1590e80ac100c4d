#include "HeadComposition.h"

#include "Base/ParallelProgress.h"
#include "CircuitFactors.h"
#include "Numerics/MatrixProduct.h"
#include "Weights/ArchitectureLimits.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Heads of the first layer that are multiplied with all of the second at a time.
constexpr std::int64_t BlockHeads = 8;

/// The heads of a layer as the first and as the second of a pair, all with norm 1: [H d_head,
/// d_model].
struct LayerFactors
{
  FloatMatrix from; ///< R W_O
  FloatMatrix to;   ///< transposed W_Q R^T, W_K R^T or W_V R^T
};

/// Rows of a head, scaled to norm 1 unless they are 0.
FloatMatrix Normalized(const DoubleMatrix& rows)
{
  const double norm = rows.norm();
  return (rows * (norm > 0 ? 1 / norm : 0)).cast<float>();
}

DoubleMatrix ReadingRows(const ProcessedHead& head, CompositionKind kind)
{
  switch (kind)
  {
    case CompositionKind::Query:
      return ColumnRoot(head.key) * head.query.transpose();
    case CompositionKind::Key:
      return ColumnRoot(head.query) * head.key.transpose();
    case CompositionKind::Value:
      break;
  }
  return RowRoot(head.output) * head.value.transpose();
}

LayerFactors FactorsOf(const ProcessedAttention& attention, CompositionKind kind)
{
  const Eigen::Index dimension = attention.heads[0].output.rows();
  const Eigen::Index d = attention.heads[0].output.cols();
  const auto rows = dimension * static_cast<std::int64_t>(attention.heads.size());
  LayerFactors factors{ FloatMatrix(rows, d), FloatMatrix(rows, d) };
  Eigen::Index row = 0;
  for (const ProcessedHead& head : attention.heads)
  {
    factors.from.middleRows(row, dimension) =
      Normalized(Product(ColumnRoot(head.value), head.output));
    factors.to.middleRows(row, dimension) = Normalized(ReadingRows(head, kind));
    row += dimension;
  }
  return factors;
}

/// Some heads of a layer with all of a later one.
struct Task
{
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t begin = 0; ///< heads of `from`
  std::int64_t end = 0;
};

std::vector<Task> TasksOf(const TransformerConfig& config)
{
  std::vector<Task> tasks;
  for (std::int64_t from = 0; from < config.layers; ++from)
  {
    for (std::int64_t begin = 0; begin < config.heads; begin += BlockHeads)
    {
      for (std::int64_t to = from + 1; to < config.layers; ++to)
      {
        tasks.push_back({ from, to, begin, std::min(begin + BlockHeads, config.heads) });
      }
    }
  }
  return tasks;
}

/// Fills in the pairs of a task.
void Multiply(const TransformerConfig& config, const std::vector<LayerFactors>& factors,
  const Task& task, std::vector<ComposedHeads>& pairs)
{
  const std::int64_t dimension = config.headDimension;
  const std::int64_t d = config.modelDimension;
  const FloatMatrix& to = factors[task.to].to;
  FloatMatrix product((task.end - task.begin) * dimension, to.rows());
  MultiplyMatrices(product.rows(), product.cols(), d, 1,
    { factors[task.from].from.data() + task.begin * dimension * d, d }, { to.data(), d, true },
    product.data(), product.cols());
  // Layers before have all later ones above them, layer l (L - 1 - l) of them.
  const std::int64_t before = task.from * (config.layers - 1) - task.from * (task.from - 1) / 2;
  const std::int64_t above = config.layers - 1 - task.from;
  for (std::int64_t head = task.begin; head < task.end; ++head)
  {
    const std::int64_t row = before * config.heads + head * above + task.to - task.from - 1;
    for (std::int64_t other = 0; other < config.heads; ++other)
    {
      const double squares =
        product.block((head - task.begin) * dimension, other * dimension, dimension, dimension)
          .cast<double>()
          .squaredNorm();
      pairs[row * config.heads + other] = { static_cast<std::int32_t>(task.from),
        static_cast<std::int32_t>(head), static_cast<std::int32_t>(task.to),
        static_cast<std::int32_t>(other), std::sqrt(squares) };
    }
  }
}

}

double CompositionBaseline(const Transformer& model)
{
  return 1 / std::sqrt(static_cast<double>(model.GetConfig().modelDimension));
}

std::int64_t CompositionPairs(const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  return config.layers * (config.layers - 1) / 2 * config.heads * config.heads;
}

std::vector<ComposedHeads> FindHeadComposition(
  const Transformer& model, const HeadCompositionOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  RefuseSwitches(config, "composition of heads", { ArchitectureSwitch::Mixers });
  const ProcessedWeights weights(model, options.steps, options.threads);
  const SingleThreadedBlas blas;
  std::vector<LayerFactors> factors(config.layers);
  ParallelFor(config.layers, options.threads, options.progress.Part(0, 0.5),
    [&](std::int64_t layer)
    {
      const ProcessedAttention attention = weights.Attention(layer);
      RequireFinite(attention, layer);
      factors[layer] = FactorsOf(attention, options.kind);
    });
  std::vector<ComposedHeads> pairs(CompositionPairs(model));
  const std::vector<Task> tasks = TasksOf(config);
  ParallelFor(tasks.size(), options.threads, options.progress.Part(0.5, 1),
    [&](std::int64_t i) { Multiply(config, factors, tasks[i], pairs); });
  return pairs;
}

}
