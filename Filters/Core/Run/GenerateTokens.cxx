#include "GenerateTokens.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Internal/TransformerEmbedding.h"
#include "Internal/TransformerKernels.h"
#include "Internal/TransformerLayer.h"
#include "Internal/TransformerNorm.h"
#include "Internal/TransformerRun.h"
#include "Numerics/MatrixProduct.h"
#include "Preprocessing/PictureTokens.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

namespace atlas
{
namespace
{

/// Keys and values of so many tokens.
std::uint64_t CacheFloats(const TransformerConfig& config, std::int64_t tokens)
{
  return ToIndex(config.AttentionsBefore(config.layers)) * 2 * ToIndex(config.keyHeads) *
         ToIndex(tokens) * ToIndex(config.headDimension);
}

/// The largest of some lengths; 0: there are none.
std::int64_t Longest(const std::vector<std::int64_t>& lengths)
{
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

/// The model at the end of one sequence: keys and values of all its tokens, and of its source.
class Continuation
{
public:
  /// For so many tokens, with rotations by positions below `positions`.
  Continuation(const Transformer& model, std::int64_t capacity, std::int64_t positions, int threads)
    : Model(model)
    , Config(model.GetConfig())
    , Positions(this->Config, model.GetWeights(), positions)
    , Capacity(capacity)
    , Threads(threads)
  {
    this->Cache.resize(CacheFloats(this->Config, capacity));
    for (const LayerTensors& layer : model.GetWeights().layers)
    {
      const std::int64_t l = static_cast<std::int64_t>(this->Layers.size());
      this->Layers.emplace_back(this->Config, layer, l, this->Positions);
    }
  }

  /// Forgets all tokens, but not the source.
  void Restart()
  {
    this->Past = 0;
    this->States.assign(ToIndex(this->Config.layers), {});
  }

  /// Sets what the encoder returns for the source of the sequence that is run next.
  void SetSource(const SharedMatrix& encoded)
  {
    const TransformerConfig& config = this->Config;
    this->Encoded = encoded;
    this->Source.emplace(PackedSequences({ encoded.rows }, std::nullopt));
    this->HasSourceKeys = false;
    this->SourceCache.resize(CacheFloats(config, encoded.rows));
  }

  /// Sets what image tokens of the sequence that is run next have in place of their embeddings, one
  /// row per token, at these positions.
  void SetPictures(EncodedSource features, std::vector<std::int64_t> positions)
  {
    this->Features = std::move(features);
    this->FeaturePositions = std::move(positions);
  }

  /// Sets how many keys the tokens of the sequence that is run next see. Later ones see those
  /// before.
  void SetKeyEnds(std::vector<std::int32_t> ends) { this->KeyEnds = std::move(ends); }

  /// Sets the places by which the tokens of the sequence that is run next are rotated. Later ones
  /// have the positions after the largest.
  void SetPlaces(std::vector<RotaryPlace> places) { this->Places = std::move(places); }

  /// Whether another token would change the rotation of all tokens before it (LongRope).
  bool IsAtSwitch() const
  {
    const RotaryScaling& scaling = this->Config.rotaryScaling;
    const auto past = static_cast<double>(this->Past);
    return scaling.kind == RotaryScaling::Kind::LongRope && past <= scaling.originalPositions &&
           past + 1 > scaling.originalPositions;
  }

  /// Runs the next tokens, and returns the logits after the last of them.
  const std::vector<float>& Append(const std::vector<std::int64_t>& tokens)
  {
    const std::int64_t d = this->Config.modelDimension;
    const std::int64_t rows = tokens.size();
    PackedSequences sequences = PackedSequences::Continue(this->Past, rows);
    TransformerInput input;
    input.tokens.push_back(tokens);
    std::vector<float> x(rows * d);
    EmbedInput(this->Config, this->Model.GetWeights(), input, sequences, x.data(), this->Threads);
    const auto visitPictures = [&](const SharedMatrix& features, const auto& visit)
    {
      for (std::size_t i = 0; i < this->FeaturePositions.size(); ++i)
      {
        const std::int64_t row = this->FeaturePositions[i] - this->Past;
        if (row >= 0 && row < rows)
        {
          visit(features.Row(static_cast<std::int64_t>(i)), x.data() + row * d);
        }
      }
    };
    visitPictures(
      this->Features.tokens, [d](const float* feature, float* to) { std::copy_n(feature, d, to); });
    if (!this->KeyEnds.empty() && this->Past == 0)
    {
      for (std::int64_t t = this->KeyEnds.size(); t < rows; ++t)
      {
        this->KeyEnds.push_back(static_cast<std::int32_t>(t + 1));
      }
      sequences.SetKeyEnds(this->KeyEnds);
    }
    if (!this->Places.empty())
    {
      sequences.SetPlaces(this->NextPlaces(rows));
    }
    RunSides sides(this->Config, this->Model.GetWeights());
    if (this->Config.HasLayerSides())
    {
      sides.Begin(input, sequences, x.data(), this->Threads);
    }
    const RowGroup& group = sequences.groups.front();
    for (std::int64_t l = 0; l < this->Config.layers; ++l)
    {
      const CrossSource source = this->SourceFor(l, rows);
      this->Layers[l].Apply(group, this->RowsOf(l, rows), x.data(), this->Work, this->Threads, {},
        {}, {}, &source, { &sides, 0 }, &this->States[l]);
      if (ToIndex(l) < this->Features.deep.size())
      {
        visitPictures(
          this->Features.deep[l], [d](const float* feature, float* to) { AddRow(d, feature, to); });
      }
    }
    sides.Finish(x.data(), this->Threads);
    this->HasSourceKeys = true;
    this->Past += rows;
    this->EvaluateLast(x.data() + (rows - 1) * d);
    return this->Logits;
  }

private:
  const Transformer& Model;
  const TransformerConfig& Config;
  PositionEncoding Positions;
  std::int64_t Capacity; ///< tokens
  int Threads;
  std::int64_t Past = 0;
  std::vector<float> Cache;       ///< [layers with attention, 2, H_kv, capacity, d_head], keys and
                                  ///< values, of which a row may have fewer components
  std::vector<MixerState> States; ///< of layers without attention
  std::vector<float> Queries;
  SharedMatrix Encoded;                  ///< what the encoder returns for the source
  std::optional<PackedSequences> Source; ///< its tokens
  bool HasSourceKeys = false;            ///< whether its keys and values are known
  EncodedSource Features;                ///< of image tokens
  std::vector<std::int32_t> KeyEnds;     ///< of the given tokens, and those after them
  std::vector<std::int64_t> FeaturePositions;
  std::vector<RotaryPlace> Places; ///< of the given tokens
  std::vector<float> CrossQueries;
  std::vector<float> SourceCache; ///< [L, 2, H, tokens, d_head], these
  std::deque<TransformerLayer> Layers;
  LayerWorkspace Work;
  std::vector<float> Logits;

  /// The places of the next tokens.
  std::vector<RotaryPlace> NextPlaces(std::int64_t rows) const
  {
    const std::int64_t next = EndOfPlaces(this->Places);
    std::vector<RotaryPlace> places;
    const std::int64_t given = this->Places.size();
    for (std::int64_t t = this->Past; t < this->Past + rows; ++t)
    {
      const std::int64_t position = next + t - given;
      places.push_back(t < given ? this->Places[t] : RotaryPlace{ position, position, position });
    }
    return places;
  }

  /// Keys and values are written after those of the past.
  std::vector<HeadRows> RowsOf(std::int64_t layer, std::int64_t rows)
  {
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t keyHeads = this->Config.keyHeads;
    const std::vector<std::int64_t>& sizes = this->Config.headDimensions;
    const std::vector<std::int64_t>& counts = this->Config.keyHeadCounts;
    const std::int64_t own = sizes.empty() ? dimension : sizes[layer];
    const std::int64_t group = this->Config.heads / (counts.empty() ? keyHeads : counts[layer]);
    if (!this->Config.HasAttention(layer))
    {
      return {};
    }
    const std::int64_t source = this->Config.AttentionsBefore(this->Config.KeyLayer(layer));
    this->Queries.resize(this->Config.heads * rows * dimension);
    std::vector<HeadRows> heads(this->Config.heads);
    for (std::int64_t h = 0; h < this->Config.heads; ++h)
    {
      const std::int64_t keys = 2 * source * keyHeads + h / group;
      const auto end = [&](std::int64_t matrix, std::int64_t width)
      { return this->Cache.data() + matrix * this->Capacity * dimension + this->Past * width; };
      HeadRows& head = heads[h];
      head.query = this->Queries.data() + h * rows * dimension;
      head.key = end(keys, own);
      head.value = end(keys + keyHeads, sizes.empty() ? this->Config.ValueDimension() : own);
    }
    return heads;
  }

  /// What the cross attention of a layer reads; nothing without an encoder.
  CrossSource SourceFor(std::int64_t layer, std::int64_t rows)
  {
    CrossSource source;
    if (!this->Source)
    {
      return source;
    }
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t size = this->Encoded.rows * dimension;
    source.group = &this->Source->groups.front();
    source.rows = this->Encoded.Row(0);
    source.hasKeys = this->HasSourceKeys;
    this->CrossQueries.resize(this->Config.heads * rows * dimension);
    for (std::int64_t h = 0; h < this->Config.heads; ++h)
    {
      const std::int64_t keyHeads = this->Config.keyHeads;
      const std::int64_t group = h / (this->Config.heads / keyHeads);
      float* keys = this->SourceCache.data() + (2 * layer * keyHeads + group) * size;
      source.heads.push_back({ this->CrossQueries.data() + h * rows * dimension, keys,
        keys + keyHeads * size, nullptr, nullptr });
    }
    return source;
  }

  /// The logits of one row of the residual stream.
  void EvaluateLast(float* x)
  {
    const TransformerWeights& weights = this->Model.GetWeights();
    if (this->Config.finalNorm)
    {
      TransformerNorm(this->Config, weights.finalNorm)
        .Apply(1, this->Config.modelDimension, x, x, this->Threads);
    }
    this->Logits.resize(weights.unembedding.outputs);
    EvaluateLogits(this->Config, weights, PackedSequences({ 1 }, std::nullopt), x,
      this->Logits.data(), this->Threads);
    const std::int64_t found = FindNotFinite(this->Logits.size(), this->Logits.data());
    ThrowIf<ModelError>(found >= 0, "generating: the logit of token ", found, " after position ",
      this->Past - 1, " is not finite; expected finite numbers.");
    if (this->Config.vision != nullptr) // never sample image placeholders
    {
      for (const std::int64_t token :
        { this->Config.vision->imageToken, this->Config.vision->videoToken })
      {
        if (token >= 0 && token < static_cast<std::int64_t>(this->Logits.size()))
        {
          this->Logits[token] = -std::numeric_limits<float>::infinity();
        }
      }
    }
  }
};

/// Chooses tokens from logits.
class Sampler
{
public:
  Sampler(const GenerationOptions& options, std::size_t sequence)
    : Temperature(options.temperature)
    , TopK(options.topK)
    // Consecutive seeds and sequences give unrelated draws: the golden ratio, as in SplitMix64.
    , Generator(options.seed + 0x9E3779B97F4A7C15U * (sequence + 1))
  {
  }

  std::int64_t Choose(const std::vector<float>& logits)
  {
    if (this->Temperature == 0 || this->TopK == 1)
    {
      return std::max_element(logits.begin(), logits.end()) - logits.begin();
    }
    const std::size_t count = this->TopK == 0 ? logits.size() : std::min(this->TopK, logits.size());
    this->Order.resize(logits.size());
    std::iota(this->Order.begin(), this->Order.end(), std::int64_t{ 0 });
    std::partial_sort(this->Order.begin(), this->Order.begin() + static_cast<std::ptrdiff_t>(count),
      this->Order.end(),
      [&](std::int64_t a, std::int64_t b)
      {
        const float x = logits[a];
        const float y = logits[b];
        return x > y || (x == y && a < b);
      });
    return this->Order[this->Draw(logits, count)];
  }

private:
  double Temperature;
  std::size_t TopK;
  std::mt19937_64 Generator;
  std::vector<std::int64_t> Order; ///< token ids, the most probable first
  std::vector<double> Sums;

  /// Draws one of the `count` most probable tokens.
  std::size_t Draw(const std::vector<float>& logits, std::size_t count)
  {
    const auto largest = static_cast<double>(logits[this->Order.front()]);
    this->Sums.clear();
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
    {
      const auto logit = static_cast<double>(logits[this->Order[i]]);
      sum += std::exp((logit - largest) / this->Temperature);
      this->Sums.push_back(sum);
    }
    // 53 bits, without the standard distributions, which differ between libraries.
    const double uniform = std::ldexp(static_cast<double>(this->Generator() >> 11U), -53);
    const auto found = std::upper_bound(this->Sums.begin(), this->Sums.end(), uniform * sum);
    return std::min(static_cast<std::size_t>(found - this->Sums.begin()), count - 1);
  }
};

/// Where the image tokens of texts are, and by which places all tokens are rotated.
class GivenPictures
{
public:
  GivenPictures(const TransformerConfig& config, const TransformerInput& input)
    : Offsets(SequenceOffsets(SequenceLengths(config, input)))
  {
    if (config.vision != nullptr)
    {
      this->Tokens = ImageTokens(config, input);
    }
    if (config.vision != nullptr && !config.vision->rotarySections.empty())
    {
      this->Places = TextPlaces(config, input);
    }
    if (config.vision != nullptr &&
        (config.vision->seesWholePictures || config.vision->seesWholePrompts))
    {
      this->Ends = KeyEnds(config, input);
    }
  }

  /// One more than the largest position of all places; 0: there are none.
  std::int64_t EndOfPositions() const { return EndOfPlaces(this->Places); }

  std::vector<std::int64_t> PositionsIn(std::int64_t sequence) const
  {
    std::vector<std::int64_t> positions;
    for (const ImageToken& token : this->Tokens)
    {
      if (token.sequence == sequence)
      {
        positions.push_back(token.position);
      }
    }
    return positions;
  }

  std::vector<RotaryPlace> PlacesOf(std::int64_t sequence) const
  {
    return this->Part(this->Places, sequence);
  }

  std::vector<std::int32_t> KeyEndsOf(std::int64_t sequence) const
  {
    return this->Part(this->Ends, sequence);
  }

private:
  std::vector<std::int64_t> Offsets;
  std::vector<ImageToken> Tokens;
  std::vector<RotaryPlace> Places; ///< empty: by position alone
  std::vector<std::int32_t> Ends;  ///< empty: those at the position and before

  /// The values of a sequence; empty if there are none.
  template<class Value>
  std::vector<Value> Part(const std::vector<Value>& all, std::int64_t sequence) const
  {
    return all.empty() ? all
                       : std::vector<Value>(all.begin() + this->Offsets[sequence],
                           all.begin() + this->Offsets[sequence + 1]);
  }
};

/// The tokens of all sequences; see GenerateTokens.
std::vector<std::vector<std::int64_t>> Generate(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options)
{
  const SingleThreadedBlas blas;
  const TransformerConfig& config = model.GetConfig();
  const GivenPictures pictures(config, input);
  const std::int64_t capacity = Longest(SequenceLengths(config, input)) + options.count;
  Continuation continuation(model, capacity,
    std::max(capacity, pictures.EndOfPositions() + options.count), options.threads);
  const double all = static_cast<double>(input.tokens.size()) * static_cast<double>(options.count);
  std::vector<std::vector<std::int64_t>> generated(input.tokens.size());
  for (std::size_t s = 0; s < generated.size(); ++s)
  {
    std::vector<std::int64_t> text = input.tokens[s];
    const std::size_t given = text.size();
    std::size_t known = 0; // tokens whose keys and values are kept
    Sampler sampler(options, s);
    continuation.Restart();
    const auto sequence = static_cast<std::int64_t>(s);
    if (config.encoder != nullptr)
    {
      continuation.SetSource(
        TransformerRun::Encode(model, input, { sequence, sequence + 1 }, options.threads).tokens);
    }
    if (config.vision != nullptr)
    {
      continuation.SetPictures(
        TransformerRun::Encode(model, input, { sequence, sequence + 1 }, options.threads),
        pictures.PositionsIn(sequence));
      continuation.SetPlaces(pictures.PlacesOf(sequence));
      continuation.SetKeyEnds(pictures.KeyEndsOf(sequence));
    }
    bool ended = false;
    for (std::int64_t added = 0; added < options.count && !ended; ++added)
    {
      const double done =
        static_cast<double>(s) * static_cast<double>(options.count) + static_cast<double>(added);
      options.progress(done, all);
      if (continuation.IsAtSwitch())
      {
        continuation.Restart();
        known = 0;
      }
      const auto next = text.begin() + static_cast<std::ptrdiff_t>(known);
      const std::vector<float>& logits = continuation.Append({ next, text.end() });
      known = text.size();
      text.push_back(sampler.Choose(logits));
      ended = std::count(options.ends.begin(), options.ends.end(), text.back()) != 0;
    }
    generated[s].assign(text.begin() + static_cast<std::ptrdiff_t>(given), text.end());
  }
  return generated;
}

}

void CheckGeneration(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  const auto require = [](bool holds, const auto&... parts)
  { ThrowIf<OptionError>(!holds, "GenerateTokens: ", parts...); };
  require(options.count >= 0, "expected at least 0, found ", options.count, ".");
  require(std::isfinite(options.temperature) && options.temperature >= 0,
    "expected a temperature of at least 0, found ", options.temperature, ".");
  require(options.topK >= 0, "expected TopK to be at least 0, found ", options.topK, ".");
  if (options.count == 0)
  {
    return;
  }
  require(config.input == InputKind::Tokens && config.mask == AttentionMask::Causal,
    "expected a model of texts whose tokens attend to earlier ones only, found one of "
    "architecture ",
    config.architecture, ".");
  require(model.HasLogits(), "the model has no unembedding, so it predicts no tokens.");
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const std::int64_t length = static_cast<std::int64_t>(input.tokens[s].size()) + options.count;
    require(config.positions == 0 || length <= config.positions, "sequence ", s, " would have ",
      length, " tokens, but the model has ", config.positions, " positions.");
  }
}

std::uint64_t GenerationBytes(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  const std::int64_t source = Longest(SourceLengths(config, input));
  return CacheFloats(config, Longest(SequenceLengths(config, input)) + options.count + source) *
           sizeof(float) +
         ToIndex(source * config.modelDimension) * sizeof(float) +
         ToIndex(config.layers * LayerMixer::StateFloats(config)) * sizeof(float);
}

std::vector<std::vector<std::int64_t>> GenerateTokens(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options)
{
  CheckInput(model.GetConfig(), input);
  CheckGeneration(model, input, options);
  if (options.count == 0)
  {
    return std::vector<std::vector<std::int64_t>>(input.tokens.size());
  }
  return ReadIntact(model.GetFiles(), [&] { return Generate(model, input, options); });
}

}
