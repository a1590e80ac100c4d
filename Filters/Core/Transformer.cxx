#include "Transformer.h"

#include "Error.h"
#include "Parallel.h"
#include "TransformerKernels.h"
#include "TransformerLinear.h"

#include <algorithm>
#include <cmath>
#include <system_error>

namespace atlas
{
namespace
{

/// Queries whose attention is computed at once, by one thread.
constexpr std::int64_t QueryBlock = 128;

/// Rows that are normalized by one thread at once.
constexpr std::int64_t NormRows = 32;

/// Rows of sequences that share matrix products; a longer sequence runs alone.
constexpr std::int64_t GroupRows = 1024;

std::size_t ToIndex(std::int64_t i)
{
  return static_cast<std::size_t>(i);
}

std::vector<float> Floats(std::int64_t rows, std::int64_t columns)
{
  return std::vector<float>(ToIndex(rows) * ToIndex(columns));
}

/// Lengths of the sequences, in tokens.
std::vector<std::int64_t> Lengths(const TransformerConfig& config, const TransformerInput& input)
{
  if (config.input == InputKind::Images)
  {
    return std::vector<std::int64_t>(ToIndex(input.images), config.positions);
  }
  std::vector<std::int64_t> lengths;
  for (const std::vector<std::int64_t>& sequence : input.tokens)
  {
    lengths.push_back(static_cast<std::int64_t>(sequence.size()));
  }
  return lengths;
}

/// Throws OptionError unless all of `values` are from 0 to count - 1.
void CheckIds(const char* name, std::size_t sequence, const std::vector<std::int64_t>& values,
  std::int64_t count)
{
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    if (values[i] < 0 || values[i] >= count)
    {
      throw OptionError("sequence " + std::to_string(sequence) + ", position " + std::to_string(i) +
                        ": expected a " + name + " from 0 to " + std::to_string(count - 1) +
                        ", found " + std::to_string(values[i]) + ".");
    }
  }
}

void CheckSequence(const TransformerConfig& config, const TransformerInput& input, std::size_t s)
{
  const std::vector<std::int64_t>& tokens = input.tokens[s];
  const std::string name = "sequence " + std::to_string(s);
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (length == 0)
  {
    throw OptionError(name + " is empty, expected at least one token.");
  }
  if (config.positions > 0 && length > config.positions)
  {
    throw OptionError(name + " has " + std::to_string(length) + " tokens, " +
                      std::to_string(length - config.positions) + " more than the " +
                      std::to_string(config.positions) + " positions of the model.");
  }
  CheckIds("token id", s, tokens, config.vocabulary);
  if (!input.segments.empty())
  {
    if (input.segments[s].size() != tokens.size())
    {
      throw OptionError(name + ": expected a token type for each of its " + std::to_string(length) +
                        " tokens, found " + std::to_string(input.segments[s].size()) + ".");
    }
    if (config.segments == 0)
    {
      throw OptionError(name + ": expected no token types, since a model of architecture " +
                        config.architecture + " knows none, found " + std::to_string(length) + ".");
    }
    CheckIds("token type", s, input.segments[s], config.segments);
  }
}

void CheckSequences(const TransformerConfig& config, const TransformerInput& input)
{
  if (input.tokens.empty() || input.images != 0)
  {
    throw OptionError("expected at least one sequence of token ids for a model of architecture " +
                      config.architecture + ", found " + (input.images == 0 ? "none" : "images") +
                      ".");
  }
  if (!input.segments.empty() && input.segments.size() != input.tokens.size())
  {
    throw OptionError("expected token types for each of the " +
                      std::to_string(input.tokens.size()) + " sequences, found those of " +
                      std::to_string(input.segments.size()) + ".");
  }
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    CheckSequence(config, input, s);
  }
}

void CheckImages(const TransformerConfig& config, const TransformerInput& input)
{
  if (input.images < 1 || !input.tokens.empty())
  {
    throw OptionError("expected at least one image for a model of architecture " +
                      config.architecture + ", found " +
                      (input.tokens.empty() ? "none" : "token ids") + ".");
  }
  const std::int64_t size = config.channels * config.imageHeight * config.imageWidth;
  if (input.pixels.size() != ToIndex(input.images) * ToIndex(size))
  {
    throw OptionError(
      "expected pixels of shape " +
      ToString({ input.images, config.channels, config.imageHeight, config.imageWidth }) +
      ", found " + std::to_string(input.pixels.size()) + " numbers.");
  }
}

/// The normalizations of a layer or of the whole model, in single precision.
class Norm
{
public:
  Norm() = default;
  Norm(const TransformerConfig& config, const NormTensors& tensors)
    : Gain(tensors.gain)
    , Shift(tensors.shift)
    , Kind(config.norm)
    , Epsilon(static_cast<float>(config.epsilon))
  {
  }

