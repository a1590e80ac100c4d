#include "NativeRecording.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/JsonText.h"
#include "ForeignNames.h"
#include "NativeNames.h"
#include "Recording/RecordingFile.h"
#include "Recording/RecordingQuantities.h"
#include "RecordingArrays.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr std::array<Named<bool>, 2> Truths = { { { "true", true }, { "false", false } } };

/// The metadata whose names begin with `prefix`, without it.
Metadata Within(const Metadata& metadata, const std::string& prefix)
{
  Metadata within;
  for (const auto& [name, text] : metadata)
  {
    if (name.compare(0, prefix.size(), prefix) == 0)
    {
      within.emplace(name.substr(prefix.size()), text);
    }
  }
  return within;
}

void CheckVersion(const Metadata& metadata, const std::string& source)
{
  const auto version = metadata.find("version");
  ThrowIf<FormatError>(
    version == metadata.end(), source, ": expected the metadata 'version', which is missing.");
  const std::string& found = version->second;
  ThrowIf<FormatError>(
    found.size() != 1 || found < RecordingVersion || found > EighthRecordingVersion, source,
    ": expected version ", RecordingVersion, " to ", EighthRecordingVersion, " of the format ",
    RecordingFormat, ", found '", found, "'.");
}

/// Reads arrays with native names.
class NativeReader
{
public:
  NativeReader(RecordingArrays& arrays, const Metadata& metadata)
    : Arrays(arrays)
    , Texts(metadata)
  {
  }

  Recording Read()
  {
    this->ReadMetadata();
    this->ReadTokens();
    this->ReadPictures();
    for (RecordedLayer& layer : this->Record.layers)
    {
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        this->ReadHead(layer, h);
      }
      this->ReadRouting(layer);
      for (const LayerQuantity& quantity : LayerQuantities)
      {
        layer.*quantity.matrix = this->ReadRows(LayerName(layer.index, quantity.name));
      }
    }
    this->ReadResidual();
    this->Record.logits = this->Arrays.LoadMatrix(LogitsQuantity.name, this->Rows, -1);
    if (this->Arrays.Has(SourceLengths))
    {
      this->Record.sourceLengths = this->Arrays.LoadIntegers(SourceLengths, { -1 });
    }
    this->Record.distanceBias = this->ReadRows(DistanceBias);
    return std::move(this->Record);
  }

