#include "CorpusRun.h"

#include "Base/Error.h"
#include "Base/HashValues.h"
#include "Base/SystemLimits.h"
#include "CorpusWeights.h"
#include "Internal/BatchMeasure.h"
#include "Internal/FeatureMeasure.h"
#include "Recorder/EncodedPrompt.h"
#include "Run/RecordTransformer.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace atlas
{
namespace
{

std::vector<std::int64_t> LayersOf(const CorpusOptions& options, const TransformerConfig& config)
{
  std::vector<std::int64_t> layers = options.layers;
  if (layers.empty())
  {
    for (std::int64_t layer = 0; layer < config.layers; ++layer)
    {
      if (config.HasAttention(layer))
      {
        layers.push_back(layer);
      }
    }
    ThrowIf<ModelError>(layers.empty(),
      "statistics of heads: expected a model with layers that have attention, found one of ",
      config.architecture, " without.");
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  ThrowIf<OptionError>(layers.front() < 0 || layers.back() >= config.layers,
    "Layers: expected layers from 0 to ", config.layers - 1, ", found ",
    layers.front() < 0 ? layers.front() : layers.back(), ".");
  for (const std::int64_t layer : layers)
  {
    ThrowIf<OptionError>(!config.HasAttention(layer),
      "Layers: expected layers that have attention, found layer ", layer, ", which has none.");
  }
  return layers;
}

void RequireRange(const char* name, std::int64_t value, std::int64_t least, std::int64_t most)
{
  ThrowIf<OptionError>(value < least || value > most, name, ": expected ", least, " to ", most,
    ", found ", value, ".");
}

RecordOptions RecordingOf(const CorpusStatistics& statistics, bool hasLogits, int threads)
{
  RecordOptions options;
  options.valueNorms = false;
  options.layers = statistics.options.layers;
  options.finalScale = hasLogits;
  options.threads = threads;
  return options;
}

/// Adds the tokens of the window that was read last to the hash of its file.
void AddToHashes(
  const CorpusText& text, const CorpusWindow& window, std::vector<std::uint64_t>& hashes)
{
  hashes.resize(std::max<std::size_t>(hashes.size(), text.Position().file + 1));
  std::uint64_t& hash = hashes[text.Position().file];
  hash = HashValues(window.tokens.data(), window.tokens.size() * sizeof(std::int64_t), hash);
}

/// The windows of the next batch; empty at the end.
std::vector<CorpusWindow> NextBatch(
  CorpusText& text, std::int64_t tokens, std::vector<std::uint64_t>& hashes)
{
  std::vector<CorpusWindow> windows;
  std::int64_t count = 0;
  while (count < tokens)
  {
    std::optional<CorpusWindow> window = text.Next();
    if (!window)
    {
      break;
    }
    AddToHashes(text, *window, hashes);
    count += static_cast<std::int64_t>(window->tokens.size());
    windows.push_back(std::move(*window));
  }
  return windows;
}

Recording RecordBatch(
  const Transformer& model, const std::vector<CorpusWindow>& windows, const RecordOptions& options)
{
  TransformerInput input;
  std::transform(windows.begin(), windows.end(), std::back_inserter(input.tokens),
    [](const CorpusWindow& window) { return window.tokens; });
  return RecordTransformer(model, input, options);
}

/// Throws OptionError unless files that were read, at least in part, are still the same by their
/// sizes. Others may follow.
void RequireSameFiles(
  const std::vector<std::string>& files, const CorpusText& text, const CorpusStatistics& statistics)
{
  const std::vector<std::uint64_t>& sizes = text.GetSizes();
  const std::size_t begun = ToIndex(statistics.next.file) + 1;
  for (std::size_t i = 0; i < std::min(begun, statistics.sizes.size()); ++i)
  {
    if (i >= sizes.size() || sizes[i] != statistics.sizes[i])
    {
      const std::string found =
        i < sizes.size() ? files[i] + " of " + std::to_string(sizes[i]) + " bytes" : "none";
      throw OptionError("the text: expected file ", i + 1, " of ", statistics.sizes[i],
        " bytes, as it was measured before, found ", found, ".");
    }
  }
}

/// Fills in the texts of kinds of tokens that have none.
void LabelKinds(const OpenTransformer& model, CorpusStatistics& statistics)
{
  const Tokenizer* tokenizer = FindTokenizer(model);
  if (tokenizer == nullptr)
  {
    return;
  }
  statistics.texts.clear();
  for (const std::int64_t id : statistics.ids)
  {
    statistics.texts.push_back(
      id < tokenizer->VocabularySize() ? tokenizer->Label(id) : std::to_string(id));
  }
}

}

CorpusStatistics BeginCorpus(const OpenTransformer& model, const std::string& path,
  const CorpusOptions& options, int threads, const Progress& progress)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  RequireRange("Contexts", options.contexts, 0, MostContexts);
  RequireRange("Samples", options.samples, 0, MostSamples);
  RequireRange("Batch", options.batch, 1, MostBatch);
  CorpusStatistics statistics;
  statistics.model = path;
  statistics.options = options;
  statistics.options.layers = LayersOf(options, config);
  statistics.options.window = WindowOf(options, config);
  statistics.precision = model.GetModel().GetProducts();
  statistics.hasAlibi = config.position == PositionKind::Alibi;
  statistics.headDimension = config.headDimension;
  statistics.valueDimension = options.sampleValues ? config.ValueDimension() : 0;
  for (const std::int64_t layer : statistics.options.layers)
  {
    for (std::int64_t h = 0; h < config.heads; ++h)
    {
      statistics.places.push_back(
        { static_cast<std::int32_t>(layer), static_cast<std::int32_t>(h) });
    }
  }
  const std::size_t d = config.headDimension;
  statistics.heads.resize(statistics.places.size());
  for (std::size_t h = 0; h < statistics.heads.size(); ++h)
  {
    CorpusHead& head = statistics.heads[h];
    head.scoreScale = config.ScoreScale(statistics.places[h].layer);
    head.distances.resize(statistics.options.window);
    head.queryMoment.resize(d * d);
    head.keyMoment.resize(d * d);
    head.keySum.resize(d);
    head.valueMoment.resize(statistics.valueDimension * statistics.valueDimension);
    head.valueSum.resize(statistics.valueDimension);
  }
  if (options.agreement)
  {
    statistics.products.resize(statistics.heads.size() * statistics.heads.size());
  }
  if (!options.dictionary.empty())
  {
    const FeatureMeasure features(model.GetModel(), statistics.options);
    statistics.dictionary = features.Description();
    statistics.features.resize(features.Count());
  }
  statistics.fingerprint = FingerprintOf(model.GetModel(), threads, progress);
  return statistics;
}

void RequireSameOptions(
  const CorpusStatistics& earlier, const CorpusStatistics& begun, const std::string& source)
{
  const auto textOf = [](const CorpusStatistics& statistics)
  {
    const CorpusOptions& options = statistics.options;
    std::ostringstream text;
    text << statistics.heads.size() << " heads of " << statistics.headDimension
         << " dimensions, Documents " << NameOf(DocumentSplits, options.split)
         << ", AddSpecialTokens " << options.addSpecialTokens << ", Window " << options.window
         << ", Overlap " << options.overlap << ", Contexts " << options.contexts << ", Samples "
         << options.samples << ", SinkThreshold " << options.sinkThreshold << ", Agreement "
         << options.agreement << ", BatchTokens " << options.batch << ", Products "
         << Name(statistics.precision) << (options.sampleValues ? ", SampleValues 1" : "")
         << (statistics.dictionary.empty() ? "" : ", Dictionary of ") << statistics.dictionary
         << ", Layers";
    for (const std::int64_t layer : options.layers)
    {
      text << ' ' << layer;
    }
    return text.str();
  };
  if (textOf(earlier) != textOf(begun))
  {
    throw OptionError(
      source, ": expected statistics of ", textOf(begun), "; found ", textOf(earlier), ".");
  }
  ThrowIf<OptionError>(earlier.fingerprint.weights.empty(), source,
    ": expected statistics that say of which model and texts they are, found those of an older "
    "version, which can be shown but not continued.");
  if (!(earlier.fingerprint == begun.fingerprint))
  {
    const bool areWeights = earlier.fingerprint.configuration == begun.fingerprint.configuration;
    throw OptionError(source, ": expected statistics of the model ", begun.model,
      ", found those of one with other ", areWeights ? "weights" : "settings", ", then at ",
      earlier.model, ".");
  }
}

CorpusStatistics ContinueCorpus(const OpenTransformer& model, CorpusStatistics earlier,
  const CorpusStatistics& begun, const std::vector<std::string>& files, const std::string& source,
  const Progress& progress)
{
  RequireSameOptions(earlier, begun, source);
  CorpusText text(model, files, earlier.options);
  RequireSameFiles(files, text, earlier);
  std::vector<std::uint64_t> hashes;
  std::int64_t windows = 0;
  while (text.Position().queries < earlier.next.queries)
  {
    const std::optional<CorpusWindow> window = text.Next();
    if (!window)
    {
      break;
    }
    AddToHashes(text, *window, hashes);
    constexpr int WindowsPerReport = 64;
    if (++windows % WindowsPerReport == 0)
    {
      progress(text.Position().queries, earlier.next.queries);
    }
  }
  const auto [found, expected] = std::mismatch(
    hashes.begin(), hashes.end(), earlier.textHashes.begin(), earlier.textHashes.end());
  if (found != hashes.end() || expected != earlier.textHashes.end() ||
      text.Position().queries != earlier.next.queries)
  {
    const std::size_t file = std::min<std::size_t>(found - hashes.begin(), files.size() - 1);
    throw OptionError(source, ": expected statistics of these texts, found that ", files[file],
      " had other tokens when it was measured.");
  }
  earlier.next = text.Position();
  earlier.options.dictionary = begun.options.dictionary;
  return earlier;
}

CorpusMemory EstimateCorpusMemory(
  const OpenTransformer& model, const CorpusOptions& options, std::int64_t kinds)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  const std::size_t layers = LayersOf(options, config).size();
  const std::uint64_t heads = layers * ToIndex(config.heads);
  const std::uint64_t d = config.headDimension;
  const std::uint64_t ofValues = options.sampleValues ? config.ValueDimension() : 0;
  const std::uint64_t window = WindowOf(options, config);
  const std::uint64_t rows = ToIndex(options.batch) + window;
  const std::uint64_t ofHead =
    (2 * d * d + ofValues * ofValues) * sizeof(ExactSum) + ToIndex(kinds) * sizeof(TokenAttention) +
    CorpusSketchCount * 28 * 1024 + ContextMeasureCount * ToIndex(options.contexts) * window * 8;
  const std::uint64_t products = options.agreement ? heads * heads : 0;
  CorpusMemory memory;
  memory.statistics = heads * ofHead + products * sizeof(ExactSum) +
                      ToIndex(options.samples) * heads * (2 * d + ofValues) * sizeof(float);
  TransformerInput input;
  input.tokens.assign(rows / window + 1, std::vector<std::int64_t>(window));
  RecordOptions recorded;
  recorded.layers = options.layers;
  const MemoryEstimate batch = EstimateMemory(model.GetModel(), input, recorded);
  const std::uint64_t blocks = heads * 128 * window * (options.agreement ? 2 : 1);
  memory.working = (blocks + products + heads * d * rows) * sizeof(float) + batch.recording +
                   batch.working + CorpusWeights::Memory(config, layers);
  if (!options.dictionary.empty())
  {
    const CorpusMemory more = FeatureMeasure::Memory(options, model.GetModel().GetConfig(), window);
    memory.statistics += more.statistics;
    memory.working += more.working + rows * sizeof(float) *
                                       ToIndex(config.modelDimension * (config.heads + 2) * layers);
  }
  return memory;
}

