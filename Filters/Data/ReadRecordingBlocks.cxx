#include "Base/Error.h"
#include "DataFields.h"
#include "ModelConversion.h"
#include "RecordingBlocks.h"
#include "SharedArray.h"
#include "TitleFields.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

namespace AttentionAtlas
{
namespace
{

constexpr const char* Source = "input recording";

/// As in files.
constexpr double LargestExperts = 1e6;

/// Throws atlas::ModelError if something is wrong with the input, or with a field array of it.
template<class... Parts>
void FailIf(bool isWrong, const Parts&... parts)
{
  atlas::ThrowIf<atlas::ModelError>(isWrong, Source, ": ", parts...);
}

template<class... Parts>
void FailFieldIf(bool isWrong, const char* name, const Parts&... parts)
{
  FailIf(isWrong, "field array '", name, "': expected ", parts...);
}

/// The numbers of the blocks that are named by `prefix` and a number, rising.
std::set<std::int32_t> NumberedBlocks(vtkMultiBlockDataSet* parent, const std::string& prefix)
{
  std::set<std::int32_t> numbers;
  for (unsigned int i = 0; i < parent->GetNumberOfBlocks(); ++i)
  {
    const std::string name = NameOf(parent, i);
    if (name.size() > prefix.size() && name.compare(0, prefix.size(), prefix) == 0 &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos)
    {
      numbers.insert(
        static_cast<std::int32_t>(std::strtol(name.c_str() + prefix.size(), nullptr, 10)));
    }
  }
  return numbers;
}

atlas::SharedMatrix MatrixOf(vtkTable* table, const std::string& column, const std::string& block)
{
  vtkAbstractArray* array = table->GetColumnByName(column.c_str());
  if (array == nullptr)
  {
    return {};
  }
  auto* values = vtkFloatArray::SafeDownCast(array);
  if (values == nullptr)
  {
    throw atlas::ModelError(Source, ": block '", block, "', column '", column,
      "': expected float values, found ", array->GetDataTypeAsString(), ".");
  }
  return ToMatrix(values);
}

atlas::RecordedTokens ReadTokens(vtkMultiBlockDataSet* input)
{
  auto* table = FindTable(input, "tokens");
  if (table == nullptr)
  {
    throw atlas::ModelError(Source, ": expected a table in a block 'tokens', found none.");
  }
  atlas::RecordedTokens tokens;
  const bool ofImages = table->GetColumnByName(SequenceColumn(true)) != nullptr;
  tokens.sequence = ListOf<std::int32_t>(table->GetColumnByName(SequenceColumn(ofImages)));
  for (const atlas::TokenQuantity& quantity : atlas::TokenQuantities)
  {
    const auto read = [&](auto list)
    {
      using Value = typename std::decay_t<decltype(tokens.*list)>::value_type;
      tokens.*list = ListOf<Value>(table->GetColumnByName(quantity.label));
    };
    std::visit(read, quantity.list);
  }
  tokens.color = MatrixOf(table, atlas::PatchColorQuantity.label, "tokens");
  return tokens;
}

/// The pixels of all pictures, if they are there.
std::shared_ptr<std::uint8_t> ReadPixels(
  vtkMultiBlockDataSet* input, const atlas::RecordedPictures& pictures)
{
  auto* table = FindTable(input, atlas::Pictures.name);
  if (table == nullptr)
  {
    return nullptr;
  }
  auto* pixels = vtkUnsignedCharArray::SafeDownCast(table->GetColumnByName(atlas::Pictures.label));
  const std::int64_t expected = PixelsOf(pictures);
  if (pixels == nullptr || pixels->GetNumberOfComponents() != 3 ||
      pixels->GetNumberOfTuples() != expected)
  {
    throw atlas::ModelError(Source, ": block '", atlas::Pictures.name, "': expected a column '",
      atlas::Pictures.label, "' of ", expected, " pixels of 3 bytes, found ",
      pixels == nullptr ? "none" : "another shape", ".");
  }
  return ToBytes(pixels);
}

/// What pictures among words show; CheckRecording checks the numbers.
std::vector<atlas::PictureContent> ReadContents(vtkFieldData* fields)
{
  std::vector<atlas::PictureContent> contents;
  vtkDataArray* array = fields->GetArray(PictureContentsField);
  if (array == nullptr)
  {
    return contents;
  }
  FailFieldIf(array->GetNumberOfComponents() != PictureContentNumbers, PictureContentsField,
    "tuples of 6 numbers, found ", array->GetNumberOfComponents(), " components.");
  for (vtkIdType i = 0; i < array->GetNumberOfTuples(); ++i)
  {
    const auto number = [&](int component)
    {
      constexpr double largest = std::numeric_limits<std::int32_t>::max();
      const double value = array->GetComponent(i, component);
      return static_cast<std::int32_t>(value >= -1 && value <= largest ? value : -1);
    };
    contents.push_back({ number(0), number(1), number(2), number(3) != 0, number(4), number(5) });
  }
  return contents;
}

/// Whether all pictures have sides that a picture may have.
bool HaveSides(const atlas::RecordedPictures& pictures)
{
  const auto isSide = [](std::int64_t side)
  { return side > 0 && side <= atlas::MaximumPictureSide; };
  bool areSides = true;
  for (std::int64_t i = 0; areSides && i < pictures.count; ++i)
  {
    areSides = isSide(pictures.HeightOf(i)) && isSide(pictures.WidthOf(i));
  }
  return areSides;
}

atlas::RecordedPictures ReadPictures(vtkMultiBlockDataSet* input, std::int64_t images)
{
  vtkFieldData* fields = input->GetFieldData();
  vtkDataArray* size = fields->GetArray(PictureSizeField);
  atlas::RecordedPictures pictures;
  pictures.contents = ReadContents(fields);
  pictures.count = static_cast<std::int64_t>(pictures.contents.size());
  if (pictures.contents.empty())
  {
    if (size == nullptr || size->GetNumberOfTuples() != 1 || size->GetNumberOfComponents() != 2)
    {
      return pictures;
    }
    pictures.count = images;
    pictures.height = static_cast<std::int64_t>(size->GetComponent(0, 0));
    pictures.width = static_cast<std::int64_t>(size->GetComponent(0, 1));
  }
  if (HaveSides(pictures)) // else CheckRecording refuses them
  {
    pictures.pixels = ReadPixels(input, pictures);
  }
  const auto files = ListOf<std::string>(fields->GetAbstractArray(PictureFileField));
  const auto hashes = ListOf<std::string>(fields->GetAbstractArray(PictureHashField));
  for (std::size_t i = 0; i < std::min(files.size(), hashes.size()); ++i)
  {
    pictures.sources.push_back({ files[i], hashes[i] });
  }
  pictures.processing = FieldText(fields, PictureProcessingField);
  return pictures;
}

std::vector<atlas::SharedMatrix> ReadStored(
  vtkMultiBlockDataSet* layer, const std::string& head, const atlas::StoredQuantity& quantity)
{
  std::vector<atlas::SharedMatrix> matrices;
  const std::string name = StoredBlock(head, quantity);
  auto* block = FindBlocks(layer, name);
  for (unsigned int s = 0; block != nullptr && s < block->GetNumberOfBlocks(); ++s)
  {
    if (auto* table = vtkTable::SafeDownCast(block->GetBlock(s)))
    {
      matrices.push_back(MatrixOf(table, StoredColumn(quantity, s), name));
    }
  }
  return matrices;
}

atlas::RecordedHead ReadHead(vtkMultiBlockDataSet* layer, std::int32_t number)
{
  const std::string name = Numbered("head ", number);
  auto* table = FindTable(layer, name);
  if (table == nullptr)
  {
    throw atlas::ModelError(Source, ": block '", name, "': expected a table.");
  }
  atlas::RecordedHead head;
  for (const atlas::HeadQuantity& quantity : atlas::HeadQuantities)
  {
    head.*quantity.matrix = MatrixOf(table, quantity.label, name);
  }
  for (const atlas::StoredQuantity& quantity : atlas::StoredQuantities)
  {
    head.*quantity.matrices = ReadStored(layer, name, quantity);
  }
  return head;
}

/// As many heads as there are, of which one alone is read, if it is there, or all.
std::vector<atlas::RecordedHead> ReadHeads(
  vtkMultiBlockDataSet* layer, std::int64_t head = atlas::AllHeads)
{
  std::vector<atlas::RecordedHead> heads;
  for (const std::int32_t number : NumberedBlocks(layer, "head "))
  {
    const bool isRead = head == atlas::AllHeads || head == static_cast<std::int64_t>(heads.size());
    heads.push_back(isRead ? ReadHead(layer, number) : atlas::RecordedHead());
  }
  return heads;
}

/// The values of a layer in an array of tuples (layer, values ...); none if it has none.
std::vector<double> LayerValues(vtkFieldData* fields, const char* name, std::int64_t layer)
{
  vtkDataArray* array = fields->GetArray(name);
  std::vector<double> values;
  for (vtkIdType i = 0; array != nullptr && i < array->GetNumberOfTuples() && values.empty(); ++i)
  {
    if (static_cast<std::int64_t>(array->GetComponent(i, 0)) == layer)
    {
      for (int c = 1; c < array->GetNumberOfComponents(); ++c)
      {
        values.push_back(array->GetComponent(i, c));
      }
    }
  }
  return values;
}

double ScaleOf(vtkFieldData* fields, std::int64_t layer)
{
  const std::vector<double> values = LayerValues(fields, ScoreScaleField, layer);
  FailFieldIf(values.empty(), ScoreScaleField, "a scale of layer ", layer, ", found none.");
  return values.front();
}

/// The one value of a layer, 0 if it has none.
double LayerValue(vtkFieldData* fields, const char* name, std::int64_t layer)
{
  const std::vector<double> values = LayerValues(fields, name, layer);
  FailFieldIf(values.size() > 1, name, "pairs of a layer and a value, found ", values.size() + 1,
    " components.");
  return values.empty() ? 0 : values.front();
}

/// The same, a whole number of some things.
std::int64_t LayerCount(
  vtkFieldData* fields, const char* name, std::int64_t layer, const char* things, double largest)
{
  const double count = LayerValue(fields, name, layer);
  FailFieldIf(std::trunc(count) != count || std::abs(count) > largest, name, "a number of ", things,
    ", found ", count, ".");
  return static_cast<std::int64_t>(count);
}

/// A layer with its scale, cap, windows, chunks, sinks and number of experts, without heads.
atlas::RecordedLayer ReadLayer(vtkFieldData* fields, std::int32_t index)
{
  atlas::RecordedLayer layer;
  layer.index = index;
  layer.scoreScale = ScaleOf(fields, index);
  layer.scoreCap = LayerValue(fields, ScoreCapField, index);
  for (const auto& [field, size, things] : WindowKinds)
  {
    layer.*size = LayerCount(fields, field, index, things, static_cast<double>(LargestWindow));
  }
  layer.routing.experts =
    static_cast<std::int32_t>(LayerCount(fields, ExpertsField, index, "experts", LargestExperts));
  for (const double sink : LayerValues(fields, SinksField, index))
  {
    layer.sinks.push_back(static_cast<float>(sink));
  }
  return layer;
}

/// The block of a layer; nullptr if the recording has none, or one without heads.
vtkMultiBlockDataSet* FindHeads(vtkMultiBlockDataSet* input, std::int64_t index)
{
  auto* block = FindBlocks(input, Numbered("layer ", index));
  return block != nullptr && !NumberedBlocks(block, "head ").empty() ? block : nullptr;
}

void ReadBiases(vtkMultiBlockDataSet* block, atlas::RecordedLayer& layer)
{
  for (const atlas::LayerQuantity& quantity : atlas::LayerQuantities)
  {
    if (auto* array = vtkFloatArray::SafeDownCast(block->GetFieldData()->GetArray(quantity.label)))
    {
      layer.*quantity.matrix = ToMatrix(array);
    }
  }
}

/// The layers that the field of scales names and whose blocks are there, of which one alone has
/// heads.
void ReadOneLayer(
  vtkMultiBlockDataSet* input, std::int64_t index, std::int64_t head, atlas::Recording& recording)
{
  vtkFieldData* fields = input->GetFieldData();
  for (const auto recorded : ListOf<std::int32_t>(fields->GetArray(ScoreScaleField)))
  {
    if (vtkMultiBlockDataSet* block = FindHeads(input, recorded))
    {
      recording.layers.push_back(ReadLayer(fields, recorded));
      ReadBiases(block, recording.layers.back());
      if (recorded == index)
      {
        recording.layers.back().heads = ReadHeads(block, head);
      }
    }
  }
  if (FindHeads(input, index) != nullptr)
  {
    ScaleOf(fields, index); // throws if the layer is not among them
  }
}

void ReadRouting(vtkMultiBlockDataSet* block, atlas::RecordedRouting& routing)
{
  if (auto* table = FindTable(block, RoutingBlock))
  {
    for (const atlas::RoutingQuantity& quantity : atlas::RoutingQuantities)
    {
      routing.*quantity.matrix = MatrixOf(table, quantity.label, RoutingBlock);
    }
    vtkFieldData* fields = block->GetFieldData();
    if (auto* bias = vtkFloatArray::SafeDownCast(fields->GetArray(atlas::ExpertBiasLabel)))
    {
      routing.bias = ToMatrix(bias);
    }
  }
}

void ReadLayers(vtkMultiBlockDataSet* input, atlas::Recording& recording)
{
  for (const std::int32_t index : NumberedBlocks(input, "layer "))
  {
    auto* block = FindBlocks(input, Numbered("layer ", index));
    if (block == nullptr)
    {
      continue;
    }
    std::vector<atlas::RecordedHead> heads = ReadHeads(block);
    if (!heads.empty())
    {
      recording.layers.push_back(ReadLayer(input->GetFieldData(), index));
      recording.layers.back().heads = std::move(heads);
      ReadBiases(block, recording.layers.back());
      ReadRouting(block, recording.layers.back().routing);
    }
    if (auto* table = FindTable(block, atlas::ResidualQuantity.name))
    {
      FailIf(index > recording.layerCount, "expected residuals of layers 0 to ",
        recording.layerCount, ", found layer ", index, ".");
      recording.residual.resize(static_cast<std::size_t>(recording.layerCount) + 1);
      recording.residual[index] =
        MatrixOf(table, atlas::ResidualQuantity.label, atlas::ResidualQuantity.name);
    }
  }
}

/// The value that a field array names. Throws atlas::ModelError if the array is missing or names
/// none.
template<class List>
auto ParseField(const List& list, vtkFieldData* fields, const char* name)
{
  FailFieldIf(fields->GetAbstractArray(name) == nullptr, name, "one of ", atlas::NamesOf(list),
    ", but the array is missing.");
  return atlas::ParseNamed<atlas::ModelError>(
    list, FieldText(fields, name), atlas::Concat(Source, ": field array '", name, "'"));
}

/// The same, but `absent` if there is no such array.
template<class List, class Value>
Value ParseField(const List& list, vtkFieldData* fields, const char* name, Value absent)
{
  return fields->GetAbstractArray(name) == nullptr ? absent : ParseField(list, fields, name);
}

void ReadFields(vtkFieldData* fields, atlas::Recording& recording)
{
  recording.architecture = FieldText(fields, ArchitectureField);
  recording.model = FieldText(fields, ModelNameField);
  recording.mask = ParseField(atlas::AttentionMasks, fields, MaskField);
  recording.processing = ParseField(
    atlas::WeightProcessings, fields, WeightProcessingField, atlas::WeightProcessing::Unknown);
  recording.products =
    ParseField(atlas::ProductPrecisions, fields, ProductsField, atlas::ProductPrecision::Single);
  const std::vector<int> layers = ListOf<int>(fields->GetArray(LayersField));
  const std::vector<int> rotated = ListOf<int>(fields->GetArray(RotatedField));
  recording.layerCount = layers.empty() ? 0 : layers[0];
  recording.layersWithoutHeads = ListOf<std::int32_t>(fields->GetArray(LayersWithoutHeadsField));
  recording.rotated = !rotated.empty() && rotated[0] != 0;
  recording.interventions = FieldText(fields, InterventionsField);
  recording.pixels = FieldText(fields, PixelsField);
  recording.alibiSlopes = ListOf<double>(fields->GetArray(AlibiSlopesField));
  const std::vector<double> unit = ListOf<double>(fields->GetArray(AlibiUnitField));
  recording.alibiUnit = unit.empty() ? 0 : unit.front();
  recording.sequenceOffsets = ListOf<std::int64_t>(fields->GetArray(SequenceOffsetsField));
  recording.sourceLengths = ListOf<std::int64_t>(fields->GetArray(SourceLengthsField));
  if (auto* bias = vtkFloatArray::SafeDownCast(fields->GetArray(DistanceBiasField)))
  {
    recording.distanceBias = ToMatrix(bias);
  }
}

/// All of a recording but its matrices.
atlas::Recording ReadTokensAndFields(vtkMultiBlockDataSet* input)
{
  RequireFormat(input, Formats::Recording, Source,
    "give the output of a Transformer Recorder or Recording Reader.");
  atlas::Recording recording;
  ReadFields(input->GetFieldData(), recording);
  recording.tokens = ReadTokens(input);
  recording.pictures = ReadPictures(input, recording.SequenceCount());
  return recording;
}

}

vtkMultiBlockDataSet* FindPart(vtkMultiBlockDataSet* input, atlas::AttentionKind kind)
{
  if (kind == atlas::AttentionKind::Decoder)
  {
    return input;
  }
  const std::string name(atlas::Name(kind));
  auto* part = FindBlocks(input, name);
  if (part == nullptr)
  {
    throw atlas::OptionError(
      "expected the recording of a transformer with an encoder and a decoder for the attention '",
      name, "', found one of ", FieldText(input->GetFieldData(), ArchitectureField), ".");
  }
  return part;
}

vtkMultiBlockDataSet* FindPartOf(vtkDataObject* output, vtkMultiBlockDataSet* recording)
{
  return output->GetFieldData()->HasArray(AttentionKindField) == 0
           ? recording
           : FindPart(recording,
               ParseField(atlas::AttentionKindNames, output->GetFieldData(), AttentionKindField));
}

atlas::Recording ToRecording(vtkMultiBlockDataSet* input)
{
  atlas::Recording recording = ReadTokensAndFields(input);
  ReadLayers(input, recording);
  if (auto* table = FindTable(input, atlas::LogitsQuantity.name))
  {
    recording.logits = MatrixOf(table, atlas::LogitsQuantity.label, atlas::LogitsQuantity.name);
  }
  const auto read = [&](atlas::AttentionKind kind) -> std::shared_ptr<const atlas::Recording>
  {
    auto* part = FindBlocks(input, std::string(atlas::Name(kind)));
    return part == nullptr ? nullptr : std::make_shared<const atlas::Recording>(ToRecording(part));
  };
  recording.encoder = read(atlas::AttentionKind::Encoder);
  recording.cross = read(atlas::AttentionKind::Cross);
  atlas::CheckRecording(recording, Source);
  return recording;
}

atlas::Recording ToRecording(vtkMultiBlockDataSet* input, std::int64_t layer, std::int64_t head)
{
  atlas::Recording recording = ReadTokensAndFields(input);
  ReadOneLayer(input, layer, head, recording);
  atlas::CheckHead(recording, layer, head, Source);
  return recording;
}

atlas::Recording ToRecording(vtkMultiBlockDataSet* input, std::int64_t layer, std::int64_t head,
  atlas::AttentionQuantity quantity)
{
  return quantity == atlas::AttentionQuantity::Rollout ? ToRecording(input)
                                                       : ToRecording(input, layer, head);
}

}