private:
  RecordingArrays& Arrays;
  const Metadata& Texts;
  Recording Record;
  std::int64_t Rows = 0;

  /// Throws FormatError about an entry of the metadata; the first part follows its name in quotes.
  template<class... Parts>
  [[noreturn]] void Fail(const char* key, const Parts&... parts) const
  {
    throw FormatError(this->Arrays.GetSource(), ": metadata '", key, "'", parts...);
  }

  bool Has(const char* key) const { return this->Texts.count(key) != 0; }

  const std::string& Text(const char* key) const
  {
    const auto found = this->Texts.find(key);
    ThrowIf<FormatError>(found == this->Texts.end(), this->Arrays.GetSource(),
      ": expected the metadata '", key, "', which is missing.");
    return found->second;
  }

  json Parsed(const char* key) const
  {
    return ParseJson(this->Text(key), this->Arrays.GetSource(), Concat("the metadata '", key, "'"));
  }

  /// The value that the metadata name.
  template<class List>
  auto Choose(const char* key, const List& list) const
  {
    return ParseNamed<FormatError>(
      list, this->Text(key), Concat(this->Arrays.GetSource(), ": metadata '", key, "'"));
  }

  std::int64_t Integer(const char* key, std::int64_t maximum) const
  {
    const std::optional<std::int64_t> number = ParseIndex(this->Text(key), maximum);
    if (!number)
    {
      this->Fail(
        key, ": expected an integer from 0 to ", maximum, ", found '", this->Text(key), "'.");
    }
    return *number;
  }

  void ReadMetadata()
  {
    this->Record.architecture = this->Text("architecture");
    this->Record.mask = this->Choose("mask", AttentionMasks);
    this->Record.rotated = this->Choose("rotated", Truths);
    this->Record.processing = this->Choose("processing", WeightProcessings);
    this->Record.layerCount =
      static_cast<std::int32_t>(this->Integer("layer_count", MaximumLayers));
    if (this->Has("model_name"))
    {
      this->Record.model = this->Text("model_name");
    }
    if (this->Has("products"))
    {
      this->Record.products = this->Choose("products", ProductPrecisions);
    }
    if (this->Has("interventions"))
    {
      this->Record.interventions = this->Text("interventions");
    }
    if (this->Has("pixels"))
    {
      this->Record.pixels = this->Text("pixels");
    }
    this->Record.alibiSlopes = ParseSlopes(this->Texts, this->Arrays.GetSource());
    if (this->Has(AlibiUnit))
    {
      const json unit = this->Parsed(AlibiUnit);
      if (!unit.is_number() || unit <= 0)
      {
        this->Fail(AlibiUnit, ": expected a positive number, found ", Describe(unit), ".");
      }
      this->Record.alibiUnit = unit.get<double>();
    }
    if (this->Has(LayersWithoutHeads))
    {
      const json list = this->Parsed(LayersWithoutHeads);
      for (const json& layer : list.is_array() ? list : json::array({ list }))
      {
        if (!layer.is_number_unsigned() || layer.get<std::uint64_t>() >= ToIndex(MaximumLayers))
        {
          this->Fail(
            LayersWithoutHeads, ": expected a list of layers, found ", Describe(layer), ".");
        }
        this->Record.layersWithoutHeads.push_back(layer.get<std::int32_t>());
      }
    }
    this->ReadLayers();
    this->ReadVariants();
  }

  void ReadLayers()
  {
    const std::int64_t heads = this->Integer("head_count", MaximumHeads);
    const json scales = this->Parsed(ScoreScales);
    if (!scales.is_object() ||
        (heads > 0 && static_cast<std::int64_t>(scales.size()) > MaximumHeads / heads))
    {
      this->Fail(ScoreScales, ": expected a JSON object of at most ", MaximumHeads, " heads.");
    }
    for (const auto& [name, scale] : scales.items())
    {
      const std::optional<std::int64_t> index = ParseIndex(name, MaximumLayers);
      if (!index || !scale.is_number())
      {
        this->Fail(ScoreScales, ": expected numbers of layers and their scales, found '",
          name.substr(0, 80), "': ", Describe(scale), ".");
      }
      RecordedLayer& layer = this->Record.layers.emplace_back();
      layer.index = static_cast<std::int32_t>(*index);
      layer.scoreScale = scale.get<double>();
      layer.heads.resize(heads);
    }
    std::sort(this->Record.layers.begin(), this->Record.layers.end(),
      [](const RecordedLayer& a, const RecordedLayer& b) { return a.index < b.index; });
  }

  /// Caps, windows, sinks and numbers of experts; CheckRecording checks their values.
  void ReadVariants()
  {
    this->ForEachLayerIn(ScoreCaps, "a number",
      [](const json& cap, RecordedLayer& layer)
      {
        layer.scoreCap = cap.is_number() ? cap.get<double>() : 0;
        return cap.is_number();
      });
    for (const auto& [key, place] : LayerWindows)
    {
      this->ForEachLayerIn(key, "an integer of 64 bits",
        [member = place](const json& window, RecordedLayer& layer)
        {
          const bool isInteger =
            window.is_number_integer() &&
            (!window.is_number_unsigned() ||
              window.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
          layer.*member = isInteger ? window.get<std::int64_t>() : 0;
          return isInteger;
        });
    }
    this->ForEachLayerIn(ExpertCounts, "a number of experts",
      [](const json& count, RecordedLayer& layer)
      {
        const bool isCount = count.is_number_unsigned() && count.get<std::uint64_t>() >= 1 &&
                             count.get<std::uint64_t>() <= MaximumExperts;
        layer.routing.experts = isCount ? count.get<std::int32_t>() : 0;
        return isCount;
      });
    this->ForEachLayerIn(Sinks, "an array of a number per head",
      [](const json& sinks, RecordedLayer& layer)
      {
        const auto isNumber = [](const json& sink) { return sink.is_number(); };
        if (!sinks.is_array() || sinks.size() != layer.heads.size() ||
            !std::all_of(sinks.begin(), sinks.end(), isNumber))
        {
          return false;
        }
        std::transform(sinks.begin(), sinks.end(), std::back_inserter(layer.sinks),
          [](const json& sink) { return static_cast<float>(sink.get<double>()); });
        return true;
      });
  }

  /// Calls `read(value, layer)` for the layers that a JSON object of the metadata names, if it is
  /// there. Fails for other layers, and if `read` returns false.
  template<class Read>
  void ForEachLayerIn(const char* key, const char* expected, const Read& read)
  {
    if (!this->Has(key))
    {
      return;
    }
    const json layers = this->Parsed(key);
    if (!layers.is_object())
    {
      this->Fail(key, ": expected a JSON object of layers, found ", Describe(layers), ".");
    }
    for (const auto& [name, value] : layers.items())
    {
      const std::optional<std::int64_t> index = ParseIndex(name, MaximumLayers);
      const auto layer = std::find_if(this->Record.layers.begin(), this->Record.layers.end(),
        [&index](const RecordedLayer& recorded) { return recorded.index == index; });
      if (layer == this->Record.layers.end())
      {
        this->Fail(
          key, ": expected layers that score_scales has, found '", name.substr(0, 80), "'.");
      }
      if (!read(value, *layer))
      {
        this->Fail(
          key, ", layer ", name, ": expected ", expected, ", found ", Describe(value), ".");
      }
    }
  }

  void ReadTokens()
  {
    RecordedTokens& tokens = this->Record.tokens;
    std::vector<std::int64_t>& offsets = this->Record.sequenceOffsets;
    offsets = this->Arrays.LoadIntegers(SequenceOffsets, { -1 });
    // The positions give the number of tokens. Trusting wrong offsets could exhaust memory.
    const ArrayFile::Entry* positions = this->Arrays.Find(TokenName(TokenQuantities[0]));
    this->Rows = positions != nullptr && positions->shape.size() == 1 ? positions->shape[0] : 0;
    this->Arrays.FailIf(offsets.empty() || offsets.front() != 0 || offsets.back() != this->Rows ||
                          !std::is_sorted(offsets.begin(), offsets.end()),
      SequenceOffsets,
      "expected the first rows of sequences to increase from 0 to the number of tokens, ",
      this->Rows, ".");
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    {
      tokens.sequence.insert(tokens.sequence.end(),
        static_cast<std::size_t>(offsets[s + 1] - offsets[s]), static_cast<std::int32_t>(s));
    }
    ForEachTokenList(tokens,
      [this](const std::string& name, auto& list, bool)
      {
        if (this->Arrays.Has(name))
        {
          const std::vector<std::int64_t> numbers = this->Arrays.LoadIntegers(name, { this->Rows });
          if constexpr (std::is_same_v<decltype(list), std::vector<std::int32_t>&>)
          {
            list = this->Arrays.Narrowed(name, numbers);
          }
          else
          {
            list = numbers;
          }
        }
      });
    tokens.color =
      this->Arrays.LoadMatrix(PatchColorQuantity.name, this->Rows, PatchColorQuantity.columns);
  }

  void ReadPictures()
  {
    RecordedPictures& pictures = this->Record.pictures;
    this->ReadPictureContents(pictures);
    const ArrayFile::Entry* entry = this->Arrays.Find(Pictures.name);
    if (entry == nullptr)
    {
      this->ReadPictureSources(pictures);
      return;
    }
    this->Arrays.FailIf(
      entry->dtype != DType::U8, Pictures.name, "expected U8, found ", Name(entry->dtype), ".");
    const bool isAmongWords = !pictures.contents.empty();
    const auto pixels = static_cast<std::int64_t>(pictures.FirstByte(pictures.count) / 3);
    const LoadedArray array = this->Arrays.Load(Pictures.name,
      isAmongWords ? Shape{ pixels, 3 } : Shape{ this->Record.SequenceCount(), -1, -1, 3 });
    if (!isAmongWords)
    {
      pictures.count = array.view.shape[0];
      pictures.height = array.view.shape[1];
      pictures.width = array.view.shape[2];
    }
    // Never written to, as values of matrices.
    auto* bytes = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(array.view.data));
    pictures.pixels = { std::const_pointer_cast<void>(array.owner), bytes };
  }

  /// A number of a picture, cut so that sizes in bytes have 64 bits; CheckRecording checks it.
  static std::int32_t PictureNumber(const json& number)
  {
    constexpr std::uint64_t largest = 1'000'000'000;
    return static_cast<std::int32_t>(std::min(number.get<std::uint64_t>(), largest));
  }

  /// What pictures among words show.
  void ReadPictureContents(RecordedPictures& pictures)
  {
    if (!this->Has(Pictures.contents))
    {
      return;
    }
    const json contents = this->Parsed(Pictures.contents);
    if (!contents.is_array() || contents.empty())
    {
      this->Fail(
        Pictures.contents, ": expected an array of pictures, found ", Describe(contents), ".");
    }
    for (const json& content : contents)
    {
      const auto isNumber = [](const json& number) { return number.is_number_unsigned(); };
      if (!content.is_array() || content.size() != 6 ||
          !std::all_of(content.begin(), content.end(), isNumber) ||
          content[3].get<std::uint64_t>() > 1)
      {
        this->Fail(Pictures.contents,
          ": expected arrays of six numbers of at least 0, [picture, frame, frames, 0 or 1, "
          "height, width], found ",
          content.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80), ".");
      }
      pictures.contents.push_back(
        { PictureNumber(content[0]), PictureNumber(content[1]), PictureNumber(content[2]),
          content[3].get<int>() == 1, PictureNumber(content[4]), PictureNumber(content[5]) });
    }
    pictures.count = static_cast<std::int64_t>(pictures.contents.size());
  }

  /// The files of pictures whose pixels are not in the file.
  void ReadPictureSources(RecordedPictures& pictures)
  {
    if (!this->Has(Pictures.sources))
    {
      return;
    }
    const bool isAmongWords = !pictures.contents.empty();
    const json size = isAmongWords ? json::array({ 0U, 0U }) : this->Parsed(Pictures.size);
    const json files = this->Parsed(Pictures.sources);
    if (!size.is_array() || size.size() != 2 || !size[0].is_number_unsigned() ||
        !size[1].is_number_unsigned() || !files.is_array())
    {
      this->Fail(Pictures.size, " and '", Pictures.sources,
        "': expected [height, width] and an array, found ", Describe(size), " and ",
        Describe(files), ".");
    }
    pictures.height = PictureNumber(size[0]);
    pictures.width = PictureNumber(size[1]);
    for (const json& file : files)
    {
      if (!file.is_array() || file.size() != 2 || !file[0].is_string() || !file[1].is_string())
      {
        this->Fail(
          Pictures.sources, ": expected pairs of a file and a hash, found ", Describe(file), ".");
      }
      pictures.sources.push_back({ file[0].get<std::string>(), file[1].get<std::string>() });
    }
    if (!isAmongWords)
    {
      pictures.count = static_cast<std::int64_t>(pictures.sources.size());
    }
    pictures.processing = this->Text(Pictures.processing);
  }

  void ReadHead(RecordedLayer& layer, std::size_t h)
  {
    RecordedHead& head = layer.heads[h];
    const std::string prefix = HeadName(layer.index, h);
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      SharedMatrix& matrix = head.*quantity.matrix;
      matrix = this->Arrays.LoadMatrix(prefix + quantity.name, this->Rows, -1);
      if (!matrix.IsRecorded() && quantity.isGrouped && h > 0)
      {
        matrix = layer.heads[h - 1].*quantity.matrix;
      }
    }
    for (const StoredQuantity& quantity : StoredQuantities)
    {
      const std::size_t sequences = this->Record.SequenceCount();
      for (std::size_t s = 0; s < sequences; ++s)
      {
        const std::string name = prefix + quantity.name + "." + std::to_string(s);
        if (!this->Arrays.Has(name))
        {
          break; // CheckRecording compares the number of matrices
        }
        const std::int64_t length = this->Record.SequenceLength(static_cast<std::int64_t>(s));
        (head.*quantity.matrices)
          .push_back(this->Arrays.LoadMatrix(name, length, length, quantity.allowsMinusInfinity));
      }
    }
  }

  /// CheckRecording checks the numbers of experts.
  void ReadRouting(RecordedLayer& layer)
  {
    for (const RoutingQuantity& quantity : RoutingQuantities)
    {
      const std::string name = LayerName(layer.index, quantity.name);
      if (const ArrayFile::Entry* entry = this->Arrays.Find(name))
      {
        layer.routing.*quantity.matrix = IsFloating(entry->dtype)
                                           ? this->Arrays.LoadMatrix(name, this->Rows, -1)
                                           : this->ReadNumbers(name, *entry);
      }
    }
    layer.routing.bias = this->ReadRows(LayerName(layer.index, ExpertBiasName));
  }

  /// A matrix of any number of rows, if it is there.
  SharedMatrix ReadRows(const std::string& name)
  {
    const ArrayFile::Entry* entry = this->Arrays.Find(name);
    return entry == nullptr
             ? SharedMatrix()
             : this->Arrays.LoadMatrix(name, entry->shape.empty() ? -1 : entry->shape[0], -1);
  }

  /// A matrix of integers.
  SharedMatrix ReadNumbers(const std::string& name, const ArrayFile::Entry& entry)
  {
    const std::vector<std::int64_t> numbers = this->Arrays.LoadIntegers(name, { this->Rows, -1 });
    SharedMatrix matrix = SharedMatrix::Zero(this->Rows, entry.shape[1]);
    std::transform(numbers.begin(), numbers.end(), matrix.values.get(),
      [](std::int64_t number) { return static_cast<float>(number); });
    return matrix;
  }

  void ReadResidual()
  {
    std::vector<SharedMatrix> residual(static_cast<std::size_t>(this->Record.layerCount) + 1);
    for (std::size_t l = 0; l < residual.size(); ++l)
    {
      residual[l] = this->Arrays.LoadMatrix(ResidualName(l), this->Rows, -1);
    }
    KeepResidual(std::move(residual), this->Record);
  }
};

