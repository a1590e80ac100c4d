#include "LogitLens.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "CircuitWeights.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"
#include "ResidualComponents.h"
#include "Weights/FloatValues.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// Tokens of the vocabulary that one product reads.
constexpr std::int64_t BlockColumns = 2048;
/// Logits in memory.
constexpr std::int64_t MaximumLogits = std::int64_t{ 1 } << 24;
/// Rows of logits that one thread makes at a time.
constexpr std::int64_t RowsPerProduct = 128;

/// The unembedding in single precision. Rows of tokens, as all but TransformerLens have them, are
/// widened a block at a time.
class Unembedding
{
public:
  Unembedding(const Transformer& model, int threads)
    : Model(model)
    , Linear(model.GetWeights().unembedding)
    , Weight(this->HasRows() ? TensorView() : this->Linear.weight)
    , Bias(this->Linear.bias)
    , Cap(static_cast<float>(model.GetConfig().logitCap))
    , Threads(threads)
  {
  }

  std::int64_t Vocabulary() const { return this->Linear.outputs; }

  /// The logits [count, vocabulary] of normalized rows [count, d_model].
  void Apply(const float* rows, std::int64_t count, float* logits) const
  {
    const std::int64_t blocks = (this->Vocabulary() + BlockColumns - 1) / BlockColumns;
    const SingleThreadedBlas blas;
    ParallelFor(blocks, this->Threads,
      [&](std::int64_t block) { this->ApplyBlock(rows, count, block * BlockColumns, logits); });
    this->Model.GetFiles().RequireIntact();
  }

private:
  const Transformer& Model;
  const LinearTensors& Linear;
  FloatValues Weight; ///< unless it has rows of tokens
  FloatValues Bias;
  float Cap; ///< of logits; 0: none
  int Threads;

  bool HasRows() const { return this->Linear.layout == WeightLayout::OutputInput; }

  void ApplyBlock(const float* rows, std::int64_t count, std::int64_t begin, float* logits) const
  {
    const std::int64_t vocabulary = this->Vocabulary();
    const std::int64_t inner = this->Linear.inputs;
    const std::int64_t columns = std::min(BlockColumns, vocabulary - begin);
    const FloatValues block(
      this->HasRows() ? RowsOf(this->Linear.weight, begin, columns) : TensorView());
    MultiplyMatrices(count, columns, inner, 1, { rows, inner },
      this->HasRows() ? MatrixBlock{ block.Data(), inner, true }
                      : MatrixBlock{ this->Weight.Data() + begin, vocabulary },
      logits + begin, vocabulary);
    for (std::int64_t row = 0; this->Bias.Data() != nullptr && row < count; ++row)
    {
      for (std::int64_t v = begin; v < begin + columns; ++v)
      {
        logits[row * vocabulary + v] += this->Bias.Data()[v];
      }
    }
    for (std::int64_t row = 0; this->Cap > 0 && row < count; ++row)
    {
      float* first = logits + row * vocabulary + begin;
      std::for_each(first, first + columns,
        [this](float& logit) { logit = this->Cap * std::tanh(logit / this->Cap); });
    }
  }
};

/// What the unembedding reads of the residual stream before a layer, at a row.
void Normalized(const Recording& recording, const Transformer& model, std::int64_t layer,
  std::int64_t row, float* to)
{
  const TransformerConfig& config = model.GetConfig();
  Eigen::RowVectorXd x = RowOf(recording.residual[layer], row);
  if (layer < config.layers || !config.lastResidualIsNormed)
  {
    NormalizeVector(config, model.GetWeights().finalNorm, x);
  }
  Eigen::Map<Eigen::RowVectorXf>(to, x.size()) = (x * config.logitScale).cast<float>();
}

bool IsRecorded(const Recording& recording, std::int64_t layer)
{
  return ToIndex(layer) < recording.residual.size() && recording.residual[layer].IsRecorded();
}

void RequireStream(const Recording& recording, const Transformer& model, std::int64_t layer)
{
  RequireUnembedding(model);
  if (!IsRecorded(recording, layer))
  {
    const bool isEnd = layer == model.GetConfig().layers;
    throw OptionError("expected a recording with Residual: the residual stream ",
      isEnd ? std::string("after the last layer") : "before layer " + std::to_string(layer),
      ", found none.");
  }
  const std::int64_t found = recording.residual[layer].columns;
  ThrowIf<OptionError>(found != model.GetConfig().modelDimension, "expected a residual stream of ",
    model.GetConfig().modelDimension, " components, found ", found, ".");
}

/// A cell of the result, and the row of the recording that it reads.
struct Cell
{
  std::int64_t layer;
  std::int64_t row;
  std::int64_t next; ///< id of the token that follows; -1 if there is none
};

/// Fills a cell from its logits.
void ReadCell(const float* logits, std::int64_t vocabulary, std::int64_t next, std::size_t cell,
  LensCells& cells)
{
  TopTokens tokens(1, cells.top);
  tokens.Add(0, 0, vocabulary, logits);
  const auto largest = static_cast<double>(tokens.Of(0)->logit);
  double sum = 0;
  for (std::int64_t v = 0; v < vocabulary; ++v)
  {
    sum += std::exp(static_cast<double>(logits[v]) - largest);
  }
  const auto probability = [&](float logit)
  { return static_cast<float>(std::exp(static_cast<double>(logit) - largest) / sum); };
  for (std::size_t k = 0; k < ToIndex(cells.top); ++k)
  {
    const TokenLogit& token = tokens.Of(0)[k];
    cells.tokens[cell * ToIndex(cells.top) + k] = token;
    cells.probabilities[cell * ToIndex(cells.top) + k] = probability(token.logit);
  }
  if (next >= 0)
  {
    const float logit = logits[next];
    const auto larger =
      std::count_if(logits, logits + vocabulary, [logit](float other) { return other > logit; });
    cells.nextRank[cell] = static_cast<std::int32_t>(larger) + 1;
    cells.nextProbability[cell] = probability(logit);
  }
}

