#include "NativeRecording.h"

#include "Error.h"
#include "ForeignNames.h"
#include "JsonText.h"
#include "RecordingArrays.h"
#include "RecordingFile.h"
#include "RecordingQuantities.h"

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
/// The numbers of a picture in the metadata, and the largest that are kept as they are.
constexpr std::size_t PictureContentNumbers = 6;
constexpr std::uint64_t MaximumPictureNumber = 1'000'000'000;
constexpr const char* SequenceOffsets = "sequence_offsets";
constexpr const char* ScoreCaps = "score_caps";
constexpr const char* Windows = "windows";
constexpr const char* PatchWindows = "patch_windows";
constexpr const char* Chunks = "chunks";
constexpr const char* Sinks = "sinks";
constexpr const char* ExpertCounts = "expert_counts";
constexpr const char* SourceLengths = "source_lengths";
constexpr const char* DistanceBias = "distance_bias";

/// The parts of a transformer with an encoder and a decoder, whose names in files begin with
/// theirs.
struct NativePart
{
  AttentionKind kind;
  std::shared_ptr<const Recording> Recording::* recording;
};
constexpr std::array<NativePart, 2> NativeParts = { {
  { AttentionKind::Encoder, &Recording::encoder },
  { AttentionKind::Cross, &Recording::cross },
} };

/// What the names of a part begin with.
std::string PrefixOf(const NativePart& part)
{
  return std::string(Name(part.kind)) + ".";
}

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

std::string HeadName(std::int64_t layer, std::size_t head)
{
  return "layers." + std::to_string(layer) + ".heads." + std::to_string(head) + ".";
}

std::string RoutingName(std::int64_t layer, const RoutingQuantity& quantity)
{
  return "layers." + std::to_string(layer) + "." + quantity.name;
}

std::string ResidualName(std::size_t layer)
{
  return ResidualQuantity.name + ("." + std::to_string(layer));
}

std::string TokenName(const TokenQuantity& quantity)
{
  return std::string("tokens.") + quantity.name;
}

/// Calls `call(name, list)` for each list of integers with one item per token.
template<class Tokens, class Call>
void ForEachTokenList(Tokens& tokens, const Call& call)
{
  for (const TokenQuantity& quantity : TokenQuantities)
  {
    const auto callWith = [&](auto list)
    {
      using List = std::decay_t<decltype(tokens.*list)>;
      if constexpr (!std::is_same_v<List, std::vector<std::string>>)
      {
        call(TokenName(quantity), tokens.*list, quantity.isOptional);
      }
    };
    std::visit(callWith, quantity.list);
  }
}

void CheckVersion(const Metadata& metadata, const std::string& source)
{
  const auto version = metadata.find("version");
  if (version == metadata.end())
  {
    throw FormatError(source + ": expected the metadata 'version', which is missing.");
  }
  for (const char* known : { RecordingVersion, SecondRecordingVersion, ThirdRecordingVersion,
         FourthRecordingVersion, FifthRecordingVersion })
  {
    if (version->second == known)
    {
      return;
    }
  }
  throw FormatError(source + ": expected version " + RecordingVersion + " to " +
                    FifthRecordingVersion + " of the format " + RecordingFormat + ", found '" +
                    version->second + "'.");
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
    }
    this->ReadResidual();
    if (this->Arrays.Find(LogitsQuantity.name) != nullptr)
    {
      this->Record.logits = this->Arrays.LoadMatrix(LogitsQuantity.name, this->Rows, -1);
    }
    if (this->Arrays.Find(SourceLengths) != nullptr)
    {
      this->Record.sourceLengths = this->Arrays.LoadIntegers(SourceLengths, { -1 });
    }
    if (const ArrayFile::Entry* bias = this->Arrays.Find(DistanceBias))
    {
      this->Record.distanceBias =
        this->Arrays.LoadMatrix(DistanceBias, bias->shape.empty() ? -1 : bias->shape[0], -1);
    }
    return std::move(this->Record);
  }

