#include "HeadComposition.h"

#include "CircuitFactors.h"
#include "Index.h"
#include "MatrixProduct.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

class Composition
{
public:
  Composition(const Transformer& model, const HeadCompositionOptions& options)
    : Options(options)
    , Layers(model.GetConfig().layers)
    , Heads(model.GetConfig().heads)
    , Dimension(model.GetConfig().headDimension)
    , ModelDimension(model.GetConfig().modelDimension)
    , Weights(model, options.steps, options.threads)
    , Pairs(CompositionPairs(model))
  {
  }

  std::vector<ComposedHeads> Find()
  {
    const SingleThreadedBlas blas;
    this->Factors.resize(this->Layers);
    this->Run(this->Layers, this->Options.progress.Part(0, 0.5),
      [this](std::int64_t layer)
      {
        const ProcessedAttention attention = this->Weights.Attention(layer);
        RequireFinite(attention, layer);
        this->Factors[layer] = FactorsOf(attention, this->Options.kind);
      });
    const std::vector<Task> tasks = this->Tasks();
    this->Run(tasks.size(), this->Options.progress.Part(0.5, 1),
      [&](std::int64_t i) { this->Multiply(tasks[i]); });
    return std::move(this->Pairs);
  }

private:
  const HeadCompositionOptions& Options;
  std::int64_t Layers;
  std::int64_t Heads;
  std::int64_t Dimension;
  std::int64_t ModelDimension;
  ProcessedWeights Weights;
  std::vector<LayerFactors> Factors;
  std::vector<ComposedHeads> Pairs;

  /// Runs tasks in steps of a few per thread.
  void Run(std::int64_t count, const Progress& progress,
    const std::function<void(std::int64_t)>& body) const
  {
    const std::int64_t step = std::int64_t{ 2 } * ThreadCount(this->Options.threads);
    for (std::int64_t first = 0; first < count; first += step)
    {
      const std::int64_t last = std::min(first + step, count);
      ParallelFor(last - first, this->Options.threads, [&](std::int64_t i) { body(first + i); });
      progress(last, count);
    }
  }

  std::vector<Task> Tasks() const
  {
    std::vector<Task> tasks;
    for (std::int64_t from = 0; from < this->Layers; ++from)
    {
      for (std::int64_t begin = 0; begin < this->Heads; begin += BlockHeads)
      {
        for (std::int64_t to = from + 1; to < this->Layers; ++to)
        {
          tasks.push_back({ from, to, begin, std::min(begin + BlockHeads, this->Heads) });
        }
      }
    }
    return tasks;
  }

  /// The first pair of a head with one of a layer.
  ComposedHeads* PairsOf(std::int64_t layer, std::int64_t head, std::int64_t to)
  {
    // Layers before have all later ones above them, layer l (L - 1 - l) of them.
    const std::int64_t before = layer * (this->Layers - 1) - layer * (layer - 1) / 2;
    const std::int64_t above = this->Layers - 1 - layer;
    const std::int64_t rows = before * this->Heads + head * above + to - layer - 1;
    return this->Pairs.data() + rows * this->Heads;
  }

  void Multiply(const Task& task)
  {
    const FloatMatrix& from = this->Factors[task.from].from;
    const FloatMatrix& to = this->Factors[task.to].to;
    FloatMatrix product((task.end - task.begin) * this->Dimension, to.rows());
    MultiplyMatrices(product.rows(), product.cols(), this->ModelDimension, 1,
      { from.data() + task.begin * this->Dimension * this->ModelDimension, this->ModelDimension },
      { to.data(), this->ModelDimension, true }, product.data(), product.cols());
    for (std::int64_t head = task.begin; head < task.end; ++head)
    {
      ComposedHeads* pairs = this->PairsOf(task.from, head, task.to);
      for (std::int64_t other = 0; other < this->Heads; ++other)
      {
        const double squares = product
                                 .block((head - task.begin) * this->Dimension,
                                   other * this->Dimension, this->Dimension, this->Dimension)
                                 .cast<double>()
                                 .squaredNorm();
        pairs[other] = { static_cast<std::int32_t>(task.from), static_cast<std::int32_t>(head),
          static_cast<std::int32_t>(task.to), static_cast<std::int32_t>(other),
          std::sqrt(squares) };
      }
    }
  }
};

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
  return Composition(model, options).Find();
}

}
