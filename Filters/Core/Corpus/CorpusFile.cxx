#include "CorpusFile.h"

#include "Base/Error.h"
#include "Base/HashValues.h"
#include "Base/Index.h"
#include "Files/AtomicFile.h"
#include "Files/JsonText.h"
#include "Files/Safetensors.h"
#include "Internal/CorpusArchive.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;
using Integers = std::vector<std::int64_t>;

/// The value of the metadata entry `alibi`: how it counts in scores of contexts.
constexpr const char* AlibiByDistance = "by distance";

template<class Archive, class Heads>
void PassSketches(Archive& archive, Heads& heads)
{
  QuantileSketch model;
  model.Add(0);
  const std::int64_t bins = CountOf(model.GetBins().size());
  PassList(archive, "sketches", heads, CountOf(heads.size()), { CountOf(CorpusSketchCount), bins },
    DType::I64,
    [&](auto& numbers, auto& head)
    {
      for (auto& sketch : head.sketches)
      {
        Integers counts = sketch.GetBins();
        counts.resize(bins);
        PassCounts(numbers, counts);
        if constexpr (Archive::Reads)
        {
          const bool isEmpty = std::all_of(
            counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; });
          sketch = QuantileSketch::FromBins(isEmpty ? Integers() : std::move(counts), "sketches");
        }
      }
    });
}

template<class Archive, class Statistics>
void PassHeads(Archive& archive, Statistics& statistics)
{
  auto& heads = statistics.heads;
  const std::int64_t d = statistics.headDimension;
  const auto pass = [&](const char* name, const Shape& shape, const auto& ofHead)
  { PassList(archive, name, heads, CountOf(heads.size()), shape, DType::I64, ofHead); };
  const auto passSums = [&](const char* name, std::int64_t size, const Shape& columns, auto list)
  {
    Shape shape = columns;
    shape.insert(shape.begin(), size);
    pass(name, shape,
      [&](auto& numbers, auto& head)
      {
        Archive::Resize(head.*list, size);
        PassSums(numbers, head.*list);
      });
  };
  pass("sums", { CountOf(CorpusSumCount), 2 },
    [](auto& numbers, auto& head) { PassSums(numbers, head.sums); });
  pass("counts", { CountOf(CorpusCountCount) },
    [](auto& numbers, auto& head) { PassCounts(numbers, head.counts); });
  pass("histograms", { CountOf(CorpusHistogramCount), CountOf(HistogramBins) },
    [](auto& numbers, auto& head)
    {
      for (auto& histogram : head.histograms)
      {
        PassCounts(numbers, histogram);
      }
    });
  passSums("distances", statistics.options.window, {}, &CorpusHead::distances);
  passSums("query_moment", d * d, { 2 }, &CorpusHead::queryMoment);
  passSums("key_moment", d * d, { 2 }, &CorpusHead::keyMoment);
  passSums("key_sum", d, { 2 }, &CorpusHead::keySum);
  if (const std::int64_t ofValues = statistics.valueDimension; ofValues > 0)
  {
    passSums("value_moment", ofValues * ofValues, { 2 }, &CorpusHead::valueMoment);
    passSums("value_sum", ofValues, { 2 }, &CorpusHead::valueSum);
  }
  const std::int64_t kinds = CountOf(statistics.ids.size());
  pass("tokens", { kinds, 4 },
    [kinds](auto& numbers, auto& head)
    {
      Archive::Resize(head.tokens, kinds);
      for (auto& token : head.tokens)
      {
        numbers.Sum(token.from);
        numbers.Sum(token.fromDistance);
        numbers.Sum(token.to);
        numbers.Sum(token.toDistance);
      }
    });
  PassSketches(archive, heads);
}

/// A context with its head and measure, or its feature and 0.
template<class Context>
struct ContextRow
{
  std::int64_t owner = 0;
  std::int64_t measure = 0;
  std::int64_t count = 0; ///< tokens
  Context* context = nullptr;
};