private:
  RecordingArrays& Arrays;
  const Metadata& Texts;
  Recording Record;
  std::int64_t Rows = 0;

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw FormatError(this->Arrays.GetSource() + ": " + message);
  }

  const std::string& Text(const char* key) const
  {
    const auto found = this->Texts.find(key);
    if (found == this->Texts.end())
    {
      this->Fail(std::string("expected the metadata '") + key + "', which is missing.");
    }
    return found->second;
  }

  /// The value that the metadata name.
  template<class List>
  auto Choose(const char* key, const List& list) const
  {
    return ParseNamed<FormatError>(
      list, this->Text(key), this->Arrays.GetSource() + ": metadata '" + key + "'");
  }

  std::int64_t Integer(const char* key, std::int64_t maximum) const
  {
    const std::optional<std::int64_t> number = ParseIndex(this->Text(key), maximum);
    if (!number)
    {
      this->Fail(std::string("metadata '") + key + "': expected an integer from 0 to " +
                 std::to_string(maximum) + ", found '" + this->Text(key) + "'.");
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
    if (this->Texts.count("products") != 0)
    {
      this->Record.products = this->Choose("products", ProductPrecisions);
    }
    if (this->Texts.count("interventions") != 0)
    {
      this->Record.interventions = this->Text("interventions");
    }
    this->Record.alibiSlopes = ParseSlopes(this->Texts, this->Arrays.GetSource());
    this->ReadLayers();
  }

  void ReadLayers()
  {
    const std::int64_t heads = this->Integer("head_count", MaximumHeads);
    const json scales = ParseJson(
      this->Text("score_scales"), this->Arrays.GetSource(), "the metadata 'score_scales'");
    if (!scales.is_object() ||
        (heads > 0 && static_cast<std::int64_t>(scales.size()) > MaximumHeads / heads))
    {
      this->Fail("metadata 'score_scales': expected a JSON object of at most " +
                 std::to_string(MaximumHeads) + " heads.");
    }
    for (const auto& [name, scale] : scales.items())
    {
      const std::optional<std::int64_t> index = ParseIndex(name, MaximumLayers);
      if (!index || !scale.is_number())
      {
        this->Fail("metadata 'score_scales': expected numbers of layers and their scales, found '" +
                   name.substr(0, 80) + "': " + Describe(scale) + ".");
      }
      RecordedLayer layer;
      layer.index = static_cast<std::int32_t>(*index);
      layer.scoreScale = scale.get<double>();
      layer.heads.resize(heads);
      this->Record.layers.push_back(std::move(layer));
    }
    std::sort(this->Record.layers.begin(), this->Record.layers.end(),
      [](const RecordedLayer& a, const RecordedLayer& b) { return a.index < b.index; });
    this->ReadVariants();
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
    for (const auto& windows : { std::pair(Windows, &RecordedLayer::window),
           std::pair(PatchWindows, &RecordedLayer::patchWindow),
           std::pair(Chunks, &RecordedLayer::chunk) })
    {
      const auto place = windows.second;
      this->ForEachLayerIn(windows.first, "an integer of 64 bits",
        [place](const json& window, RecordedLayer& layer)
        {
          const bool isInteger =
            window.is_number_integer() &&
            (!window.is_number_unsigned() ||
              window.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
          layer.*place = isInteger ? window.get<std::int64_t>() : 0;
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

  [[noreturn]] void FailInLayer(const std::string& what, const std::string& layer,
    const char* expected, const json& value) const
  {
    this->Fail(
      what + ", layer " + layer + ": expected " + expected + ", found " + Describe(value) + ".");
  }

  /// Calls `read(value, layer)` for the layers that a JSON object of the metadata names, if it is
  /// there. Fails for other layers, and if `read` returns false.
  template<class Read>
  void ForEachLayerIn(const char* key, const char* expected, const Read& read)
  {
    if (this->Texts.count(key) == 0)
    {
      return;
    }
    const std::string what = std::string("metadata '") + key + "'";
    const json layers = ParseJson(this->Text(key), this->Arrays.GetSource(), "the " + what);
    if (!layers.is_object())
    {
      this->Fail(what + ": expected a JSON object of layers, found " + Describe(layers) + ".");
    }
    for (const auto& [name, value] : layers.items())
    {
      const std::optional<std::int64_t> index = ParseIndex(name, MaximumLayers);
      const auto layer = std::find_if(this->Record.layers.begin(), this->Record.layers.end(),
        [&index](const RecordedLayer& recorded) { return recorded.index == index; });
      if (layer == this->Record.layers.end())
      {
        this->Fail(
          what + ": expected layers that score_scales has, found '" + name.substr(0, 80) + "'.");
      }
      if (!read(value, *layer))
      {
        this->FailInLayer(what, name, expected, value);
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
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != this->Rows ||
        !std::is_sorted(offsets.begin(), offsets.end()))
    {
      this->Arrays.Fail(SequenceOffsets,
        "expected the first rows of sequences to increase from 0 to the number of tokens, " +
          std::to_string(this->Rows) + ".");
    }
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
    {
      tokens.sequence.insert(tokens.sequence.end(),
        static_cast<std::size_t>(offsets[s + 1] - offsets[s]), static_cast<std::int32_t>(s));
    }
    ForEachTokenList(tokens,
      [this](const std::string& name, auto& list, bool)
      {
        if (this->Arrays.Find(name) != nullptr)
        {
          this->ReadTokenList(name, list);
        }
      });
    if (this->Arrays.Find(PatchColorQuantity.name) != nullptr)
    {
      tokens.color =
        this->Arrays.LoadMatrix(PatchColorQuantity.name, this->Rows, PatchColorQuantity.columns);
    }
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
    if (entry->dtype != DType::U8)
    {
      this->Arrays.Fail(
        Pictures.name, "expected U8, found " + std::string(Name(entry->dtype)) + ".");
    }
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
    return static_cast<std::int32_t>(
      std::min<std::uint64_t>(number.get<std::uint64_t>(), MaximumPictureNumber));
  }

  /// What pictures among words show.
  void ReadPictureContents(RecordedPictures& pictures)
  {
    if (this->Texts.count(Pictures.contents) == 0)
    {
      return;
    }
    const std::string what = std::string("metadata '") + Pictures.contents + "'";
    const json contents =
      ParseJson(this->Text(Pictures.contents), this->Arrays.GetSource(), "the " + what);
    if (!contents.is_array() || contents.empty())
    {
      this->Fail(what + ": expected an array of pictures, found " + Describe(contents) + ".");
    }
    for (const json& content : contents)
    {
      const auto isNumber = [](const json& number) { return number.is_number_unsigned(); };
      if (!content.is_array() || content.size() != PictureContentNumbers ||
          !std::all_of(content.begin(), content.end(), isNumber) ||
          content[3].get<std::uint64_t>() > 1)
      {
        this->Fail(what +
                   ": expected arrays of six numbers of at least 0, [picture, frame, frames, "
                   "0 or 1, height, width], found " +
                   content.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80) +
                   ".");
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
    if (this->Texts.count(Pictures.sources) == 0)
    {
      return;
    }
    const std::string& source = this->Arrays.GetSource();
    const auto parse = [&](const char* key)
    { return ParseJson(this->Text(key), source, std::string("the metadata '") + key + "'"); };
    const bool isAmongWords = !pictures.contents.empty();
    const json size = isAmongWords ? json::array({ 0U, 0U }) : parse(Pictures.size);
    const json files = parse(Pictures.sources);
    if (!size.is_array() || size.size() != 2 || !size[0].is_number_unsigned() ||
        !size[1].is_number_unsigned() || !files.is_array())
    {
      this->Fail(std::string("metadata '") + Pictures.size + "' and '" + Pictures.sources +
                 "': expected [height, width] and an array, found " + Describe(size) + " and " +
                 Describe(files) + ".");
    }
    const auto side = [](const json& number)
    {
      return static_cast<std::int64_t>(
        std::min<std::uint64_t>(number.get<std::uint64_t>(), MaximumPictureSide + 1));
    };
    pictures.height = side(size[0]);
    pictures.width = side(size[1]);
    for (const json& file : files)
    {
      if (!file.is_array() || file.size() != 2 || !file[0].is_string() || !file[1].is_string())
      {
        this->Fail(std::string("metadata '") + Pictures.sources +
                   "': expected pairs of a file and a hash, found " + Describe(file) + ".");
      }
      pictures.sources.push_back({ file[0].get<std::string>(), file[1].get<std::string>() });
    }
    if (!isAmongWords)
    {
      pictures.count = static_cast<std::int64_t>(pictures.sources.size());
    }
    pictures.processing = this->Text(Pictures.processing);
  }

  void ReadTokenList(const std::string& name, std::vector<std::int64_t>& list)
  {
    list = this->Arrays.LoadIntegers(name, { this->Rows });
  }

  void ReadTokenList(const std::string& name, std::vector<std::int32_t>& list)
  {
    for (const std::int64_t value : this->Arrays.LoadIntegers(name, { this->Rows }))
    {
      if (value < std::numeric_limits<std::int32_t>::min() ||
          value > std::numeric_limits<std::int32_t>::max())
      {
        this->Arrays.Fail(
          name, "expected integers of 32 bits, found " + std::to_string(value) + ".");
      }
      list.push_back(static_cast<std::int32_t>(value));
    }
  }

  void ReadHead(RecordedLayer& layer, std::size_t h)
  {
    RecordedHead& head = layer.heads[h];
    const std::string prefix = HeadName(layer.index, h);
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      const std::string name = prefix + quantity.name;
      if (this->Arrays.Find(name) != nullptr)
      {
        head.*quantity.matrix = this->Arrays.LoadMatrix(name, this->Rows, -1);
      }
      else if (quantity.isGrouped && h > 0)
      {
        head.*quantity.matrix = layer.heads[h - 1].*quantity.matrix;
      }
    }
    for (const StoredQuantity& quantity : StoredQuantities)
    {
      const std::size_t sequences = this->Record.SequenceCount();
      for (std::size_t s = 0; s < sequences; ++s)
      {
        const std::string name = prefix + quantity.name + "." + std::to_string(s);
        if (this->Arrays.Find(name) == nullptr)
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
      const std::string name = RoutingName(layer.index, quantity);
      if (const ArrayFile::Entry* entry = this->Arrays.Find(name))
      {
        layer.routing.*quantity.matrix = IsFloating(entry->dtype)
                                           ? this->Arrays.LoadMatrix(name, this->Rows, -1)
                                           : this->ReadNumbers(name, *entry);
      }
    }
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
    bool any = false;
    for (std::size_t l = 0; l < residual.size(); ++l)
    {
      const std::string name = ResidualName(l);
      if (this->Arrays.Find(name) != nullptr)
      {
        any = true;
        residual[l] = this->Arrays.LoadMatrix(name, this->Rows, -1);
      }
    }
    if (any)
    {
      this->Record.residual = std::move(residual);
    }
  }
};

/// Collects the arrays of a recording for a file without copying them.
class NativeWriter
{
public:
  explicit NativeWriter(const Recording& recording)
    : Record(recording)
  {
  }

  TensorViews Views()
  {
    const RecordedTokens& tokens = this->Record.tokens;
    this->Add(SequenceOffsets, this->Record.sequenceOffsets);
    ForEachTokenList(tokens,
      [this](const std::string& name, const auto& list, bool isOptional)
      {
        if (!isOptional || !list.empty())
        {
          this->Add(name, list);
        }
      });
    this->Add(PatchColorQuantity.name, tokens.color);
    this->Add(this->Record.pictures);
    for (const RecordedLayer& layer : this->Record.layers)
    {
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
      {
        this->AddHead(layer, h);
      }
      for (const RoutingQuantity& quantity : RoutingQuantities)
      {
        this->Add(RoutingName(layer.index, quantity), layer.routing.*quantity.matrix);
      }
    }
    for (std::size_t l = 0; l < this->Record.residual.size(); ++l)
    {
      this->Add(ResidualName(l), this->Record.residual[l]);
    }
    this->Add(LogitsQuantity.name, this->Record.logits);
    this->Add(DistanceBias, this->Record.distanceBias);
    if (!this->Record.sourceLengths.empty())
    {
      this->Add(SourceLengths, this->Record.sourceLengths);
    }
    return std::move(this->Tensors);
  }

  Metadata Texts() const
  {
    json scales = json::object();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      scales[std::to_string(layer.index)] = layer.scoreScale;
    }
    const std::size_t heads =
      this->Record.layers.empty() ? 0 : this->Record.layers.front().heads.size();
    Metadata texts = {
      { "format", RecordingFormat },
      { "version", RecordingVersion },
      { "architecture", this->Record.architecture },
      { "mask", std::string(Name(this->Record.mask)) },
      { "rotated", this->Record.rotated ? "true" : "false" },
      { "processing", std::string(Name(this->Record.processing)) },
      { "layer_count", std::to_string(this->Record.layerCount) },
      { "head_count", std::to_string(heads) },
      { "score_scales", scales.dump() },
    };
    if (this->Record.products != ProductPrecision::Single)
    {
      texts["products"] = Name(this->Record.products);
    }
    if (!this->Record.interventions.empty())
    {
      texts["interventions"] = this->Record.interventions;
    }
    if (!this->Record.alibiSlopes.empty())
    {
      texts["alibi_slopes"] = json(this->Record.alibiSlopes).dump();
    }
    if (!this->Record.tokens.text.empty())
    {
      texts["tokens"] =
        json(this->Record.tokens.text).dump(-1, ' ', false, json::error_handler_t::replace);
    }
    this->AddVariantTexts(texts);
    this->AddExpertCounts(texts);
    this->AddPictureTexts(texts);
    if (this->Record.distanceBias.IsRecorded() || !this->Record.sourceLengths.empty())
    {
      texts["version"] = ThirdRecordingVersion;
    }
    const std::vector<RecordedLayer>& layers = this->Record.layers;
    if (!this->Record.tokens.picture.empty() || !this->Record.pictures.contents.empty() ||
        std::any_of(layers.begin(), layers.end(),
          [](const RecordedLayer& layer) { return layer.patchWindow != 0; }))
    {
      texts["version"] = FourthRecordingVersion;
    }
    if (texts.count(Chunks) != 0)
    {
      texts["version"] = FifthRecordingVersion;
    }
    return texts;
  }

private:
  const Recording& Record;
  TensorViews Tensors;

  void Add(const std::string& name, const SharedMatrix& matrix)
  {
    if (matrix.IsRecorded())
    {
      this->Tensors.emplace(name, TensorView{ DType::F32, { matrix.rows, matrix.columns },
                                    reinterpret_cast<const std::byte*>(matrix.values.get()) });
    }
  }

  void Add(const RecordedPictures& pictures)
  {
    if (pictures.pixels != nullptr)
    {
      const auto pixels = static_cast<std::int64_t>(pictures.FirstByte(pictures.count) / 3);
      this->Tensors.emplace(Pictures.name,
        TensorView{ DType::U8,
          pictures.contents.empty() ? Shape{ pictures.count, pictures.height, pictures.width, 3 }
                                    : Shape{ pixels, 3 },
          reinterpret_cast<const std::byte*>(pictures.pixels.get()) });
    }
  }

  void AddVariantTexts(Metadata& texts) const
  {
    json caps = json::object();
    json windows = json::object();
    json patchWindows = json::object();
    json chunks = json::object();
    json sinks = json::object();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      const std::string name = std::to_string(layer.index);
      if (layer.scoreCap != 0)
      {
        caps[name] = layer.scoreCap;
      }
      if (layer.window != 0)
      {
        windows[name] = layer.window;
      }
      if (layer.patchWindow != 0)
      {
        patchWindows[name] = layer.patchWindow;
      }
      if (layer.chunk != 0)
      {
        chunks[name] = layer.chunk;
      }
      if (!layer.sinks.empty())
      {
        sinks[name] = layer.sinks;
      }
    }
    for (const auto& [key, values] :
      { std::pair(ScoreCaps, &caps), std::pair(Windows, &windows), std::pair(Sinks, &sinks),
        std::pair(PatchWindows, &patchWindows), std::pair(Chunks, &chunks) })
    {
      if (!values->empty())
      {
        texts[key] = values->dump();
        texts["version"] = SecondRecordingVersion;
      }
    }
  }

  /// Programs that do not know of routing leave it out, so files with it keep their version.
  void AddExpertCounts(Metadata& texts) const
  {
    json counts = json::object();
    for (const RecordedLayer& layer : this->Record.layers)
    {
      if (layer.routing.chosen.IsRecorded())
      {
        counts[std::to_string(layer.index)] = layer.routing.experts;
      }
    }
    if (!counts.empty())
    {
      texts[ExpertCounts] = counts.dump();
    }
  }

  void AddPictureTexts(Metadata& texts) const
  {
    const RecordedPictures& pictures = this->Record.pictures;
    json contents = json::array();
    for (const PictureContent& content : pictures.contents)
    {
      contents.push_back(json::array({ content.picture, content.frame, content.frames,
        content.isSmall ? 1 : 0, content.height, content.width }));
    }
    if (!contents.empty())
    {
      texts[Pictures.contents] = contents.dump();
    }
    if (pictures.sources.empty())
    {
      return;
    }
    json files = json::array();
    for (const PictureSource& source : pictures.sources)
    {
      files.push_back(json::array({ source.file, source.hash }));
    }
    if (pictures.contents.empty())
    {
      texts[Pictures.size] = json::array({ pictures.height, pictures.width }).dump();
    }
    texts[Pictures.sources] = files.dump(-1, ' ', false, json::error_handler_t::replace);
    texts[Pictures.processing] = pictures.processing;
  }

  template<class Integer>
  void Add(const std::string& name, const std::vector<Integer>& list)
  {
    const DType dtype = sizeof(Integer) == 4 ? DType::I32 : DType::I64;
    this->Tensors.emplace(name, TensorView{ dtype, { static_cast<std::int64_t>(list.size()) },
                                  reinterpret_cast<const std::byte*>(list.data()) });
  }

  void AddHead(const RecordedLayer& layer, std::size_t h)
  {
    const RecordedHead& head = layer.heads[h];
    const std::string prefix = HeadName(layer.index, h);
    for (const HeadQuantity& quantity : HeadQuantities)
    {
      const SharedMatrix& matrix = head.*quantity.matrix;
      const bool shared = quantity.isGrouped && h > 0 &&
                          (layer.heads[h - 1].*quantity.matrix).values == matrix.values;
      if (!shared)
      {
        this->Add(prefix + quantity.name, matrix);
      }
    }
    for (const StoredQuantity& quantity : StoredQuantities)
    {
      const std::vector<SharedMatrix>& matrices = head.*quantity.matrices;
      for (std::size_t s = 0; s < matrices.size(); ++s)
      {
        this->Add(prefix + quantity.name + "." + std::to_string(s), matrices[s]);
      }
    }
  }
};

}

namespace
{

void LeaveOutPadding(
  Recording& recording, const std::vector<RowRange>& tokens, const RecordingArrays& arrays)
{
  if (recording.encoder != nullptr || !recording.pictures.IsEmpty())
  {
    arrays.Fail(ForeignNames::PaddingMask,
      "expected none in a recording with pictures or an encoder, whose tokens have their places.");
  }
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
  if (arrays.Find(ForeignNames::PaddingMask) != nullptr)
  {
    LeaveOutPadding(recording, tokens, arrays);
  }
  return { std::move(recording), std::move(tokens), rows };
}

NativeArrays MakeNativeArrays(const Recording& recording)
{
  NativeWriter writer(recording);
  NativeArrays arrays = { writer.Views(), writer.Texts() };
  std::string& version = arrays.metadata["version"];
  if (recording.encoder != nullptr)
  {
    // Readers of the third version expect both parts.
    version = std::max(version,
      std::string(recording.cross != nullptr ? ThirdRecordingVersion : FourthRecordingVersion));
  }
  for (const NativePart& part : NativeParts)
  {
    if (recording.*part.recording != nullptr)
    {
      const auto [views, texts] = MakeNativeArrays(*(recording.*part.recording));
      for (const auto& [name, view] : views)
      {
        arrays.views.emplace(PrefixOf(part) + name, view);
      }
      for (const auto& [name, text] : texts)
      {
        arrays.metadata.emplace(PrefixOf(part) + name, text);
      }
      version = std::max(version, texts.at("version")); // of one digit
    }
  }
  return arrays;
}

}
