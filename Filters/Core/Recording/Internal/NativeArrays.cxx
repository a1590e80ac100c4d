#include "Base/Error.h"
#include "Files/JsonText.h"
#include "NativeNames.h"
#include "NativeRecording.h"
#include "Recording/RecordingFile.h"

#include <algorithm>
#include <map>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

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
        this->Add(LayerName(layer.index, quantity.name), layer.routing.*quantity.matrix);
      }
      this->Add(LayerName(layer.index, ExpertBiasName), layer.routing.bias);
      for (const LayerQuantity& quantity : LayerQuantities)
      {
        this->Add(LayerName(layer.index, quantity.name), layer.*quantity.matrix);
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
    const std::vector<RecordedLayer>& layers = this->Record.layers;
    Metadata texts = {
      { "format", RecordingFormat },
      { "architecture", this->Record.architecture },
      { "mask", std::string(Name(this->Record.mask)) },
      { "rotated", this->Record.rotated ? "true" : "false" },
      { "processing", std::string(Name(this->Record.processing)) },
      { "layer_count", std::to_string(this->Record.layerCount) },
      { "head_count", std::to_string(layers.empty() ? 0 : layers.front().heads.size()) },
    };
    if (!this->Record.model.empty())
    {
      texts["model_name"] = this->Record.model;
    }
    if (this->Record.products != ProductPrecision::Single)
    {
      texts["products"] = Name(this->Record.products);
    }
    if (!this->Record.interventions.empty())
    {
      texts["interventions"] = this->Record.interventions;
    }
    if (!this->Record.layersWithoutHeads.empty())
    {
      texts[LayersWithoutHeads] = json(this->Record.layersWithoutHeads).dump();
    }
    if (!this->Record.pixels.empty())
    {
      texts["pixels"] = this->Record.pixels;
    }
    if (!this->Record.alibiSlopes.empty())
    {
      texts["alibi_slopes"] = json(this->Record.alibiSlopes).dump();
    }
    if (this->Record.alibiUnit > 0)
    {
      texts[AlibiUnit] = json(this->Record.alibiUnit).dump();
    }
    if (!this->Record.tokens.text.empty())
    {
      texts["tokens"] = Dumped(this->Record.tokens.text);
    }
    this->AddLayerTexts(texts);
    this->AddPictureTexts(texts);
    texts["version"] = this->VersionFor(texts);
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

  /// JSON, with what is not UTF-8 replaced.
  static std::string Dumped(const json& value)
  {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  /// The version that the first readers had that know all that is there. Those that do not know of
  /// routing, of layers without heads, or of how pixels were made leave these out, and say nothing
  /// wrong, so they do not count.
  std::string VersionFor(const Metadata& texts) const
  {
    const auto has = [&texts](const char* key) { return texts.count(key) != 0; };
    if (has(AlibiUnit))
    {
      return EighthRecordingVersion;
    }
    if (!this->Record.tokens.keyEnd.empty())
    {
      return SeventhRecordingVersion;
    }
    if (std::any_of(this->Record.layers.begin(), this->Record.layers.end(), HasOwnBias))
    {
      return SixthRecordingVersion;
    }
    if (has(Chunks))
    {
      return FifthRecordingVersion;
    }
    if (has(PatchWindows) || has(Pictures.contents) || !this->Record.tokens.picture.empty() ||
        (this->Record.encoder != nullptr && this->Record.cross == nullptr))
    {
      return FourthRecordingVersion;
    }
    if (this->Record.distanceBias.IsRecorded() || !this->Record.sourceLengths.empty() ||
        this->Record.encoder != nullptr)
    {
      return ThirdRecordingVersion;
    }
    return has(ScoreCaps) || has(Windows) || has(Sinks) ? SecondRecordingVersion : RecordingVersion;
  }

  /// What layers have, by their numbers.
  void AddLayerTexts(Metadata& texts) const
  {
    std::map<std::string, json> values = { { ScoreScales, json::object() } };
    for (const RecordedLayer& layer : this->Record.layers)
    {
      const std::string name = std::to_string(layer.index);
      values[ScoreScales][name] = layer.scoreScale;
      if (layer.scoreCap != 0)
      {
        values[ScoreCaps][name] = layer.scoreCap;
      }
      for (const auto& [key, place] : LayerWindows)
      {
        if (layer.*place != 0)
        {
          values[key][name] = layer.*place;
        }
      }
      if (!layer.sinks.empty())
      {
        values[Sinks][name] = layer.sinks;
      }
      if (layer.routing.chosen.IsRecorded())
      {
        values[ExpertCounts][name] = layer.routing.experts;
      }
    }
    for (const auto& [key, layers] : values)
    {
      texts[key] = layers.dump();
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
    texts[Pictures.sources] = Dumped(files);
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

NativeArrays MakeNativeArrays(const Recording& recording)
{
  NativeWriter writer(recording);
  NativeArrays arrays = { writer.Views(), writer.Texts() };
  std::string& version = arrays.metadata["version"];
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