/// Contexts of heads or, with the prefix "feature_", of features.
template<class Archive, class Context>
void PassContexts(Archive& archive, const std::string& prefix,
  std::vector<ContextRow<Context>>& rows,
  const std::function<void(const ContextRow<Context>&)>& check)
{
  PassList(archive, prefix + "contexts", rows, CountOf(rows.size()), { 7 }, DType::I64,
    [](auto& numbers, auto& row)
    {
      numbers.Integer(row.owner);
      numbers.Integer(row.measure);
      numbers.Integer(row.context->document);
      numbers.Integer(row.context->begin);
      numbers.Integer(row.count);
      numbers.Integer(row.context->query);
      numbers.Integer(row.context->key);
    });
  std::int64_t all = 0;
  for (const auto& row : rows)
  {
    check(row);
    all += row.count;
  }
  PassList(archive, prefix + "context_values", rows, CountOf(rows.size()), {}, DType::F64,
    [](auto& numbers, auto& row) { numbers.WideFloat(row.context->value); });
  archive.Tensor(prefix + "context_tokens", { all }, DType::I64,
    [&](auto& numbers)
    {
      for (auto& row : rows)
      {
        Archive::Resize(row.context->tokens, row.count);
        PassIntegers(numbers, row.context->tokens);
      }
    });
}

/// Throws ModelError unless tokens are among the kinds of the statistics.
void RequireKnownTokens(const CorpusArchiveReader& reader, const CorpusStatistics& statistics,
  const std::vector<std::int32_t>& tokens, const char* message)
{
  reader.Require(
    std::all_of(tokens.begin(), tokens.end(), [&](std::int64_t id)
      { return std::binary_search(statistics.ids.begin(), statistics.ids.end(), id); }),
    message);
}

void PassContexts(CorpusArchiveWriter& writer, const CorpusStatistics& statistics)
{
  using Row = ContextRow<const TopContext>;
  const auto ignore = [](const Row& /*row*/) {};
  std::vector<Row> rows;
  for (std::size_t h = 0; h < statistics.heads.size(); ++h)
  {
    for (std::size_t m = 0; m < ContextMeasureCount; ++m)
    {
      for (const TopContext& context : statistics.heads[h].contexts[m])
      {
        rows.push_back({ CountOf(h), CountOf(m), CountOf(context.tokens.size()), &context });
      }
    }
  }
  PassContexts<CorpusArchiveWriter, const TopContext>(writer, "", rows, ignore);
  if (statistics.dictionary.empty())
  {
    return;
  }
  rows.clear();
  for (std::size_t f = 0; f < statistics.features.size(); ++f)
  {
    for (const TopContext& context : statistics.features[f].contexts)
    {
      rows.push_back({ CountOf(f), 0, CountOf(context.tokens.size()), &context });
    }
  }
  PassContexts<CorpusArchiveWriter, const TopContext>(writer, "feature_", rows, ignore);
}

/// Reads contexts of `owners` heads or features by `measures`, and keeps each.
template<class KeepIt>
void ReadContexts(const CorpusArchiveReader& reader, const std::string& prefix,
  const CorpusStatistics& statistics, std::size_t owners, std::size_t measures,
  const KeepIt& keepIt)
{
  std::vector<TopContext> contexts;
  CorpusArchiveReader::Resize(contexts, reader.RowsOf(prefix + "contexts", { 7 }, 0));
  std::vector<ContextRow<TopContext>> rows;
  rows.reserve(contexts.size());
  for (TopContext& context : contexts)
  {
    rows.push_back({ 0, 0, 0, &context });
  }
  PassContexts<const CorpusArchiveReader, TopContext>(reader, prefix, rows,
    [&](const ContextRow<TopContext>& row)
    {
      const TopContext& context = *row.context;
      reader.Require(row.owner >= 0 && row.owner < CountOf(owners) && row.measure >= 0 &&
                       row.measure < CountOf(measures) && row.count >= 1 &&
                       row.count <= statistics.options.window && context.query >= 0 &&
                       context.query < row.count && context.key >= 0 && context.key < row.count &&
                       context.document >= 0 && context.begin >= 0,
        "contexts: a head, feature, measure or position is out of range.");
    });
  for (const ContextRow<TopContext>& row : rows)
  {
    RequireKnownTokens(
      reader, statistics, row.context->tokens, "context_tokens: expected tokens of ids.");
    keepIt(row);
  }
}

