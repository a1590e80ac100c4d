#include "AttentionTokens.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/NamedValues.h"
#include "Base/ParallelProgress.h"
#include "Numerics/MatrixProduct.h"
#include "RecordedModel.h"
#include "Recording/RecordedAttention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Tokens of the vocabulary and vectors of a head that are multiplied at a time: their logits, the
/// projections of a layer and the part of the unembedding remain in the cache of a core.
constexpr std::int64_t BlockTokens = 384;
constexpr std::int64_t BlockVectors = 192;

constexpr std::array<Named<HeadVector>, 6> VectorNames = { { { "Query", HeadVector::Query },
  { "Key", HeadVector::Key }, { "Value", HeadVector::Value }, { "Output", HeadVector::Output },
  { "QueryKey", HeadVector::QueryKey }, { "DotProduct", HeadVector::DotProduct } } };

/// The chosen number, or for -1 all from 0 to `count` - 1. Throws OptionError if there is none.
std::vector<std::int64_t> ChosenNumbers(
  std::int64_t chosen, std::int64_t count, const std::string& what)
{
  ThrowIf<OptionError>(chosen < -1 || chosen >= count, what, ": expected -1 for all, or 0 to ",
    count - 1, ", found ", chosen, ".");
  if (chosen >= 0)
  {
    return { chosen };
  }
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// The layers, heads and sequences that are read.
struct Selection
{
  std::vector<const RecordedLayer*> layers;
  std::vector<std::int64_t> heads;
  std::vector<std::int64_t> sequences;
  std::vector<std::int64_t> lengths; ///< of the sequences, as far as they are read

  Selection(const Recording& recording, const AttentionTokenOptions& options)
  {
    if (options.layer == -1)
    {
      for (const RecordedLayer& layer : recording.layers)
      {
        if (!layer.heads.empty())
        {
          this->layers.push_back(&layer);
        }
      }
    }
    else
    {
      this->layers.push_back(&FindLayer(recording, options.layer));
    }
    ThrowIf<OptionError>(this->layers.empty() || this->layers.front()->heads.empty(),
      "the recording has no heads; record queries and keys.");
    const std::int64_t headCount = this->layers.front()->heads.size();
    this->heads = ChosenNumbers(options.head, headCount, "Head");
    this->sequences = ChosenNumbers(options.sequence, recording.SequenceCount(), "Sequence");
    for (const std::int64_t sequence : this->sequences)
    {
      const std::int64_t length = recording.SequenceLength(sequence);
      this->lengths.push_back(options.tokens > 0 ? std::min(options.tokens, length) : length);
    }
  }
};

void CheckOptions(const AttentionTokenOptions& options)
{
  ThrowIf<OptionError>(options.vectors.empty(), "Vectors: expected at least one of ",
    NamesOf(VectorNames), ", found none.");
  ThrowIf<OptionError>(options.top < 1, "Top: expected at least 1, found ", options.top, ".");
  ThrowIf<OptionError>(
    options.tokens < 0, "MaximumTokens: expected at least 0, found ", options.tokens, ".");
  for (std::size_t i = 0; i < options.vectors.size(); ++i)
  {
    const HeadVector vector = options.vectors[i];
    ThrowIf<OptionError>(std::count(options.vectors.begin(), options.vectors.end(), vector) > 1,
      "Vectors: expected each once, found ", NameOf(vector), " more than once.");
    ThrowIf<OptionError>(
      vector == HeadVector::DotProduct && options.reading != TokenReading::PublishedCode,
      "Vectors: DotProduct is defined for the reading PublishedCode alone; choose that reading, or "
      "other vectors.");
  }
}

void CheckModel(const Transformer& model)
{
  const bool isCausal = model.GetConfig().mask == AttentionMask::Causal;
  ThrowIf<ModelError>(!isCausal || !model.HasLogits(),
    "attention tokens need a causal language model, whose unembedding reads the residual stream; "
    "found ",
    model.GetConfig().architecture,
    isCausal ? " without an unembedding." : ", whose attention is bidirectional.");
}

bool Needs(const AttentionTokenOptions& options, HeadVector vector)
{
  const std::vector<HeadVector>& all = options.vectors;
  return std::find(all.begin(), all.end(), vector) != all.end();
}

void CheckHeads(const Selection& selection, const AttentionTokenOptions& options)
{
  const auto needs = [&](HeadVector vector) { return Needs(options, vector); };
  const bool cells = needs(HeadVector::QueryKey) || needs(HeadVector::DotProduct);
  for (const RecordedLayer* layer : selection.layers)
  {
    for (const std::int64_t h : selection.heads)
    {
      const RecordedHead& head = layer->heads[h];
      const char* missing = nullptr;
      if ((cells || needs(HeadVector::Query)) && !head.query.IsRecorded())
      {
        missing = "queries";
      }
      else if ((cells || needs(HeadVector::Key)) && !head.key.IsRecorded())
      {
        missing = "keys";
      }
      else if ((needs(HeadVector::Value) || needs(HeadVector::Output)) && !head.value.IsRecorded())
      {
        missing = "values";
      }
      ThrowIf<OptionError>(missing != nullptr, "the recording has no ", missing, " of layer ",
        layer->index, ", head ", h, "; record them, or choose other vectors.");
    }
  }
}

/// A part of the vectors of a head: one kind, on one sequence.
struct Part
{
  HeadVector vector;
  std::size_t sequence; ///< index in the selection
  std::int64_t begin;   ///< the first of them among the vectors of the head
  std::int64_t count;
};

/// The vectors of a head on one sequence, in the basis of the weights: [T, d_head] each, as far as
/// they are needed.
struct HeadInput
{
  FloatMatrix query;
  FloatMatrix key;
  FloatMatrix value;
  FloatMatrix output;
};

/// The first rows of a recorded matrix from a row on, less a bias, in another basis.
FloatMatrix ReadRows(const SharedMatrix& matrix, std::int64_t first, std::int64_t rows,
  const Eigen::RowVectorXd& bias, const DoubleMatrix* basis)
{
  const Eigen::Map<const FloatMatrix> stored(matrix.Row(first), rows, matrix.columns);
  if (basis == nullptr && bias.size() == 0)
  {
    return stored;
  }
  DoubleMatrix read = stored.cast<double>();
  if (bias.size() > 0)
  {
    read.rowwise() -= bias;
  }
  if (basis != nullptr)
  {
    read *= *basis;
  }
  return read.cast<float>();
}

/// The row of a cell in the triangle of cells that a causal mask allows.
std::int64_t QueryOf(std::int64_t cell)
{
  auto query = static_cast<std::int64_t>((std::sqrt(8 * static_cast<double>(cell) + 1) - 1) / 2);
  query -= query * (query + 1) / 2 > cell ? 1 : 0;
  return query + ((query + 1) * (query + 2) / 2 <= cell ? 1 : 0);
}

/// Writes vectors begin <= i < end of a part, one in each row [d_head].
void FillRows(const HeadInput& input, HeadVector vector, std::int64_t begin, std::int64_t end,
  FloatMatrix& rows, std::int64_t row)
{
  if (!IsOfCells(vector))
  {
    const FloatMatrix& from = vector == HeadVector::Query   ? input.query
                              : vector == HeadVector::Key   ? input.key
                              : vector == HeadVector::Value ? input.value
                                                            : input.output;
    rows.middleRows(row, end - begin) = from.middleRows(begin, end - begin);
    return;
  }
  std::int64_t query = QueryOf(begin);
  std::int64_t key = begin - query * (query + 1) / 2;
  for (std::int64_t cell = begin; cell < end; ++cell, ++row)
  {
    if (vector == HeadVector::QueryKey)
    {
      rows.row(row) = input.query.row(query).cwiseProduct(input.key.row(key));
    }
    else
    {
      rows.row(row).setConstant(input.query.row(query).dot(input.key.row(key)));
    }
    if (++key > query)
    {
      ++query;
      key = 0;
    }
  }
}

/// What projects the vectors of a head before W_U: [d_head, d_model].
DoubleMatrix ProjectionOf(const ProcessedHead& head, TokenReading reading)
{
  if (reading != TokenReading::PublishedCode)
  {
    return head.output;
  }
  const Eigen::RowVectorXd sums = head.output.colwise().sum();
  return head.value.transpose() * sums.asDiagonal();
}

WeightSteps StepsOf(const AttentionTokenOptions& options)
{
  return options.processes || options.reading != TokenReading::Plain ? WeightSteps::TransformerLens
                                                                     : WeightSteps::Stored;
}

/// Lists of tokens that threads share, one at a time.
class TopTokenPool
{
public:
  TopTokenPool(std::int64_t vectors, std::int64_t top)
    : Vectors(vectors)
    , Top(top)
  {
  }

  std::unique_ptr<TopTokens> Take()
  {
    {
      const std::lock_guard<std::mutex> lock(this->Mutex);
      if (!this->Free.empty())
      {
        std::unique_ptr<TopTokens> list = std::move(this->Free.back());
        this->Free.pop_back();
        return list;
      }
    }
    return std::make_unique<TopTokens>(this->Vectors, this->Top);
  }

  void Return(std::unique_ptr<TopTokens> list)
  {
    const std::lock_guard<std::mutex> lock(this->Mutex);
    this->Free.push_back(std::move(list));
  }

  const std::vector<std::unique_ptr<TopTokens>>& All() const { return this->Free; }

private:
  std::int64_t Vectors;
  std::int64_t Top;
  std::mutex Mutex;
  std::vector<std::unique_ptr<TopTokens>> Free;
};

/// Finds tokens in blocks of the vocabulary.
class Finder
{
public:
  Finder(const Recording& recording, const Transformer& model, const AttentionTokenOptions& options)
    : Record(recording)
    , Options(options)
    , Chosen(recording, options)
    , Weights(model, StepsOf(options), options.threads)
    , Dimension(model.GetConfig().headDimension)
    , ModelDimension(model.GetConfig().modelDimension)
    , Vocabulary(this->Weights.OutputVocabulary())
    , Top(std::min<std::int64_t>(options.top, this->Vocabulary))
  {
    if (options.reading != TokenReading::Plain)
    {
      RequireRefactorable(model.GetConfig());
    }
    for (std::size_t s = 0; s < this->Chosen.sequences.size(); ++s)
    {
      for (const HeadVector vector : options.vectors)
      {
        const std::int64_t count = VectorCount(vector, this->Chosen.lengths[s]);
        this->Parts.push_back({ vector, s, this->Vectors, count });
        this->Vectors += count;
      }
    }
  }

  std::vector<HeadTokens> Find()
  {
    const std::size_t heads = this->Chosen.layers.size() * this->Chosen.heads.size();
    this->Projections.resize(this->Chosen.layers.size());
    this->Inputs.resize(heads);
    const SingleThreadedBlas blas;
    const std::int64_t layers = this->Chosen.layers.size();
    const std::int64_t together = ThreadCount(this->Options.threads);
    for (std::int64_t begin = 0; begin < layers; begin += together)
    {
      ParallelFor(std::min(together, layers - begin), this->Options.threads,
        [this, begin](std::int64_t l) { this->PrepareLayer(begin + l); });
      this->Options.progress(0); // so that it can be canceled
    }
    TopTokenPool pool(static_cast<std::int64_t>(heads) * this->Vectors, this->Top);
    pool.Return(pool.Take()); // there is one, even if this part of the vocabulary is empty
    this->SearchBlocks(pool);
    return this->Collect(pool);
  }

private:
  const Recording& Record;
  const AttentionTokenOptions& Options;
  Selection Chosen;
  ProcessedWeights Weights;
  std::int64_t Dimension;
  std::int64_t ModelDimension;
  std::int64_t Vocabulary;
  std::int64_t Top;
  std::vector<Part> Parts;                    ///< of each head
  std::int64_t Vectors = 0;                   ///< of each head
  std::vector<FloatMatrix> Projections;       ///< of each layer [heads * d_head, d_model]
  std::vector<std::vector<HeadInput>> Inputs; ///< by layer and head: of each sequence

  std::size_t HeadNumber(std::size_t layer, std::size_t head) const
  {
    return layer * this->Chosen.heads.size() + head;
  }

  /// The vectors of the heads of a layer, and their projections.
  void PrepareLayer(std::size_t l)
  {
    const RecordedLayer& layer = *this->Chosen.layers[l];
    const ProcessedAttention weights = this->Weights.Attention(layer.index);
    const bool isPlain = this->Options.reading == TokenReading::Plain;
    // Made elsewhere with processed weights, which had folded the biases of values already.
    const bool hasBias =
      this->Record.processing != WeightProcessing::Processed ||
      this->Weights.GetModel().GetWeights().processing == WeightProcessing::Processed;
    FloatMatrix& projection = this->Projections[l];
    projection.resize(
      static_cast<std::int64_t>(this->Chosen.heads.size()) * this->Dimension, this->ModelDimension);
    for (std::size_t i = 0; i < this->Chosen.heads.size(); ++i)
    {
      const std::int64_t h = this->Chosen.heads[i];
      const ProcessedHead& head = weights.heads[h];
      const ProcessedHead used = isPlain ? head : Refactored(head);
      const std::optional<RefactoredBasis> basis =
        isPlain ? std::nullopt : std::optional(BasisOf(head, used));
      projection.middleRows(static_cast<std::int64_t>(i) * this->Dimension, this->Dimension) =
        ProjectionOf(used, this->Options.reading).cast<float>();
      std::vector<HeadInput>& inputs = this->Inputs[this->HeadNumber(l, i)];
      for (std::size_t s = 0; s < this->Chosen.sequences.size(); ++s)
      {
        inputs.push_back(
          this->Read(layer, h, s, hasBias ? head.foldedBias : Eigen::RowVectorXd(), basis));
      }
    }
  }

  HeadInput Read(const RecordedLayer& layer, std::int64_t h, std::size_t s,
    const Eigen::RowVectorXd& bias, const std::optional<RefactoredBasis>& basis) const
  {
    const RecordedHead& head = layer.heads[h];
    const std::int64_t first = this->Record.sequenceOffsets[this->Chosen.sequences[s]];
    const std::int64_t length = this->Chosen.lengths[s];
    const bool cells =
      Needs(this->Options, HeadVector::QueryKey) || Needs(this->Options, HeadVector::DotProduct);
    HeadInput input;
    if (cells || Needs(this->Options, HeadVector::Query))
    {
      input.query = ReadRows(head.query, first, length, {}, basis ? &basis->query : nullptr);
    }
    if (cells || Needs(this->Options, HeadVector::Key))
    {
      input.key = ReadRows(head.key, first, length, {}, basis ? &basis->key : nullptr);
    }
    if (Needs(this->Options, HeadVector::Value) || Needs(this->Options, HeadVector::Output))
    {
      input.value = ReadRows(head.value, first, length, bias, basis ? &basis->value : nullptr);
    }
    if (Needs(this->Options, HeadVector::Output))
    {
      input.output = this->OutputOf(layer, h, s, input.value);
    }
    return input;
  }

  /// The sums of values by attention.
  FloatMatrix OutputOf(
    const RecordedLayer& layer, std::int64_t h, std::size_t s, const FloatMatrix& value) const
  {
    const std::int64_t sequence = this->Chosen.sequences[s];
    const std::int64_t keys = this->Record.SequenceLength(sequence);
    FloatMatrix output(value.rows(), value.cols());
    FloatMatrix weights(std::min<std::int64_t>(BlockVectors, value.rows()), keys);
    for (std::int64_t begin = 0; begin < value.rows(); begin += BlockVectors)
    {
      const std::int64_t rows = std::min<std::int64_t>(BlockVectors, value.rows() - begin);
      EvaluateAttention(this->Record, sequence, layer.index, h, AttentionQuantity::Weights, begin,
        begin + rows, weights.data());
      // Keys beyond those that are read have no weight, as the mask is causal.
      MultiplyMatrices(rows, value.cols(), value.rows(), 1, { weights.data(), keys },
        { value.data(), value.cols() }, output.data() + begin * value.cols(), value.cols());
    }
    return output;
  }

  /// Looks for tokens from `begin` on.
  void SearchBlock(std::int64_t begin, TopTokens& found) const
  {
    const std::int64_t count = std::min(BlockTokens, this->Vocabulary - begin);
    const FloatMatrix columns =
      this->Weights.UnembeddingColumns(begin, begin + count).cast<float>();
    Eigen::RowVectorXf bias;
    if (this->Options.reading != TokenReading::Plain)
    {
      bias = this->Weights.UnembeddingBias().segment(begin, count).cast<float>();
    }
    for (std::size_t l = 0; l < this->Projections.size(); ++l)
    {
      const FloatMatrix& before = this->Projections[l];
      FloatMatrix projection(before.rows(), count);
      MultiplyMatrices(before.rows(), count, this->ModelDimension, 1,
        { before.data(), this->ModelDimension }, { columns.data(), this->ModelDimension, true },
        projection.data(), count);
      for (std::size_t i = 0; i < this->Chosen.heads.size(); ++i)
      {
        const auto row = static_cast<std::int64_t>(i) * this->Dimension;
        this->SearchHead(
          this->HeadNumber(l, i), projection.data() + row * count, begin, count, bias, found);
      }
    }
  }

  /// Multiplies the vectors of a head with its projection [d_head, count] of tokens from `begin`
  /// on.
  void SearchHead(std::size_t number, const float* projection, std::int64_t begin,
    std::int64_t count, const Eigen::RowVectorXf& bias, TopTokens& found) const
  {
    const std::vector<HeadInput>& inputs = this->Inputs[number];
    const std::int64_t most = std::min(BlockVectors, this->Vectors);
    FloatMatrix rows(most, this->Dimension);
    FloatMatrix logits(most, count);
    std::size_t part = 0;
    for (std::int64_t first = 0; first < this->Vectors; first += BlockVectors)
    {
      const std::int64_t end = std::min(first + BlockVectors, this->Vectors);
      for (std::int64_t row = first; row < end;)
      {
        const Part& from = this->Parts[part];
        const std::int64_t last = std::min(end, from.begin + from.count);
        FillRows(inputs[from.sequence], from.vector, row - from.begin, last - from.begin, rows,
          row - first);
        part += last == from.begin + from.count ? 1U : 0U;
        row = last;
      }
      MultiplyMatrices(end - first, count, this->Dimension, 1, { rows.data(), this->Dimension },
        { projection, count }, logits.data(), count);
      for (std::int64_t row = first; row < end; ++row)
      {
        found.Add(static_cast<std::int64_t>(number) * this->Vectors + row,
          static_cast<std::int32_t>(begin), count, logits.data() + (row - first) * count,
          bias.size() > 0 ? bias.data() : nullptr);
      }
    }
  }

  void SearchBlocks(TopTokenPool& pool) const
  {
    const std::int64_t all = (this->Vocabulary + BlockTokens - 1) / BlockTokens;
    const std::int64_t first = this->Options.part;
    const std::int64_t step = this->Options.parts;
    const std::int64_t blocks = first < all ? (all - first + step - 1) / step : 0;
    ParallelFor(blocks, this->Options.threads, this->Options.progress,
      [&](std::int64_t block)
      {
        std::unique_ptr<TopTokens> list = pool.Take();
        this->SearchBlock((first + block * step) * BlockTokens, *list);
        pool.Return(std::move(list));
      });
  }

  /// Joins the lists of all threads.
  std::vector<HeadTokens> Collect(const TopTokenPool& pool) const
  {
    std::vector<HeadTokens> all;
    for (const RecordedLayer* layer : this->Chosen.layers)
    {
      for (const std::int64_t head : this->Chosen.heads)
      {
        for (const Part& part : this->Parts)
        {
          all.push_back({ layer->index, static_cast<std::int32_t>(head),
            static_cast<std::int32_t>(this->Chosen.sequences[part.sequence]), part.vector,
            this->Chosen.lengths[part.sequence], this->Top, {} });
        }
      }
    }
    ParallelFor(all.size(), this->Options.threads,
      [&](std::int64_t i)
      {
        const std::size_t number = ToIndex(i) / this->Parts.size();
        const Part& part = this->Parts[ToIndex(i) % this->Parts.size()];
        TopTokens& first = *pool.All().front();
        std::vector<TokenLogit>& tokens = all[i].tokens;
        for (std::int64_t row = 0; row < part.count; ++row)
        {
          const std::int64_t vector =
            static_cast<std::int64_t>(number) * this->Vectors + part.begin + row;
          for (std::size_t list = 1; list < pool.All().size(); ++list)
          {
            first.Join(vector, *pool.All()[list]);
          }
          tokens.insert(tokens.end(), first.Of(vector), first.Of(vector) + this->Top);
        }
      });
    return all;
  }
};

}

