#include "CorpusFile.h"

#include "Error.h"
#include "Index.h"
#include "JsonText.h"
#include "Safetensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <sstream>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;
using Integers = std::vector<std::int64_t>;

/// Numbers that become a tensor, or come from one in the same order.
class Stream
{
public:
  /// For `count` numbers that are written.
  explicit Stream(std::int64_t count) { this->Values.reserve(count); }
  explicit Stream(Integers values)
    : Values(std::move(values))
    , Reads(true)
  {
  }

  void Number(std::int64_t& value)
  {
    if (this->Reads)
    {
      value = this->Values[this->At++];
    }
    else
    {
      this->Values.push_back(value);
    }
  }
  void Number(std::int32_t& value)
  {
    std::int64_t wide = value;
    this->Number(wide);
    value = static_cast<std::int32_t>(wide);
  }
  void Sum(ExactSum& sum)
  {
    std::int64_t high = sum.High();
    std::int64_t low = sum.Low();
    this->Number(high);
    this->Number(low);
    sum = ExactSum::FromBits(high, low);
  }
  template<int Bits>
  void Sum(FixedSum<Bits>& sum)
  {
    std::int64_t stored = sum.Stored();
    this->Number(stored);
    sum = FixedSum<Bits>::FromStored(stored);
  }
  template<class List>
  void Sums(List& sums)
  {
    for (auto& sum : sums)
    {
      this->Sum(sum);
    }
  }
  template<class List>
  void Numbers(List& numbers)
  {
    for (auto& number : numbers)
    {
      this->Number(number);
    }
  }

  Integers& GetValues() { return this->Values; }

private:
  Integers Values;
  std::size_t At = 0;
  bool Reads = false;
};

/// Tensors that are made from statistics, or that statistics are made from.
class Archive
{
public:
  Archive() = default;
  Archive(const TensorViews& tensors, std::string source)
    : Read(&tensors)
    , Source(std::move(source))
  {
  }

  bool Reads() const { return this->Read != nullptr; }

  /// Calls use(stream) for a tensor of integers.
  template<class Use>
  void Integer(const std::string& name, const Shape& shape, const Use& use)
  {
    if (this->Reads())
    {
      Stream stream(this->Find(name, shape, false).ToInteger());
      use(stream);
      return;
    }
    Stream stream(std::accumulate(
      shape.begin(), shape.end(), std::int64_t{ 1 }, std::multiplies<std::int64_t>()));
    use(stream);
    this->Made.emplace(name, Tensor::FromInteger(shape, stream.GetValues()));
  }

  void Floats(const std::string& name, const Shape& shape, std::vector<double>& values,
    DType dtype = DType::F64)
  {
    if (this->Reads())
    {
      values = this->Find(name, shape, true).ToDouble();
      return;
    }
    this->Made.emplace(name, Tensor::FromDouble(dtype, shape, values));
  }

  /// The size of the first axis of a tensor that is read.
  std::int64_t CountOf(const std::string& name) const
  {
    const auto found = this->Read->find(name);
    if (found == this->Read->end() || found->second.shape.empty())
    {
      throw ModelError(this->Source + ": expected the tensor " + name + ", found none.");
    }
    return found->second.shape.front();
  }

  /// What was made; call once.
  Tensors TakeMade() { return std::move(this->Made); }
  const std::string& GetSource() const { return this->Source; }

private:
  const TensorViews* Read = nullptr;
  std::string Source;
  Tensors Made;

  const TensorView& Find(const std::string& name, const Shape& shape, bool isFloating) const
  {
    this->CountOf(name);
    const TensorView& view = this->Read->find(name)->second;
    if (view.shape != shape || IsFloating(view.dtype) != isFloating)
    {
      throw ModelError(this->Source + ": expected " + name + " as " +
                       (isFloating ? "numbers " : "integers ") + ToString(shape) + ", found " +
                       std::string(Name(view.dtype)) + " " + ToString(view.shape) + ".");
    }
    return view;
  }
};