void PassContexts(const CorpusArchiveReader& reader, CorpusStatistics& statistics)
{
  using Row = ContextRow<TopContext>;
  ReadContexts(reader, "", statistics, statistics.heads.size(), ContextMeasureCount,
    [&](const Row& row)
    {
      statistics.Keep(
        ToIndex(row.owner), static_cast<ContextMeasure>(row.measure), std::move(*row.context));
    });
  if (!statistics.dictionary.empty())
  {
    ReadContexts(reader, "feature_", statistics, statistics.features.size(), 1,
      [&](const Row& row) { statistics.Keep(ToIndex(row.owner), std::move(*row.context)); });
  }
}

template<class Archive, class Statistics>
void PassFeatures(Archive& archive, Statistics& statistics)
{
  if (statistics.dictionary.empty())
  {
    return;
  }
  archive.Tensor("feature_tokens", { 1 }, DType::I64,
    [&](auto& numbers) { numbers.Count(statistics.featureTokens); });
  const std::int64_t count = archive.RowsOf("feature_active", {}, statistics.features.size());
  PassList(archive, "feature_active", statistics.features, count, {}, DType::I64,
    [](auto& numbers, auto& feature) { numbers.Count(feature.active); });
}

/// The texts of kinds of tokens as one, and where each ends.
template<class Archive>
void PassTexts(Archive& archive, Integers& ends, std::string& all)
{
  PassList(archive, "text_ends", ends, CountOf(ends.size()), {}, DType::I64,
    [](auto& numbers, auto& end) { numbers.Integer(end); });
  const std::int64_t count = ends.empty() ? 0 : ends.back();
  archive.Tensor("texts", { count }, DType::I64,
    [&](auto& numbers)
    {
      if constexpr (Archive::Reads)
      {
        all.resize(count);
      }
      PassIntegers(numbers, all);
    });
}

void PassTexts(CorpusArchiveWriter& writer, const CorpusStatistics& statistics)
{
  std::string all;
  Integers ends;
  for (const std::string& text : statistics.texts)
  {
    all += text;
    ends.push_back(CountOf(all.size()));
  }
  PassTexts<CorpusArchiveWriter>(writer, ends, all);
}

void PassTexts(const CorpusArchiveReader& reader, CorpusStatistics& statistics)
{
  Integers ends(reader.RowsOf("text_ends", {}, 0));
  std::string all;
  PassTexts<const CorpusArchiveReader>(reader, ends, all);
  if (!std::is_sorted(ends.begin(), ends.end()) || (!ends.empty() && ends.front() < 0) ||
      (!ends.empty() && ends.size() != statistics.ids.size()))
  {
    reader.Fail(
      "text_ends: expected rising numbers, one for each of ", statistics.ids.size(), " ids.");
  }
  std::int64_t begin = 0;
  for (const std::int64_t end : ends)
  {
    statistics.texts.push_back(all.substr(begin, end - begin));
    begin = end;
  }
}

template<class Archive, class Statistics>
void PassSamples(Archive& archive, Statistics& statistics)
{
  auto& samples = statistics.samples;
  const std::int64_t count = archive.RowsOf("samples", { 4 }, samples.size());
  PassList(archive, "samples", samples, count, { 4 }, DType::I64,
    [](auto& numbers, auto& sample)
    {
      numbers.Integer(sample.order);
      numbers.Integer(sample.document);
      numbers.Integer(sample.position);
      numbers.Integer(sample.token);
    });
  const auto pass = [&](const char* name, auto vectors, std::int64_t dimension)
  {
    const std::int64_t columns = CountOf(statistics.heads.size()) * dimension;
    PassList(archive, name, samples, count, { columns }, DType::F32,
      [&](auto& numbers, auto& sample)
      {
        Archive::Resize(sample.*vectors, columns);
        for (auto& value : sample.*vectors)
        {
          numbers.Float(value);
        }
      });
  };
  pass("sample_queries", &CorpusSample::queries, statistics.headDimension);
  pass("sample_keys", &CorpusSample::keys, statistics.headDimension);
  if (statistics.valueDimension > 0)
  {
    pass("sample_values", &CorpusSample::values, statistics.valueDimension);
  }
}

/// What a file must have before lists of its sizes are made.
void CheckTotals(const CorpusArchiveReader& reader, const CorpusStatistics& statistics)
{
  constexpr std::int64_t Most = 1 << 20;
  reader.Require(statistics.headDimension >= 1 && statistics.headDimension <= Most,
    "totals: the dimension of heads is out of range.");
  reader.Require(statistics.next.IsPossible(statistics.options.overlap),
    "totals: the text goes on where no window can begin.");
}