  /// `to` may be `from`.
  void Apply(
    std::int64_t rows, std::int64_t columns, const float* from, float* to, int threads) const
  {
    const NormParameters parameters = { this->Kind, this->Epsilon, this->Gain.Data(),
      this->Shift.Data() };
    ParallelFor(BlockCount(rows, NormRows), threads,
      [&](std::int64_t block)
      {
        const std::int64_t end = std::min(rows, (block + 1) * NormRows);
        for (std::int64_t row = block * NormRows; row < end; ++row)
        {
          NormalizeRow(parameters, columns, from + row * columns, to + row * columns);
        }
      });
  }

private:
  FloatValues Gain;
  FloatValues Shift;
  NormKind Kind = NormKind::None;
  float Epsilon = 0;
};

/// The weights of a layer in single precision.
struct Layer
{
  Layer(const TransformerConfig& config, const LayerTensors& tensors)
    : attentionNorm(config, tensors.attentionNorm)
    , mlpNorm(config, tensors.mlpNorm)
    , query(tensors.query)
    , key(tensors.key)
    , value(tensors.value)
    , output(tensors.output)
    , gate(tensors.gate)
    , up(tensors.up)
    , down(tensors.down)
  {
  }

  Norm attentionNorm;
  Norm mlpNorm;
  Linear query;
  Linear key;
  Linear value;
  Linear output;
  Linear gate;
  Linear up;
  Linear down;
};

std::uint64_t WidenedBytes(const LayerTensors& layer)
{
  std::uint64_t bytes = 0;
  for (const LinearTensors* linear :
    { &layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down })
  {
    bytes += WidenedBytes(*linear);
  }
  return bytes;
}

/// Sequences that share matrix products: rows begin <= row < end.
struct Group
{
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t firstSequence = 0;
  std::size_t endSequence = 0;
  std::vector<RowTile> tiles; ///< rows from `begin` on

  std::int64_t Rows() const { return this->end - this->begin; }
};