std::vector<Cell> CellsOf(const Recording& recording, const LensCells& cells, std::int64_t sequence,
  std::int64_t vocabulary)
{
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::vector<std::int64_t>& ids = recording.tokens.id;
  std::vector<Cell> all;
  for (const std::int32_t layer : cells.layers)
  {
    for (std::int64_t i = 0; i < cells.length; ++i)
    {
      const bool hasNext = i + 1 < cells.length && !ids.empty();
      const std::int64_t next = hasNext ? ids[first + i + 1] : -1;
      all.push_back({ layer, first + i, next < vocabulary ? next : -1 });
    }
  }
  return all;
}

/// The cells to fill, empty.
LensCells Prepare(const Recording& recording, const Transformer& model, const LensOptions& options)
{
  ThrowIf<OptionError>(options.top < 1, "Top: expected at least 1, found ", options.top, ".");
  LensCells cells;
  for (std::int32_t layer = 0; layer <= model.GetConfig().layers; ++layer)
  {
    if (IsRecorded(recording, layer))
    {
      cells.layers.push_back(layer);
    }
  }
  RequireStream(recording, model, cells.layers.empty() ? 0 : cells.layers.front());
  ThrowIf<OptionError>(options.sequence < 0 || options.sequence >= recording.SequenceCount(),
    "Sequence: expected 0 to ", recording.SequenceCount() - 1, ", found ", options.sequence, ".");
  cells.length = RequireTokens(recording, options.sequence);
  cells.top = std::min(options.top, model.GetWeights().unembedding.outputs);
  const std::size_t count = cells.layers.size() * ToIndex(cells.length);
  cells.tokens.resize(count * ToIndex(cells.top));
  cells.probabilities.resize(count * ToIndex(cells.top));
  cells.nextRank.resize(count, -1);
  cells.nextProbability.resize(count, -1);
  return cells;
}

}

std::vector<float> LensLogits(const Recording& recording, const Transformer& model,
  std::int64_t layer, std::int64_t begin, std::int64_t end, int threads)
{
  RequireStream(recording, model, layer);
  const Unembedding unembedding(model, threads);
  const std::int64_t d = model.GetConfig().modelDimension;
  std::vector<float> rows((end - begin) * d);
  for (std::int64_t row = begin; row < end; ++row)
  {
    Normalized(recording, model, layer, row, rows.data() + (row - begin) * d);
  }
  RequireIntactRecording(recording);
  std::vector<float> logits((end - begin) * unembedding.Vocabulary());
  if (begin < end)
  {
    unembedding.Apply(rows.data(), end - begin, logits.data());
  }
  return logits;
}

void RequireLogits(const Recording& recording, const Transformer& model)
{
  const std::int64_t expected = model.GetWeights().unembedding.outputs;
  ThrowIf<OptionError>(recording.logits.IsRecorded() && recording.logits.columns != expected,
    "expected logits of ", expected, " tokens as in the model, found ", recording.logits.columns,
    ".");
}

std::vector<std::int32_t> PredictedTokens(const Recording& recording, const Transformer& model,
  std::int64_t begin, std::int64_t end, int threads)
{
  RequireUnembedding(model);
  RequireLogits(recording, model);
  const std::int64_t vocabulary = model.GetWeights().unembedding.outputs;
  const std::int64_t step =
    std::clamp(MaximumLogits / vocabulary, std::int64_t{ 1 }, RowsPerProduct);
  std::vector<std::int32_t> predicted;
  for (std::int64_t first = begin; first < end; first += step)
  {
    const std::int64_t last = std::min(first + step, end);
    const std::vector<float> computed =
      recording.logits.IsRecorded()
        ? std::vector<float>()
        : LensLogits(recording, model, model.GetConfig().layers, first, last, threads);
    const float* logits = computed.empty() ? recording.logits.Row(first) : computed.data();
    for (std::int64_t row = first; row < last; ++row, logits += vocabulary)
    {
      predicted.push_back(
        static_cast<std::int32_t>(std::max_element(logits, logits + vocabulary) - logits));
    }
  }
  return predicted;
}

LensCells ReadThroughLens(
  const Recording& recording, const Transformer& model, const LensOptions& options)
{
  LensCells cells = Prepare(recording, model, options);
  const Unembedding unembedding(model, options.threads);
  const std::int64_t vocabulary = unembedding.Vocabulary();
  const std::vector<Cell> all = CellsOf(recording, cells, options.sequence, vocabulary);
  const std::int64_t d = model.GetConfig().modelDimension;
  const std::int64_t count = all.size();
  const std::int64_t step =
    std::clamp(MaximumLogits / vocabulary, std::int64_t{ 1 }, std::min(RowsPerProduct, count));
  std::vector<float> rows(step * d);
  std::vector<float> logits(step * vocabulary);
  for (std::int64_t begin = 0; begin < count; begin += step)
  {
    const std::int64_t end = std::min(begin + step, count);
    ParallelFor(end - begin, options.threads,
      [&](std::int64_t i)
      {
        const Cell& cell = all[begin + i];
        Normalized(recording, model, cell.layer, cell.row, rows.data() + i * d);
      });
    unembedding.Apply(rows.data(), end - begin, logits.data());
    ParallelFor(end - begin, options.threads,
      [&](std::int64_t i)
      {
        const std::size_t cell = begin + i;
        ReadCell(logits.data() + i * vocabulary, vocabulary, all[cell].next, cell, cells);
      });
    options.progress(end, count);
  }
  RequireIntactRecording(recording);
  return cells;
}

}