bool IsRising(const Integers& numbers)
{
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

/// The heads are all of each of some layers, as the options have them.
void CheckPlaces(const CorpusArchiveReader& reader, const CorpusStatistics& statistics)
{
  const std::vector<HeadPlace>& places = statistics.places;
  const std::vector<std::int64_t>& layers = statistics.options.layers;
  bool isValid =
    !places.empty() && !layers.empty() && places.size() % layers.size() == 0 && IsRising(layers);
  const std::size_t heads = isValid ? places.size() / layers.size() : 1;
  for (std::size_t i = 0; isValid && i < places.size(); ++i)
  {
    isValid = places[i].layer >= 0 && places[i].layer == layers[i / heads] &&
              places[i].head == CountOf(i % heads);
  }
  reader.Require(isValid, "places: expected all heads of each of the layers of the options.");
}

void CheckSamples(const CorpusArchiveReader& reader, const CorpusStatistics& statistics)
{
  reader.Require(CountOf(statistics.samples.size()) <= statistics.options.samples,
    "samples: expected at most those of the options.");
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < statistics.samples.size(); ++i)
  {
    const CorpusSample& sample = statistics.samples[i];
    tokens.push_back(sample.token);
    reader.Require(
      i == 0 || statistics.samples[i - 1].order <= sample.order, "samples: expected rising order.");
  }
  RequireKnownTokens(reader, statistics, tokens, "samples: expected tokens of ids.");
}

template<class Archive, class Statistics>
void Pass(Archive& archive, Statistics& statistics)
{
  auto& next = statistics.next;
  archive.Tensor("totals", { 11 }, DType::I64,
    [&](auto& numbers)
    {
      numbers.Integer(statistics.headDimension);
      numbers.Flag(statistics.hasLogits);
      numbers.Count(statistics.documents);
      numbers.Count(statistics.windows);
      numbers.Count(statistics.tokens);
      numbers.Flag(statistics.isComplete);
      numbers.Count(next.file);
      numbers.Integer(next.offset);
      numbers.Count(next.document);
      numbers.Integer(next.token);
      numbers.Count(next.queries);
    });
  if constexpr (Archive::Reads)
  {
    CheckTotals(archive, statistics);
  }
  const std::int64_t heads = archive.RowsOf("places", { 2 }, statistics.places.size());
  PassList(archive, "places", statistics.places, heads, { 2 }, DType::I64,
    [](auto& numbers, auto& place)
    {
      numbers.Integer(place.layer);
      numbers.Integer(place.head);
    });
  if constexpr (Archive::Reads)
  {
    CheckPlaces(archive, statistics);
  }
  PassList(archive, "score_scales", statistics.heads, heads, {}, DType::F64,
    [](auto& numbers, auto& head) { numbers.Double(head.scoreScale); });
  const std::int64_t kinds = archive.RowsOf("ids", {}, statistics.ids.size());
  PassList(archive, "ids", statistics.ids, kinds, {}, DType::I64,
    [](auto& numbers, auto& id) { numbers.Integer(id); });
  PassList(archive, "occurrences", statistics.occurrences, kinds, {}, DType::I64,
    [](auto& numbers, auto& count) { numbers.Count(count); });
  if constexpr (Archive::Reads)
  {
    const Integers& ids = statistics.ids;
    archive.Require(
      IsRising(ids) && (ids.empty() || ids.front() >= 0), "ids: expected rising numbers from 0.");
  }
  PassHeads(archive, statistics);
  PassFeatures(archive, statistics);
  PassContexts(archive, statistics);
  PassTexts(archive, statistics);
  PassSamples(archive, statistics);
  if constexpr (Archive::Reads)
  {
    CheckSamples(archive, statistics);
  }
  if (statistics.options.agreement)
  {
    archive.Tensor("products", { heads, heads, 2 }, DType::I64,
      [&](auto& numbers)
      {
        Archive::Resize(statistics.products, heads * heads);
        PassSums(numbers, statistics.products);
      });
  }
}