std::vector<Group> MakeGroups(
  const std::vector<std::int64_t>& offsets, const SequenceRange& sequences)
{
  std::vector<Group> groups;
  std::vector<std::vector<std::int64_t>> lengths; // of the sequences of each group
  for (std::size_t s = ToIndex(sequences.first); s < ToIndex(sequences.end); ++s)
  {
    if (groups.empty() || offsets[s + 1] - groups.back().begin > GroupRows)
    {
      groups.push_back({ offsets[s], offsets[s], s, s, {} });
      lengths.emplace_back();
    }
    groups.back().end = offsets[s + 1];
    groups.back().endSequence = s + 1;
    lengths.back().push_back(offsets[s + 1] - offsets[s]);
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
  {
    groups[g].tiles = MakeRowTiles(lengths[g]);
  }
  return groups;
}

std::vector<std::int64_t> MakeOffsets(const std::vector<std::int64_t>& lengths)
{
  std::vector<std::int64_t> offsets = { 0 };
  for (const std::int64_t length : lengths)
  {
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

/// The sequences to run, of so many. Throws OptionError.
SequenceRange SequencesToRun(const RecordOptions& options, std::int64_t count)
{
  const SequenceRange range = options.sequences.value_or(SequenceRange{ 0, count });
  if (range.first < 0 || range.end < range.first || range.end > count)
  {
    throw OptionError("expected a range of the " + std::to_string(count) + " sequences, found " +
                      std::to_string(range.first) + " to " + std::to_string(range.end) + ".");
  }
  return range;
}

/// Cosine and sine [positions, d_head / 2] of the angles of a rotary embedding, in single precision
/// as in the original code.
struct RotaryTable
{
  RotaryTable() = default;
  RotaryTable(const TransformerConfig& config, std::int64_t positions)
    : pairs(config.headDimension / 2)
    , cosines(Floats(positions, this->pairs))
    , sines(this->cosines)
  {
    const std::vector<float> frequencies = RotaryFrequencies(config);
    std::size_t i = 0;
    for (std::int64_t position = 0; position < positions; ++position)
    {
      for (const float frequency : frequencies)
      {
        const float angle = static_cast<float>(position) * frequency;
        this->cosines[i] = std::cos(angle);
        this->sines[i] = std::sin(angle);
        ++i;
      }
    }
  }

  /// Rotates the components i and i + d_head / 2 of a query or key.
  void Rotate(std::int64_t position, float* values) const
  {
    const float* cosine = this->cosines.data() + position * this->pairs;
    const float* sine = this->sines.data() + position * this->pairs;
    for (std::int64_t i = 0; i < this->pairs; ++i)
    {
      const float a = values[i];
      const float b = values[i + this->pairs];
      values[i] = a * cosine[i] - b * sine[i];
      values[i + this->pairs] = b * cosine[i] + a * sine[i];
    }
  }

  std::int64_t pairs = 0;
  std::vector<float> cosines;
  std::vector<float> sines;
};

/// Which layers and residuals an option asks for.
class Selection
{
public:
  Selection(const TransformerConfig& config, const RecordOptions& options)
    : Options(options)
    , Layers(ToIndex(config.layers), options.layers.empty())
  {
    for (const std::int64_t layer : options.layers)
    {
      this->Layers[ToIndex(layer)] = true;
    }
  }

  bool HasLayer(std::int64_t layer) const
  {
    return layer >= 0 && ToIndex(layer) < this->Layers.size() && this->Layers[ToIndex(layer)];
  }

  bool HasResidual(std::int64_t l) const
  {
    return this->Options.residual && (this->HasLayer(l) || this->HasLayer(l - 1));
  }

  /// Layers that must run for what is recorded.
  std::int64_t LayersToRun() const
  {
    auto count = static_cast<std::int64_t>(this->Layers.size());
    while (!this->Options.logits && count > 0 && !this->HasLayer(count - 1))
    {
      --count;
    }
    return count;
  }

private:
  const RecordOptions& Options;
  std::vector<bool> Layers;
};

/// What is computed for the rows of a group and thrown away, shared by all groups and layers.
struct Workspace
{
  std::vector<float> normed;       ///< [rows, d_model]
  std::vector<float> shifted;      ///< [rows, d_model], normed plus positions: shortformer
  std::vector<float> mixed;        ///< [rows, H d_head], the values that each head mixed
  std::vector<float> hidden;       ///< [rows, mlpDimension]
  std::vector<float> factors;      ///< [rows, mlpDimension], of a gated MLP
  std::vector<RecordedHead> heads; ///< of a layer that is not recorded, or not wholly
};

/// Queries, keys and values of one head at the rows of a group.
struct HeadRows
{
  float* query;
  float* key;
  float* value;
};

/// One run.
class Runner
{
public:
  Runner(const Transformer& model, const TransformerInput& input, const RecordOptions& options)
    : Config(model.GetConfig())
    , Weights(model.GetWeights())
    , Input(input)
    , Options(options)
    , Selected(this->Config, options)
  {
  }

  std::optional<Recording> Run()
  {
    this->Describe();
    this->Embed();
    const std::int64_t layers = this->Selected.LayersToRun();
    for (std::int64_t l = 0; l < layers; ++l)
    {
      if (!this->RunLayer(l, layers))
      {
        return std::nullopt;
      }
    }
    this->Finish();
    if (!this->Report(1))
    {
      return std::nullopt;
    }
    return std::move(this->Record);
  }

private:
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  const TransformerInput& Input;
  const RecordOptions& Options;
  Selection Selected;
  Recording Record;
  std::vector<Group> Groups;
  RotaryTable Rotary;
  SequenceRange Sequences; ///< to run, whose rows are FirstRow <= row < EndRow
  std::int64_t FirstRow = 0;
  std::int64_t EndRow = 0;
  SharedMatrix Residual;        ///< x, [rows to run, d_model]
  std::vector<float> Positions; ///< [positions, d_model], if there are any
  Workspace Work;
  SingleThreadedBlas Blas;

  bool Report(double done) const { return !this->Options.progress || this->Options.progress(done); }

  /// Rows to run.
  std::int64_t Rows() const { return this->EndRow - this->FirstRow; }

  /// x of a row of the recording.
  float* ResidualRow(std::int64_t row) const { return this->Residual.Row(row - this->FirstRow); }

  /// Everything in the recording but its numbers.
  void Describe()
  {
    const TransformerConfig& config = this->Config;
    this->Record.architecture = config.architecture;
    this->Record.mask = config.mask;
    this->Record.rotated = config.position == PositionKind::Rotary;
    this->Record.processing = this->Weights.processing;
    this->Record.layerCount = static_cast<std::int32_t>(config.layers);
    if (config.position == PositionKind::Alibi)
    {
      this->Record.alibiSlopes = AlibiSlopes(config.heads);
    }
    const std::vector<std::int64_t> lengths = Lengths(config, this->Input);
    this->Record.sequenceOffsets = MakeOffsets(lengths);
    this->Sequences = SequencesToRun(this->Options, this->Record.SequenceCount());
    this->FirstRow = this->Record.sequenceOffsets[ToIndex(this->Sequences.first)];
    this->EndRow = this->Record.sequenceOffsets[ToIndex(this->Sequences.end)];
    this->Groups = MakeGroups(this->Record.sequenceOffsets, this->Sequences);
    for (std::size_t s = 0; s < lengths.size(); ++s)
    {
      this->DescribeSequence(s, lengths[s]);
    }
    if (this->Record.rotated)
    {
      this->Rotary = RotaryTable(config, *std::max_element(lengths.begin(), lengths.end()));
    }
    if (this->Options.residual)
    {
      this->Record.residual.resize(ToIndex(config.layers) + 1);
    }
  }

  void DescribeSequence(std::size_t s, std::int64_t length)
  {
    RecordedTokens& tokens = this->Record.tokens;
    for (std::int64_t t = 0; t < length; ++t)
    {
      tokens.sequence.push_back(static_cast<std::int32_t>(s));
      tokens.position.push_back(static_cast<std::int32_t>(t));
      if (this->Config.input == InputKind::Images)
      {
        const std::int64_t columns = this->Config.PatchColumns();
        tokens.row.push_back(t == 0 ? -1 : static_cast<std::int32_t>((t - 1) / columns));
        tokens.column.push_back(t == 0 ? -1 : static_cast<std::int32_t>((t - 1) % columns));
      }
      else
      {
        tokens.id.push_back(this->Input.tokens[s][ToIndex(t)]);
        if (this->Config.segments > 0)
        {
          const auto& segments = this->Input.segments;
          tokens.segment.push_back(
            segments.empty() ? 0 : static_cast<std::int32_t>(segments[s][ToIndex(t)]));
        }
      }
    }
  }

  /// x = embeddings of tokens or patches, positions and segments, normalized where that belongs.
  void Embed()
  {
    const std::int64_t d = this->Config.modelDimension;
    this->Residual = SharedMatrix::Zero(this->Rows(), d);
    if (this->Config.input == InputKind::Images)
    {
      this->EmbedPatches();
    }
    else
    {
      this->AddEmbedding(this->Weights.tokenEmbedding, this->Record.tokens.id);
    }
    if (this->Config.position == PositionKind::Learned)
    {
      this->AddEmbedding(this->Weights.positionEmbedding, this->Record.tokens.position);
    }
    if (this->Config.position == PositionKind::Shortformer)
    {
      const TensorView& view = this->Weights.positionEmbedding;
      this->Positions = Floats(this->Config.positions, d);
      view.ToFloat(0, view.Count(), this->Positions.data());
    }
    if (this->Config.segments > 0)
    {
      this->AddEmbedding(this->Weights.segmentEmbedding, this->Record.tokens.segment);
    }
    if (this->Config.embeddingNorm)
    {
      Norm(this->Config, this->Weights.embeddingNorm)
        .Apply(
          this->Rows(), d, this->Residual.Row(0), this->Residual.Row(0), this->Options.threads);
    }
    this->CheckFinite("the embedding", { this->FirstRow, this->EndRow, 0, 0, {} });
  }

  /// x += the row of `table` that each token has.
  template<class Index>
  void AddEmbedding(const TensorView& table, const std::vector<Index>& indices)
  {
    const auto d = ToIndex(this->Config.modelDimension);
    std::vector<float> values(d);
    for (std::int64_t row = this->FirstRow; row < this->EndRow; ++row)
    {
      const auto begin = static_cast<std::uint64_t>(indices[ToIndex(row)]) * d;
      table.ToFloat(begin, begin + d, values.data());
      AddRow(this->Config.modelDimension, values.data(), this->ResidualRow(row));
    }
  }

  void EmbedPatches()
  {
    const Linear embedding(this->Weights.patchEmbedding);
    const std::int64_t patches = this->Config.positions - 1;
    std::vector<float> pixels = Floats(patches, embedding.Inputs());
    for (std::int64_t image = this->Sequences.first; image < this->Sequences.end; ++image)
    {
      float* first = this->ResidualRow(this->Record.sequenceOffsets[ToIndex(image)]);
      this->GatherPatches(image, pixels.data());
      this->Weights.classToken.ToFloat(0, ToIndex(this->Config.modelDimension), first);
      ApplyLinear(embedding, MakeRowTiles({ patches }), pixels.data(),
        first + this->Config.modelDimension, {}, this->Options.threads);
    }
  }

  /// The pixels of each patch, in the order channel, row, column.
  void GatherPatches(std::int64_t image, float* to) const
  {
    const TransformerConfig& config = this->Config;
    const float* from =
      this->Input.pixels.data() + image * config.channels * config.imageHeight * config.imageWidth;
    for (std::int64_t patch = 0; patch < config.positions - 1; ++patch)
    {
      const std::int64_t top = patch / config.PatchColumns() * config.patchHeight;
      const std::int64_t left = patch % config.PatchColumns() * config.patchWidth;
      for (std::int64_t channel = 0; channel < config.channels; ++channel)
      {
        for (std::int64_t row = top; row < top + config.patchHeight; ++row)
        {
          const std::int64_t line = channel * config.imageHeight + row;
          to = std::copy_n(from + line * config.imageWidth + left, config.patchWidth, to);
        }
      }
    }
  }

  bool RunLayer(std::int64_t l, std::int64_t layers)
  {
    this->RecordResidual(l);
    this->AllocateHeads(l);
    if (this->Groups.empty())
    {
      return true;
    }
    const Layer layer(this->Config, this->Weights.layers[ToIndex(l)]);
    for (const Group& group : this->Groups)
    {
      const double done =
        (static_cast<double>(l) +
          static_cast<double>(group.begin - this->FirstRow) / static_cast<double>(this->Rows())) /
        static_cast<double>(layers);
      if (!this->Report(done))
      {
        return false;
      }
      this->RunAttention(layer, l, group);
      if (this->Config.mlpDimension > 0)
      {
        this->RunMlp(layer, group);
      }
      this->CheckFinite("layer " + std::to_string(l), group);
    }
    return true;
  }

  void RecordResidual(std::int64_t l)
  {
    if (this->Selected.HasResidual(l))
    {
      SharedMatrix& residual = this->Record.residual[ToIndex(l)];
      residual = SharedMatrix::Zero(this->Record.tokens.Count(), this->Config.modelDimension);
      std::copy_n(this->Residual.Row(0), this->Residual.Count(), residual.Row(this->FirstRow));
    }
  }

  /// Adds the layer to the recording if it is selected, and matrices for what is not recorded to
  /// the workspace.
  void AllocateHeads(std::int64_t l)
  {
    const TransformerConfig& config = this->Config;
    const bool recorded = this->Selected.HasLayer(l);
    const auto heads = ToIndex(config.heads);
    if (recorded)
    {
      RecordedLayer layer;
      layer.index = static_cast<std::int32_t>(l);
      layer.scoreScale = config.ScoreScale(l);
      layer.heads.resize(heads);
      this->Record.layers.push_back(layer);
    }
    std::int64_t groupRows = 0;
    for (const Group& group : this->Groups)
    {
      groupRows = std::max(groupRows, group.Rows());
    }
    this->Work.heads.resize(heads);
    for (std::size_t h = 0; h < heads; ++h)
    {
      this->AllocateHead(h, recorded ? &this->Record.layers.back().heads : nullptr, groupRows);
    }
  }

  void AllocateHead(std::size_t h, std::vector<RecordedHead>* recorded, std::int64_t groupRows)
  {
    const std::size_t groupSize = ToIndex(this->Config.heads / this->Config.keyHeads);
    const auto allocate =
      [&](bool record, SharedMatrix RecordedHead::*quantity, bool shared, std::int64_t columns)
    {
      std::vector<RecordedHead>& heads =
        record && recorded != nullptr ? *recorded : this->Work.heads;
      const std::int64_t rows = &heads == recorded ? this->Record.tokens.Count() : groupRows;
      SharedMatrix& matrix = heads[h].*quantity;
      if (shared && h % groupSize != 0)
      {
        matrix = heads[h - h % groupSize].*quantity;
      }
      else if (!matrix.IsRecorded())
      {
        matrix = SharedMatrix::Zero(rows, columns);
      }
    };
    const std::int64_t dimension = this->Config.headDimension;
    allocate(this->Options.queriesAndKeys, &RecordedHead::query, false, dimension);
    allocate(this->Options.queriesAndKeys, &RecordedHead::key, true, dimension);
    allocate(this->Options.values, &RecordedHead::value, true, dimension);
    if (this->Options.headOutputs && recorded != nullptr)
    {
      allocate(true, &RecordedHead::output, false, this->Config.modelDimension);
    }
  }

  /// Where the queries, keys and values of a head go in layer l.
  HeadRows RowsOf(std::int64_t l, std::size_t h, std::int64_t begin) const
  {
    const RecordedHead* recorded =
      this->Selected.HasLayer(l) ? &this->Record.layers.back().heads[h] : nullptr;
    const auto find = [&](SharedMatrix RecordedHead::*quantity)
    {
      return recorded != nullptr && (recorded->*quantity).IsRecorded()
               ? (recorded->*quantity).Row(begin)
               : (this->Work.heads[h].*quantity).Row(0);
    };
    return { find(&RecordedHead::query), find(&RecordedHead::key), find(&RecordedHead::value) };
  }

  void RunAttention(const Layer& layer, std::int64_t l, const Group& group)
  {
    const TransformerConfig& config = this->Config;
    const int threads = this->Options.threads;
    float* x = this->ResidualRow(group.begin);
    const float* read = x;
    if (config.normPlace == NormPlace::BeforeSublayer)
    {
      this->Work.normed.resize(ToIndex(group.Rows() * config.modelDimension));
      layer.attentionNorm.Apply(
        group.Rows(), config.modelDimension, x, this->Work.normed.data(), threads);
      read = this->Work.normed.data();
    }
    this->ProjectHeads(layer, l, group, read);
    this->Work.mixed.resize(ToIndex(group.Rows() * config.heads * config.headDimension));
    this->MixValues(l, group);
    this->RecordOutputs(layer, l, group);
    ApplyLinear(layer.output, group.tiles, this->Work.mixed.data(), x,
      { std::nullopt, nullptr, true }, threads);
    if (config.normPlace == NormPlace::AfterSublayer)
    {
      layer.attentionNorm.Apply(group.Rows(), config.modelDimension, x, x, threads);
    }
  }

  /// Queries, keys and values of all heads, rotated where that belongs.
  void ProjectHeads(const Layer& layer, std::int64_t l, const Group& group, const float* read)
  {
    const TransformerConfig& config = this->Config;
    const float* readWithPosition = this->AddPositions(group, read);
    const auto tiles = static_cast<std::int64_t>(group.tiles.size());
    const std::int64_t groupSize = config.heads / config.keyHeads;
    ParallelFor((config.heads + 2 * config.keyHeads) * tiles, this->Options.threads,
      [&](std::int64_t i)
      {
        const std::int64_t head = i / tiles;
        const RowTile& tile = group.tiles[ToIndex(i % tiles)];
        if (head < config.heads)
        {
          const HeadRows rows = this->RowsOf(l, ToIndex(head), group.begin);
          this->ProjectHead(layer.query, head, group, tile, readWithPosition, rows.query, true);
          return;
        }
        const bool isKey = head < config.heads + config.keyHeads;
        const std::int64_t keyHead = (head - config.heads) % config.keyHeads;
        const HeadRows rows = this->RowsOf(l, ToIndex(keyHead * groupSize), group.begin);
        this->ProjectHead(isKey ? layer.key : layer.value, keyHead, group, tile,
          isKey ? readWithPosition : read, isKey ? rows.key : rows.value, isKey);
      });
  }

  /// What queries and keys read: with shortformer positions, those are added.
  const float* AddPositions(const Group& group, const float* read)
  {
    if (this->Config.position != PositionKind::Shortformer)
    {
      return read;
    }
    const std::int64_t d = this->Config.modelDimension;
    this->Work.shifted.assign(read, read + group.Rows() * d);
    for (std::int64_t row = 0; row < group.Rows(); ++row)
    {
      const std::int64_t position = this->Record.tokens.position[ToIndex(group.begin + row)];
      AddRow(d, this->Positions.data() + position * d, this->Work.shifted.data() + row * d);
    }
    return this->Work.shifted.data();
  }

  /// The rows of a tile of x W^h + b^h.
  void ProjectHead(const Linear& linear, std::int64_t head, const Group& group, const RowTile& tile,
    const float* read, float* to, bool rotates) const
  {
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t d = this->Config.modelDimension;
    MultiplyRows(tile, dimension, d, read, d, linear.Head(head), to, dimension, false);
    const float* bias = linear.HeadBias(head);
    for (const RowChunk& chunk : tile.chunks)
    {
      for (std::int64_t row = chunk.begin; row < chunk.begin + chunk.rows; ++row)
      {
        if (bias != nullptr)
        {
          AddRow(dimension, bias, to + row * dimension);
        }
        if (rotates && this->Record.rotated)
        {
          this->Rotary.Rotate(
            this->Record.tokens.position[ToIndex(group.begin + row)], to + row * dimension);
        }
      }
    }
  }

  /// Attention of each head, for blocks of queries of each sequence.
  void MixValues(std::int64_t l, const Group& group)
  {
    struct Task
    {
      std::size_t sequence;
      std::int64_t begin;
    };
    std::vector<Task> tasks;
    for (std::size_t s = group.firstSequence; s < group.endSequence; ++s)
    {
      const std::int64_t length = this->Record.SequenceLength(static_cast<std::int64_t>(s));
      for (std::int64_t begin = 0; begin < length; begin += QueryBlock)
      {
        tasks.push_back({ s, begin });
      }
    }
    const std::int64_t heads = this->Config.heads;
    ParallelFor(static_cast<std::int64_t>(tasks.size()) * heads, this->Options.threads,
      [&](std::int64_t i)
      {
        const Task& task = tasks[ToIndex(i / heads)];
        this->MixBlock(l, group, task.sequence, i % heads, task.begin);
      });
  }

  void MixBlock(
    std::int64_t l, const Group& group, std::size_t sequence, std::int64_t head, std::int64_t begin)
  {
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t first = this->Record.sequenceOffsets[sequence] - group.begin;
    const HeadRows rows = this->RowsOf(l, ToIndex(head), group.begin);
    HeadScores scores;
    scores.query = rows.query + first * dimension;
    scores.key = rows.key + first * dimension;
    scores.length = this->Record.SequenceLength(static_cast<std::int64_t>(sequence));
    scores.dimension = dimension;
    scores.scale = static_cast<float>(this->Config.ScoreScale(l));
    scores.slope = this->Record.alibiSlopes.empty()
                     ? 0
                     : static_cast<float>(this->Record.alibiSlopes[ToIndex(head)]);
    scores.mask = this->Config.mask;
    const std::int64_t end = std::min(scores.length, begin + QueryBlock);
    const std::int64_t keys = scores.KeyCount(end);
    std::vector<float> weights = Floats(end - begin, keys);
    EvaluateWeights(scores, begin, end, keys, weights.data());
    const std::int64_t stride = this->Config.heads * dimension;
    MultiplyMatrices(end - begin, dimension, keys, 1, { weights.data(), keys },
      { rows.value + first * dimension, dimension },
      this->Work.mixed.data() + (first + begin) * stride + head * dimension, stride);
  }

  /// Head by head what the output matrix makes of the mixed values.
  void RecordOutputs(const Layer& layer, std::int64_t l, const Group& group)
  {
    if (!this->Options.headOutputs || !this->Selected.HasLayer(l))
    {
      return;
    }
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t d = this->Config.modelDimension;
    const std::int64_t stride = this->Config.heads * dimension;
    const auto tiles = static_cast<std::int64_t>(group.tiles.size());
    const std::vector<RecordedHead>& heads = this->Record.layers.back().heads;
    ParallelFor(this->Config.heads * tiles, this->Options.threads,
      [&](std::int64_t i)
      {
        const std::int64_t head = i / tiles;
        MultiplyRows(group.tiles[ToIndex(i % tiles)], d, dimension,
          this->Work.mixed.data() + head * dimension, stride,
          layer.output.Part(head * dimension, 0), heads[ToIndex(head)].output.Row(group.begin), d,
          false);
      });
  }

  void RunMlp(const Layer& layer, const Group& group)
  {
    const TransformerConfig& config = this->Config;
    const int threads = this->Options.threads;
    float* x = this->ResidualRow(group.begin);
    const float* read = x;
    if (config.normPlace == NormPlace::BeforeSublayer)
    {
      layer.mlpNorm.Apply(
        group.Rows(), config.modelDimension, x, this->Work.normed.data(), threads);
      read = this->Work.normed.data();
    }
    const std::size_t size = ToIndex(group.Rows() * config.mlpDimension);
    this->Work.hidden.resize(size);
    float* hidden = this->Work.hidden.data();
    if (config.gated)
    {
      this->Work.factors.resize(size);
      ApplyLinear(layer.up, group.tiles, read, this->Work.factors.data(), {}, threads);
      ApplyLinear(layer.gate, group.tiles, read, hidden,
        { config.activation, this->Work.factors.data(), false }, threads);
    }
    else
    {
      ApplyLinear(
        layer.up, group.tiles, read, hidden, { config.activation, nullptr, false }, threads);
    }
    ApplyLinear(layer.down, group.tiles, hidden, x, { std::nullopt, nullptr, true }, threads);
    if (config.normPlace == NormPlace::AfterSublayer)
    {
      layer.mlpNorm.Apply(group.Rows(), config.modelDimension, x, x, threads);
    }
  }

  /// The last residual, and the logits.
  void Finish()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t layers = this->Selected.LayersToRun();
    if (layers < config.layers || !config.lastResidualIsNormed)
    {
      this->RecordResidual(layers);
    }
    if (layers < config.layers)
    {
      return;
    }
    if (config.finalNorm)
    {
      Norm(config, this->Weights.finalNorm)
        .Apply(this->Rows(), config.modelDimension, this->Residual.Row(0), this->Residual.Row(0),
          this->Options.threads);
    }
    if (config.lastResidualIsNormed)
    {
      this->RecordResidual(config.layers);
    }
    if (this->Options.logits)
    {
      this->RecordLogits();
    }
  }

  void RecordLogits()
  {
    const std::int64_t d = this->Config.modelDimension;
    std::vector<std::int64_t> lengths;
    for (std::int64_t s = this->Sequences.first; s < this->Sequences.end; ++s)
    {
      lengths.push_back(this->Record.SequenceLength(s));
    }
    const std::vector<RowTile> tiles = MakeRowTiles(lengths);
    if (this->Weights.logitsTransform.Exists())
    {
      const SharedMatrix transformed = SharedMatrix::Zero(this->Rows(), d);
      ApplyLinear(Linear(this->Weights.logitsTransform), tiles, this->Residual.Row(0),
        transformed.Row(0), { this->Config.activation, nullptr, false }, this->Options.threads);
      Norm(this->Config, this->Weights.logitsNorm)
        .Apply(this->Rows(), d, transformed.Row(0), transformed.Row(0), this->Options.threads);
      this->Residual = transformed;
    }
    const Linear unembedding(this->Weights.unembedding);
    this->Record.logits = SharedMatrix::Zero(this->Record.tokens.Count(), unembedding.Outputs());
    ApplyLinear(unembedding, tiles, this->Residual.Row(0), this->Record.logits.Row(this->FirstRow),
      {}, this->Options.threads);
  }

  void CheckFinite(const std::string& name, const Group& group) const
  {
    const std::int64_t d = this->Config.modelDimension;
    const std::int64_t found = FindNotFinite(group.Rows() * d, this->ResidualRow(group.begin));
    if (found >= 0)
    {
      const std::size_t row = ToIndex(group.begin + found / d);
      const float value = this->ResidualRow(group.begin)[found];
      const std::string text =
        std::isnan(value) ? "nan" : std::to_string(value); // whatever its sign
      throw ModelError(name + ": an activation is " + text + " (sequence " +
                       std::to_string(this->Record.tokens.sequence[row]) + ", position " +
                       std::to_string(this->Record.tokens.position[row]) +
                       "); expected finite numbers.");
    }
  }
};

/// The weights file of a folder.
std::filesystem::path FindWeights(const std::filesystem::path& folder)
{
  constexpr const char* single = "model.safetensors";
  constexpr const char* index = "model.safetensors.index.json";
  std::error_code ignored;
  for (const char* name : { single, index })
  {
    if (std::filesystem::exists(folder / name, ignored))
    {
      return folder / name;
    }
  }
  const bool pickled = std::filesystem::exists(folder / "pytorch_model.bin", ignored);
  throw FileError(folder.string() + ": expected the weights in " + single + " or in shards that " +
                  index + " names, found neither" +
                  (pickled ? "; pytorch_model.bin is a pickle, which is not read, as it may hold "
                             "any program."
                           : "."));
}

}

Transformer::Transformer(TransformerConfig config, WeightFiles files)
  : Config(std::move(config))
  , Files(std::move(files))
  , Weights(BindTransformerWeights(this->Config, this->Files))
{
}

Transformer Transformer::Read(const std::filesystem::path& path, const std::string& architecture)
{
  std::error_code ignored;
  const bool isFolder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path folder = isFolder ? path : path.parent_path();
  const bool isConfig = isFolder || path.filename() == "config.json";
  TransformerConfig config = ReadTransformerConfig(folder / "config.json", architecture);
  return { std::move(config), WeightFiles::Read(isConfig ? FindWeights(folder) : path) };
}

void CheckInput(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  if (config.input == InputKind::Images)
  {
    CheckImages(config, input);
  }
  else
  {
    CheckSequences(config, input);
  }
  for (const std::int64_t layer : options.layers)
  {
    if (layer < 0 || layer >= config.layers)
    {
      throw OptionError("expected layers from 0 to " + std::to_string(config.layers - 1) +
                        ", found " + std::to_string(layer) + ".");
    }
  }
  if (options.logits && !model.HasLogits())
  {
    throw OptionError("the model has no unembedding, so that it has no logits to record.");
  }
}

std::vector<SequenceRange> SplitSequences(
  const Transformer& model, const TransformerInput& input, int parts)
{
  const std::vector<std::int64_t> offsets = MakeOffsets(Lengths(model.GetConfig(), input));
  const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<SequenceRange> ranges;
  std::int64_t first = 0;
  for (int part = 1; part <= parts; ++part)
  {
    // Up to the sequence whose middle lies beyond this part of all tokens.
    std::int64_t end = first;
    while (end < count && (offsets[ToIndex(end)] + offsets[ToIndex(end + 1)]) * parts <=
                            std::int64_t{ 2 } * part * offsets.back())
    {
      ++end;
    }
    ranges.push_back({ first, end });
    first = end;
  }
  return ranges;
}

MemoryEstimate EstimateMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  const TransformerConfig& config = model.GetConfig();
  const TransformerWeights& weights = model.GetWeights();
  const Selection selected(config, options);
  const std::vector<std::int64_t> offsets = MakeOffsets(Lengths(config, input));
  const SequenceRange run = SequencesToRun(options, static_cast<std::int64_t>(offsets.size()) - 1);
  std::int64_t groupRows = 0;
  for (const Group& group : MakeGroups(offsets, run))
  {
    groupRows = std::max(groupRows, group.Rows());
  }
  const std::int64_t rows = offsets.back();
  const std::int64_t runRows = offsets[ToIndex(run.end)] - offsets[ToIndex(run.first)];
  const std::int64_t d = config.modelDimension;
  const std::int64_t queries = config.heads * config.headDimension;
  const std::int64_t keys = config.keyHeads * config.headDimension;

  // Numbers of each row of the recording.
  std::int64_t recorded = options.logits ? weights.unembedding.outputs : 0;
  for (std::int64_t l = 0; l <= config.layers; ++l)
  {
    recorded += selected.HasResidual(l) ? d : 0;
    if (selected.HasLayer(l))
    {
      recorded += (options.queriesAndKeys ? queries + keys : 0) + (options.values ? keys : 0) +
                  (options.headOutputs ? config.heads * d : 0);
    }
  }
  // Of each row of the largest group: normed, shifted, mixed, hidden and factors, unrecorded heads.
  const std::int64_t worked =
    2 * d + queries + (config.gated ? 2 : 1) * config.mlpDimension + queries + 2 * keys;
  const std::int64_t blocks = ThreadCount(options.threads) * QueryBlock * groupRows; // of attention
  std::uint64_t widened = options.logits ? WidenedBytes(weights.unembedding) : 0;
  for (const LayerTensors& layer : weights.layers)
  {
    widened = std::max(widened, WidenedBytes(layer));
  }
  MemoryEstimate estimate;
  estimate.recording = ToIndex(rows) * ToIndex(recorded) * sizeof(float);
  estimate.working =
    ToIndex(runRows * 2 * d + groupRows * worked + blocks) * sizeof(float) + widened;
  return estimate;
}

std::optional<Recording> RecordTransformer(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  return ReadIntact(model.GetFiles(), [&] { return Runner(model, input, options).Run(); });
}

}