std::int64_t Count(std::size_t size)
{
  return static_cast<std::int64_t>(size);
}

void PassSketches(Archive& archive, std::vector<CorpusHead>& heads)
{
  QuantileSketch model;
  model.Add(0);
  const std::int64_t bins = Count(model.GetBins().size());
  archive.Integer("sketches", { Count(heads.size()), Count(CorpusSketchCount), bins },
    [&](Stream& stream)
    {
      for (CorpusHead& head : heads)
      {
        for (QuantileSketch& sketch : head.sketches)
        {
          Integers counts = sketch.GetBins();
          counts.resize(bins);
          stream.Numbers(counts);
          const bool isEmpty = std::all_of(
            counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; });
          sketch = QuantileSketch::FromBins(
            isEmpty ? Integers() : std::move(counts), archive.GetSource().c_str());
        }
      }
    });
}

void PassHeads(Archive& archive, CorpusStatistics& statistics)
{
  std::vector<CorpusHead>& heads = statistics.heads;
  const std::int64_t count = Count(heads.size());
  const std::int64_t d = statistics.headDimension;
  const auto pass = [&](const char* name, Shape shape, const auto& ofHead)
  {
    shape.insert(shape.begin(), count);
    archive.Integer(name, shape,
      [&](Stream& stream)
      {
        for (CorpusHead& head : heads)
        {
          ofHead(stream, head);
        }
      });
  };
  pass("sums", { Count(CorpusSumCount), 2 },
    [](Stream& stream, CorpusHead& head) { stream.Sums(head.sums); });
  pass("counts", { Count(CorpusCountCount) },
    [](Stream& stream, CorpusHead& head) { stream.Numbers(head.counts); });
  pass("histograms", { Count(CorpusHistogramCount), Count(HistogramBins) },
    [](Stream& stream, CorpusHead& head)
    {
      for (auto& histogram : head.histograms)
      {
        stream.Numbers(histogram);
      }
    });
  pass("distances", { statistics.options.window },
    [](Stream& stream, CorpusHead& head) { stream.Sums(head.distances); });
  pass("query_moment", { d * d, 2 },
    [](Stream& stream, CorpusHead& head) { stream.Sums(head.queryMoment); });
  pass("key_moment", { d * d, 2 },
    [](Stream& stream, CorpusHead& head) { stream.Sums(head.keyMoment); });
  pass("key_sum", { d, 2 }, [](Stream& stream, CorpusHead& head) { stream.Sums(head.keySum); });
  if (const std::int64_t ofValues = statistics.valueDimension; ofValues > 0)
  {
    pass("value_moment", { ofValues * ofValues, 2 },
      [](Stream& stream, CorpusHead& head) { stream.Sums(head.valueMoment); });
    pass("value_sum", { ofValues, 2 },
      [](Stream& stream, CorpusHead& head) { stream.Sums(head.valueSum); });
  }
  pass("tokens", { Count(statistics.ids.size()), 4 },
    [](Stream& stream, CorpusHead& head)
    {
      for (TokenAttention& token : head.tokens)
      {
        stream.Sum(token.from);
        stream.Sum(token.fromDistance);
        stream.Sum(token.to);
        stream.Sum(token.toDistance);
      }
    });
  PassSketches(archive, heads);
}

/// A context with its head and measure.
struct ContextRow
{
  std::int64_t head = 0;
  std::int64_t measure = 0;
  std::int64_t count = 0; ///< tokens
  TopContext context;
};