void LeaveOutPadding(
  Recording& recording, const std::vector<RowRange>& tokens, const RecordingArrays& arrays)
{
  arrays.FailIf(recording.encoder != nullptr || !recording.pictures.IsEmpty(),
    ForeignNames::PaddingMask,
    "expected none in a recording with pictures or an encoder, whose tokens have their places.");
  CheckRecording(recording, arrays.GetSource());
  recording = RowsOfSequences(recording, tokens);
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    const auto begin = recording.tokens.position.begin() + recording.sequenceOffsets[s];
    const auto end = begin + recording.SequenceLength(s);
    const std::int32_t first = begin == end ? 0 : *begin;
    std::transform(begin, end, begin, [first](std::int32_t position) { return position - first; });
  }
}

}

UnpaddedRecording ReadNativeRecording(RecordingArrays& arrays, const Metadata& metadata)
{
  CheckVersion(metadata, arrays.GetSource());
  Recording recording = NativeReader(arrays, metadata).Read();
  for (const NativePart& part : NativeParts)
  {
    const Metadata within = Within(metadata, PrefixOf(part));
    if (!within.empty())
    {
      arrays.Enter(PrefixOf(part));
      recording.*part.recording =
        std::make_shared<const Recording>(NativeReader(arrays, within).Read());
    }
  }
  arrays.Enter({});
  const std::int64_t rows = recording.sequenceOffsets.back();
  std::vector<RowRange> tokens = ReadPadding(arrays, recording.sequenceOffsets);
  if (arrays.Has(ForeignNames::PaddingMask))
  {
    LeaveOutPadding(recording, tokens, arrays);
  }
  return { std::move(recording), std::move(tokens), rows };
}

}