std::string OptionsToText(const CorpusOptions& options)
{
  return json({ { "split", NameOf(DocumentSplits, options.split) },
                { "special_tokens", options.addSpecialTokens }, { "window", options.window },
                { "overlap", options.overlap }, { "layers", options.layers },
                { "contexts", options.contexts }, { "samples", options.samples },
                { "sink_threshold", options.sinkThreshold }, { "agreement", options.agreement },
                { "batch", options.batch } })
    .dump();
}

/// Throws ModelError for what is no integer; numbers with a point are not converted.
void RequireInteger(const json& value, const std::string& what)
{
  ThrowIf<ModelError>(
    !value.is_number_integer(), what, ": expected an integer, found ", Describe(value), ".");
}

CorpusOptions OptionsFromText(const std::string& text, const std::string& source)
{
  const json object = ParseJson(text, source, "the entry options");
  try
  {
    const auto integer = [&](const char* name)
    {
      const json& value = object.at(name);
      RequireInteger(value, source + ": the entry options: " + name);
      return value.get<std::int64_t>();
    };
    CorpusOptions options;
    options.split =
      ParseNamed<ModelError>(DocumentSplits, object.at("split").get<std::string>(), source);
    options.addSpecialTokens = object.at("special_tokens").get<bool>();
    options.window = integer("window");
    options.overlap = integer("overlap");
    for (const json& layer : object.at("layers"))
    {
      RequireInteger(layer, source + ": the entry options: layers");
      options.layers.push_back(layer.get<std::int64_t>());
    }
    options.contexts = integer("contexts");
    options.samples = integer("samples");
    options.sinkThreshold = object.at("sink_threshold").get<double>();
    options.agreement = object.at("agreement").get<bool>();
    options.batch = integer("batch");
    const auto require = [&](bool holds, const char* name)
    { ThrowIf<ModelError>(!holds, source, ": the entry options: ", name, " is out of range."); };
    require(
      options.window >= 2 && options.window <= std::numeric_limits<std::int32_t>::max(), "window");
    require(options.overlap >= 0 && options.overlap <= (options.window - 1) / 2, "overlap");
    require(options.contexts >= 0 && options.contexts <= MostContexts, "contexts");
    require(options.samples >= 0 && options.samples <= MostSamples, "samples");
    require(options.batch >= 1 && options.batch <= MostBatch, "batch");
    require(options.sinkThreshold >= 0 && options.sinkThreshold <= 1, "sink_threshold");
    return options;
  }
  catch (const json::exception& e)
  {
    throw ModelError(source, ": the entry options: ", e.what(), ".");
  }
}

/// The entry is optional.
std::vector<std::uint64_t> SizesFromText(const std::string& text, const std::string& source)
{
  if (text.empty())
  {
    return {};
  }
  std::vector<std::uint64_t> sizes;
  const json list = ParseJson(text, source, "the entry sizes");
  ThrowIf<ModelError>(
    !list.is_array(), source, ": the entry sizes: expected an array, found ", Describe(list), ".");
  for (const json& size : list)
  {
    RequireInteger(size, source + ": the entry sizes");
    sizes.push_back(size.get<std::uint64_t>());
  }
  return sizes;
}

json FingerprintsOf(const CorpusStatistics& statistics)
{
  json texts = json::array();
  for (const std::uint64_t hash : statistics.textHashes)
  {
    texts.push_back(HashText(hash));
  }
  return { { "configuration", statistics.fingerprint.configuration },
    { "weights", statistics.fingerprint.weights }, { "texts", std::move(texts) } };
}

/// Files of older versions do not have the entry.
void ReadFingerprints(
  const std::string& text, const std::string& source, CorpusStatistics& statistics)
{
  if (text.empty())
  {
    return;
  }
  const json object = ParseJson(text, source, "the entry fingerprints");
  try
  {
    statistics.fingerprint = { object.at("configuration").get<std::string>(),
      object.at("weights").get<std::string>() };
    for (const json& digits : object.at("texts"))
    {
      const auto hash = digits.get<std::string>();
      statistics.textHashes.push_back(
        std::strtoull(hash.c_str(), nullptr, 16)); // what is no hash differs from all
    }
  }
  catch (const json::exception& e)
  {
    throw ModelError(source, ": the entry fingerprints: ", e.what(), ".");
  }
}