void PassContexts(Archive& archive, CorpusStatistics& statistics)
{
  std::vector<ContextRow> rows;
  std::vector<double> values;
  for (std::size_t h = 0; h < statistics.heads.size(); ++h)
  {
    for (std::size_t m = 0; m < ContextMeasureCount; ++m)
    {
      for (const TopContext& context : statistics.heads[h].contexts[m])
      {
        rows.push_back({ Count(h), Count(m), Count(context.tokens.size()), context });
        values.push_back(static_cast<double>(context.value));
      }
    }
  }
  if (archive.Reads())
  {
    rows.resize(ToIndex(archive.CountOf("contexts")));
  }
  archive.Integer("contexts", { Count(rows.size()), 7 },
    [&](Stream& stream)
    {
      for (ContextRow& row : rows)
      {
        for (std::int64_t* number :
          { &row.head, &row.measure, &row.context.document, &row.context.begin, &row.count })
        {
          stream.Number(*number);
        }
        stream.Number(row.context.query);
        stream.Number(row.context.key);
      }
    });
  std::int64_t all = 0;
  for (ContextRow& row : rows)
  {
    if (row.head < 0 || row.head >= Count(statistics.heads.size()) || row.measure < 0 ||
        row.measure >= Count(ContextMeasureCount) || row.count < 1 ||
        row.count > statistics.options.window || row.context.query < 0 ||
        row.context.query >= row.count || row.context.key < 0 || row.context.key >= row.count)
    {
      throw ModelError(
        archive.GetSource() + ": contexts: a head, measure or position is out of range.");
    }
    all += row.count;
  }
  archive.Floats("context_values", { Count(rows.size()) }, values);
  archive.Integer("context_tokens", { all },
    [&](Stream& stream)
    {
      for (ContextRow& row : rows)
      {
        row.context.tokens.resize(row.count);
        stream.Numbers(row.context.tokens);
      }
    });
  for (std::size_t i = 0; archive.Reads() && i < rows.size(); ++i)
  {
    rows[i].context.value = static_cast<float>(values[i]);
    statistics.Keep(ToIndex(rows[i].head), static_cast<ContextMeasure>(rows[i].measure),
      std::move(rows[i].context));
  }
}

void PassTexts(Archive& archive, CorpusStatistics& statistics)
{
  std::string all;
  Integers ends;
  for (const std::string& text : statistics.texts)
  {
    all += text;
    ends.push_back(Count(all.size()));
  }
  if (archive.Reads())
  {
    ends.resize(ToIndex(archive.CountOf("text_ends")));
  }
  archive.Integer(
    "text_ends", { Count(ends.size()) }, [&](Stream& stream) { stream.Numbers(ends); });
  Integers bytes(all.begin(), all.end());
  bytes.resize(ends.empty() ? 0 : ToIndex(std::max<std::int64_t>(ends.back(), 0)));
  if (!std::is_sorted(ends.begin(), ends.end()) || (!ends.empty() && ends.front() < 0) ||
      (!ends.empty() && ends.size() != statistics.ids.size()))
  {
    throw ModelError(archive.GetSource() +
                     ": text_ends: expected rising numbers, one for each of " +
                     std::to_string(statistics.ids.size()) + " ids.");
  }
  archive.Integer("texts", { Count(bytes.size()) }, [&](Stream& stream) { stream.Numbers(bytes); });
  if (archive.Reads())
  {
    all.assign(bytes.begin(), bytes.end());
    std::int64_t begin = 0;
    for (const std::int64_t end : ends)
    {
      statistics.texts.push_back(all.substr(begin, end - begin));
      begin = end;
    }
  }
}

void PassSamples(Archive& archive, CorpusStatistics& statistics)
{
  std::vector<CorpusSample>& samples = statistics.samples;
  if (archive.Reads())
  {
    samples.resize(ToIndex(archive.CountOf("samples")));
  }
  archive.Integer("samples", { Count(samples.size()), 4 },
    [&](Stream& stream)
    {
      for (CorpusSample& sample : samples)
      {
        auto order = static_cast<std::int64_t>(sample.order);
        stream.Number(order);
        sample.order = static_cast<std::uint64_t>(order);
        stream.Number(sample.document);
        stream.Number(sample.position);
        stream.Number(sample.token);
      }
    });
  const auto pass =
    [&](const char* name, std::vector<float> CorpusSample::* vectors, std::int64_t dimension)
  {
    const std::int64_t columns = Count(statistics.heads.size()) * dimension;
    std::vector<double> values;
    for (const CorpusSample& sample : samples)
    {
      values.insert(values.end(), (sample.*vectors).begin(), (sample.*vectors).end());
    }
    archive.Floats(name, { Count(samples.size()), columns }, values, DType::F32);
    for (std::size_t i = 0; archive.Reads() && i < samples.size(); ++i)
    {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(i) * columns;
      (samples[i].*vectors).assign(row, row + columns);
    }
  };
  pass("sample_queries", &CorpusSample::queries, statistics.headDimension);
  pass("sample_keys", &CorpusSample::keys, statistics.headDimension);
  if (statistics.valueDimension > 0)
  {
    pass("sample_values", &CorpusSample::values, statistics.valueDimension);
  }
}