std::string_view NameOf(HeadVector vector)
{
  return VectorNames[static_cast<std::size_t>(vector)].name;
}

std::int64_t VectorCount(HeadVector vector, std::int64_t length)
{
  return IsOfCells(vector) ? length * (length + 1) / 2 : length;
}

AttentionTokenMemory MemoryOf(
  const Recording& recording, const Transformer& model, const AttentionTokenOptions& options)
{
  CheckOptions(options);
  CheckModel(model);
  const Selection selection(recording, options);
  CheckHeads(selection, options);
  RequireSameModel(recording, model, "Attention Tokens");
  const TransformerConfig& config = model.GetConfig();
  const auto heads =
    static_cast<double>(selection.layers.size()) * static_cast<double>(selection.heads.size());
  double vectors = 0;
  double tokens = 0;
  for (const std::int64_t length : selection.lengths)
  {
    tokens += static_cast<double>(length);
    for (const HeadVector vector : options.vectors)
    {
      vectors += static_cast<double>(VectorCount(vector, length));
    }
  }
  const auto threads = static_cast<double>(ThreadCount(options.threads));
  const auto d = static_cast<double>(config.modelDimension);
  const auto layer = static_cast<double>(selection.heads.size() * ToIndex(config.headDimension));
  const double found = heads * vectors * options.top;
  const double lists = found * sizeof(TokenLogit) * (threads + 1);
  const double inputs = heads * static_cast<double>(config.headDimension) * (4 * tokens + d) * 4;
  const double blocks = threads * (BlockTokens * (d * 12 + layer * 4) + 16 * d * layer * 4);
  const double bias = static_cast<double>(config.outputVocabulary) * sizeof(double);
  return { static_cast<std::uint64_t>(found),
    static_cast<std::uint64_t>(lists + inputs + blocks + bias) };
}

std::vector<HeadTokens> FindAttentionTokens(
  const Recording& recording, const Transformer& model, const AttentionTokenOptions& options)
{
  MemoryOf(recording, model, options); // checks all arguments
  return Finder(recording, model, options).Find();
}

void JoinTokens(std::vector<HeadTokens>& tokens, const TokenLogit* others)
{
  for (HeadTokens& ofHead : tokens)
  {
    const std::size_t top = ofHead.top;
    for (std::size_t first = 0; first < ofHead.tokens.size(); first += top)
    {
      TokenLogit* mine = ofHead.tokens.data() + first;
      for (std::size_t k = 0; k < top && others[k].IsBefore(mine[top - 1]); ++k)
      {
        InsertToken(mine, top, others[k]);
      }
      others += top;
    }
  }
}

}