/// The entry is there if values were sampled.
std::int64_t ValueDimensionOf(const std::string& text, const std::string& source)
{
  constexpr std::int64_t Most = 1 << 20;
  if (text.empty())
  {
    return 0;
  }
  const json value = ParseJson(text, source, "the entry value_dimension");
  ThrowIf<ModelError>(!value.is_number_integer() || value < 1 || value > Most, source,
    ": the entry value_dimension: expected 1 to ", Most, ", found ", text, ".");
  return value.get<std::int64_t>();
}

Metadata MetadataOf(const CorpusStatistics& statistics)
{
  Metadata metadata = { { "format", CorpusFormat }, { "version", CorpusVersion },
    { "model", statistics.model }, { "options", OptionsToText(statistics.options) },
    { "sizes", json(statistics.sizes).dump() } };
  if (statistics.valueDimension > 0)
  {
    metadata.emplace("value_dimension", std::to_string(statistics.valueDimension));
  }
  if (statistics.precision != ProductPrecision::Single)
  {
    metadata.emplace("precision", Name(statistics.precision));
  }
  if (!statistics.fingerprint.weights.empty())
  {
    metadata.emplace("fingerprints", FingerprintsOf(statistics).dump());
  }
  if (!statistics.dictionary.empty())
  {
    metadata.emplace("dictionary", statistics.dictionary);
  }
  if (statistics.hasAlibi)
  {
    metadata.emplace("alibi", AlibiByDistance);
  }
  return metadata;
}

CorpusStatistics FromContent(const SafetensorsContent& content, const std::string& source)
{
  const auto entry = [&](const char* name)
  {
    const auto found = content.metadata.find(name);
    return found == content.metadata.end() ? std::string() : found->second;
  };
  ThrowIf<FormatError>(entry("format") != CorpusFormat || entry("version") != CorpusVersion, source,
    ": expected statistics of a corpus (format ", CorpusFormat, ", version ", CorpusVersion,
    "), found format '", entry("format"), "', version '", entry("version"), "'.");
  CorpusStatistics statistics;
  statistics.model = entry("model");
  statistics.options = OptionsFromText(entry("options"), source);
  statistics.sizes = SizesFromText(entry("sizes"), source);
  statistics.valueDimension = ValueDimensionOf(entry("value_dimension"), source);
  statistics.options.sampleValues = statistics.valueDimension > 0;
  if (!entry("precision").empty())
  {
    statistics.precision = ParseNamed<ModelError>(
      ProductPrecisions, entry("precision"), source + ": the entry precision");
  }
  ReadFingerprints(entry("fingerprints"), source, statistics);
  statistics.hasAlibi = entry("alibi") == AlibiByDistance;
  statistics.dictionary = entry("dictionary");
  CorpusArchiveReader reader(content.tensors, source);
  Pass(reader, statistics);
  return statistics;
}

}

void CorpusToMemory(
  const CorpusStatistics& statistics, const std::function<char*(std::size_t)>& allocate)
{
  CorpusArchiveWriter writer;
  Pass(writer, statistics);
  writer.WriteTo(allocate(writer.LayOut(MetadataOf(statistics))));
  Pass(writer, statistics);
}

std::vector<char> CorpusToBytes(const CorpusStatistics& statistics)
{
  std::vector<char> bytes;
  CorpusToMemory(statistics,
    [&](std::size_t size)
    {
      bytes.resize(size);
      return bytes.data();
    });
  return bytes;
}

void WriteCorpus(const std::filesystem::path& path, const CorpusStatistics& statistics)
{
  AtomicFile file(path);
  const std::vector<char> bytes = CorpusToBytes(statistics);
  file.Write(bytes.data(), bytes.size());
  file.Commit();
}

CorpusStatistics ReadCorpus(const std::filesystem::path& path)
{
  const SafetensorsFile file(path);
  return ReadIntact(
    file, [&] { return FromContent({ file.GetTensors(), file.GetMetadata() }, path.string()); });
}

CorpusStatistics CorpusFromBytes(const char* bytes, std::size_t size, const std::string& source)
{
  return FromContent(
    ParseSafetensors(reinterpret_cast<const std::byte*>(bytes), size, source), source);
}

CorpusStatistics CorpusFromBytes(const std::vector<char>& bytes, const std::string& source)
{
  return CorpusFromBytes(bytes.data(), bytes.size(), source);
}

}