void Pass(Archive& archive, CorpusStatistics& statistics)
{
  std::int64_t hasLogits = statistics.hasLogits ? 1 : 0;
  std::int64_t isComplete = statistics.isComplete ? 1 : 0;
  CorpusPosition& next = statistics.next;
  archive.Integer("totals", { 11 },
    [&](Stream& stream)
    {
      for (std::int64_t* number : { &statistics.headDimension, &hasLogits, &statistics.documents,
             &statistics.windows, &statistics.tokens, &isComplete, &next.file, &next.offset,
             &next.document, &next.token, &next.queries })
      {
        stream.Number(*number);
      }
    });
  statistics.hasLogits = hasLogits != 0;
  statistics.isComplete = isComplete != 0;
  if (archive.Reads())
  {
    constexpr std::int64_t Most = 1 << 20;
    const std::int64_t d = statistics.headDimension;
    const std::int64_t window = statistics.options.window;
    const std::int64_t ofValues = statistics.valueDimension;
    if (d < 1 || d > Most || window < 2 || next.file < 0 || next.offset < 0 || next.token < 0)
    {
      throw ModelError(archive.GetSource() + ": totals or window: a number is out of range.");
    }
    statistics.places.resize(ToIndex(archive.CountOf("places")));
    statistics.heads.resize(statistics.places.size());
    statistics.ids.resize(ToIndex(archive.CountOf("ids")));
    statistics.occurrences.resize(statistics.ids.size());
    // Checked before memory for it is reserved.
    archive.Integer("distances", { Count(statistics.heads.size()), window }, [](Stream&) {});
    archive.Integer("key_moment", { Count(statistics.heads.size()), d * d, 2 }, [](Stream&) {});
    archive.Integer("tokens", { Count(statistics.heads.size()), Count(statistics.ids.size()), 4 },
      [](Stream&) {});
    if (ofValues > 0)
    {
      const Shape shape = { Count(statistics.heads.size()), ofValues * ofValues, 2 };
      archive.Integer("value_moment", shape, [](Stream&) {});
    }
    for (CorpusHead& head : statistics.heads)
    {
      head.distances.resize(window);
      head.queryMoment.resize(d * d);
      head.keyMoment.resize(d * d);
      head.keySum.resize(d);
      head.valueMoment.resize(ofValues * ofValues);
      head.valueSum.resize(ofValues);
      head.tokens.resize(statistics.ids.size());
    }
  }
  archive.Integer("places", { Count(statistics.places.size()), 2 },
    [&](Stream& stream)
    {
      for (HeadPlace& place : statistics.places)
      {
        stream.Number(place.layer);
        stream.Number(place.head);
      }
    });
  std::vector<double> scales(statistics.heads.size());
  std::transform(statistics.heads.begin(), statistics.heads.end(), scales.begin(),
    [](const CorpusHead& head) { return head.scoreScale; });
  archive.Floats("score_scales", { Count(scales.size()) }, scales);
  for (std::size_t h = 0; h < scales.size(); ++h)
  {
    statistics.heads[h].scoreScale = scales[h];
  }
  archive.Integer("ids", { Count(statistics.ids.size()) },
    [&](Stream& stream) { stream.Numbers(statistics.ids); });
  archive.Integer("occurrences", { Count(statistics.ids.size()) },
    [&](Stream& stream) { stream.Numbers(statistics.occurrences); });
  PassHeads(archive, statistics);
  PassContexts(archive, statistics);
  PassTexts(archive, statistics);
  PassSamples(archive, statistics);
  const std::int64_t heads = Count(statistics.heads.size());
  if (statistics.options.agreement)
  {
    statistics.products.resize(heads * heads);
    archive.Integer(
      "products", { heads, heads, 2 }, [&](Stream& stream) { stream.Sums(statistics.products); });
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

CorpusOptions OptionsFromText(const std::string& text, const std::string& source)
{
  const json object = ParseJson(text, source, "the entry options");
  try
  {
    CorpusOptions options;
    options.split =
      ParseNamed<ModelError>(DocumentSplits, object.at("split").get<std::string>(), source);
    options.addSpecialTokens = object.at("special_tokens").get<bool>();
    options.window = object.at("window").get<std::int64_t>();
    options.overlap = object.at("overlap").get<std::int64_t>();
    options.layers = object.at("layers").get<Integers>();
    options.contexts = object.at("contexts").get<std::int64_t>();
    options.samples = object.at("samples").get<std::int64_t>();
    options.sinkThreshold = object.at("sink_threshold").get<double>();
    options.agreement = object.at("agreement").get<bool>();
    options.batch = object.at("batch").get<std::int64_t>();
    return options;
  }
  catch (const json::exception& e)
  {
    throw ModelError(source + ": the entry options: " + e.what() + ".");
  }
}

/// The entry is optional.
std::vector<std::uint64_t> SizesFromText(const std::string& text, const std::string& source)
{
  if (text.empty())
  {
    return {};
  }
  try
  {
    return ParseJson(text, source, "the entry sizes").get<std::vector<std::uint64_t>>();
  }
  catch (const json::exception& e)
  {
    throw ModelError(source + ": the entry sizes: " + e.what() + ".");
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
  if (!value.is_number_integer() || value < 1 || value > Most)
  {
    throw ModelError(source + ": the entry value_dimension: expected 1 to " + std::to_string(Most) +
                     ", found " + text + ".");
  }
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
  return metadata;
}

CorpusStatistics FromContent(const SafetensorsContent& content, const std::string& source)
{
  const auto entry = [&](const char* name)
  {
    const auto found = content.metadata.find(name);
    return found == content.metadata.end() ? std::string() : found->second;
  };
  if (entry("format") != CorpusFormat || entry("version") != CorpusVersion)
  {
    throw FormatError(source + ": expected statistics of a corpus (format " + CorpusFormat +
                      ", version " + CorpusVersion + "), found format '" + entry("format") +
                      "', version '" + entry("version") + "'.");
  }
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
  Archive archive(content.tensors, source);
  Pass(archive, statistics);
  return statistics;
}

Tensors TensorsOf(CorpusStatistics statistics)
{
  Archive archive;
  Pass(archive, statistics);
  return archive.TakeMade();
}

}

void WriteCorpus(const std::filesystem::path& path, CorpusStatistics statistics)
{
  const Metadata metadata = MetadataOf(statistics);
  WriteSafetensors(path, TensorsOf(std::move(statistics)), metadata);
}

CorpusStatistics ReadCorpus(const std::filesystem::path& path)
{
  const SafetensorsFile file(path);
  return ReadIntact(
    file, [&] { return FromContent({ file.GetTensors(), file.GetMetadata() }, path.string()); });
}

std::vector<char> CorpusToBytes(const CorpusStatistics& statistics)
{
  std::ostringstream stream;
  const Tensors tensors = TensorsOf(statistics);
  WriteSafetensorViews(stream, ViewsOf(tensors), MetadataOf(statistics));
  const std::string bytes = stream.str();
  return { bytes.begin(), bytes.end() };
}

CorpusStatistics CorpusFromBytes(const std::vector<char>& bytes, const std::string& source)
{
  return FromContent(
    ParseSafetensors(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), source),
    source);
}

}