std::int64_t KindsAfter(
  const OpenTransformer& model, const CorpusStatistics& statistics, std::int64_t tokens)
{
  const std::int64_t known = statistics.ids.size();
  const std::int64_t unknown =
    std::max<std::int64_t>(model.GetModel().GetConfig().vocabulary - known, 0);
  return known + std::clamp<std::int64_t>(tokens - statistics.next.queries, 0, unknown);
}

std::int64_t KindsAfterBatch(const OpenTransformer& model, const CorpusStatistics& statistics)
{
  const CorpusOptions& options = statistics.options;
  return KindsAfter(model, statistics, statistics.next.queries + options.batch + options.window);
}

std::string FindShortage(const OpenTransformer& model, const CorpusStatistics& statistics)
{
  const std::int64_t more =
    KindsAfterBatch(model, statistics) - static_cast<std::int64_t>(statistics.ids.size());
  const double bytes = 2. * static_cast<double>(more) *
                       static_cast<double>(sizeof(TokenAttention)) *
                       static_cast<double>(statistics.heads.size());
  try
  {
    RequireMemory(bytes, "the tables of tokens of all heads", "choose fewer layers.");
  }
  catch (const std::runtime_error& e)
  {
    return e.what();
  }
  return {};
}

void MeasureCorpus(
  const OpenTransformer& model, const CorpusRunOptions& run, CorpusStatistics& statistics)
{
  CorpusText text(model, run.files, statistics.options, statistics.next);
  RequireSameFiles(run.files, text, statistics);
  statistics.sizes = text.GetSizes();
  const Transformer& transformer = model.GetModel();
  const CorpusWeights weights(transformer, statistics.options.layers, run.threads);
  statistics.hasLogits = weights.HasLogits();
  RecordOptions recorded = RecordingOf(statistics, weights.HasLogits(), run.threads);
  std::optional<FeatureMeasure> features;
  if (!statistics.options.dictionary.empty())
  {
    features.emplace(transformer, statistics.options);
    ThrowIf<OptionError>(features->Description() != statistics.dictionary,
      statistics.options.dictionary, ": expected the dictionary of ", statistics.dictionary,
      ", found that of ", features->Description(), ".");
    features->AddTo(recorded);
  }
  const auto isFull = [&]
  { return run.tokenLimit > 0 && text.Position().queries >= run.tokenLimit; };
  const auto done = [&]
  {
    const auto tokens = static_cast<double>(text.Position().queries);
    const double ofLimit = run.tokenLimit > 0 ? tokens / static_cast<double>(run.tokenLimit) : 0.;
    return std::min(std::max(text.Done(), ofLimit), 1.);
  };
  statistics.isComplete = false;
  while (!statistics.isComplete && !isFull() && (!run.goesOn || run.goesOn(done())))
  {
    for (int part = 0; part < run.parts && !statistics.isComplete && !isFull(); ++part)
    {
      const std::vector<CorpusWindow> windows =
        NextBatch(text, statistics.options.batch, statistics.textHashes);
      statistics.isComplete = windows.empty();
      if (part == run.part && !windows.empty())
      {
        const Recording batch = RecordBatch(transformer, windows, recorded);
        MeasureBatch(batch, windows, weights, run.threads, statistics);
        if (features)
        {
          features->Measure(batch, windows, run.threads, statistics);
        }
      }
    }
    statistics.next = text.Position();
  }
  ThrowIf<OptionError>(statistics.isComplete && text.Position().queries == 0,
    "the text: expected documents with tokens, found none.");
  LabelKinds(model, statistics);
  statistics.SortKinds();
}

}
