#include "RecordingConversion.h"

#include "Base/Error.h"
#include "DataFields.h"
#include "ModelConversion.h"
#include "Recording/RecordingQuantities.h"
#include "SharedArray.h"
#include "TitleFields.h"

#include <vtkCompositeDataSet.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkTypeInt64Array.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace AttentionAtlas
{
namespace
{

constexpr const char* Source = "input recording";
/// The largest window that arrays of numbers hold exactly; longer than any sequence.
constexpr std::int64_t LargestWindow = std::int64_t{ 1 } << 53U;

/// As in files.
constexpr double LargestExperts = 1e6;

constexpr const char* RoutingBlock = "routing";

/// The numbers of a picture in the field array PictureContentsField.
constexpr int PictureContentNumbers = 6;

/// A kind of window of layers: its field array, its place, and what it has a number of.
struct WindowKind
{
  const char* field;
  std::int64_t atlas::RecordedLayer::* size;
  const char* things;
};
constexpr std::array<WindowKind, 3> WindowKinds = { {
  { WindowField, &atlas::RecordedLayer::window, "keys" },
  { PatchWindowField, &atlas::RecordedLayer::patchWindow, "patches" },
  { ChunkField, &atlas::RecordedLayer::chunk, "tokens" },
} };

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

std::string Numbered(const char* name, std::int64_t number)
{
  return name + std::to_string(number);
}

void AddBlock(vtkMultiBlockDataSet* parent, const std::string& name, vtkDataObject* block)
{
  const unsigned int index = parent->GetNumberOfBlocks();
  parent->SetBlock(index, block);
  parent->GetMetaData(index)->Set(vtkCompositeDataSet::NAME(), name.c_str());
}

/// The name of a block; empty if it has none.
std::string NameOf(vtkMultiBlockDataSet* parent, unsigned int block)
{
  const char* name = parent->HasMetaData(block) != 0
                       ? parent->GetMetaData(block)->Get(vtkCompositeDataSet::NAME())
                       : nullptr;
  return name != nullptr ? name : "";
}

/// The first block of a name if it has a type; otherwise nullptr.
template<class Data>
Data* Find(vtkMultiBlockDataSet* parent, const std::string& name)
{
  unsigned int block = 0;
  while (block < parent->GetNumberOfBlocks() && NameOf(parent, block) != name)
  {
    ++block;
  }
  return block < parent->GetNumberOfBlocks() ? Data::SafeDownCast(parent->GetBlock(block))
                                             : nullptr;
}

constexpr auto FindBlocks = Find<vtkMultiBlockDataSet>;
constexpr auto FindTable = Find<vtkTable>;

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

/// The VTK arrays of lists of tokens.
template<class Value>
using ArrayOf = std::conditional_t<std::is_same_v<Value, std::string>, vtkStringArray,
  std::conditional_t<std::is_same_v<Value, std::int64_t>, vtkTypeInt64Array, vtkIntArray>>;

/// Adds a column unless it is not recorded.
template<class Value>
void AddRecorded(vtkTable* table, const char* name, const std::vector<Value>& values)
{
  if (!values.empty())
  {
    AddColumn<ArrayOf<Value>>(table, name, values);
  }
}

void AddRecorded(vtkTable* table, const char* name, const atlas::SharedMatrix& matrix)
{
  if (matrix.IsRecorded())
  {
    table->AddColumn(ToArray(matrix, name));
  }
}

vtkSmartPointer<vtkTable> TableOf(const char* name, const atlas::SharedMatrix& matrix)
{
  auto table = vtkSmartPointer<vtkTable>::New();
  AddRecorded(table, name, matrix);
  return table;
}

const char* SequenceColumn(bool ofImages)
{
  return ofImages ? "Image" : "Sequence";
}

vtkSmartPointer<vtkTable> TokenTable(const atlas::RecordedTokens& tokens)
{
  auto table = vtkSmartPointer<vtkTable>::New();
  AddRecorded(
    table, SequenceColumn(!tokens.row.empty() && tokens.picture.empty()), tokens.sequence);
  for (const atlas::TokenQuantity& quantity : atlas::TokenQuantities)
  {
    std::visit([&](auto list) { AddRecorded(table, quantity.label, tokens.*list); }, quantity.list);
  }
  AddRecorded(table, atlas::PatchColorQuantity.label, tokens.color);
  return table;
}

/// "head 3 weights", beside the block "head 3".
std::string StoredBlock(const std::string& head, const atlas::StoredQuantity& quantity)
{
  return head + " " + quantity.name;
}

/// "Weights 2", of sequence 2.
std::string StoredColumn(const atlas::StoredQuantity& quantity, std::int64_t sequence)
{
  return quantity.label + (" " + std::to_string(sequence));
}

void AddStored(vtkMultiBlockDataSet* layer, const std::string& head,
  const atlas::StoredQuantity& quantity, const std::vector<atlas::SharedMatrix>& matrices)
{
  if (matrices.empty())
  {
    return;
  }
  vtkNew<vtkMultiBlockDataSet> block;
  for (std::size_t s = 0; s < matrices.size(); ++s)
  {
    const auto number = static_cast<std::int64_t>(s);
    AddBlock(block, Numbered("sequence ", number),
      TableOf(StoredColumn(quantity, number).c_str(), matrices[s]));
  }
  AddBlock(layer, StoredBlock(head, quantity), block);
}

void AddHeads(vtkMultiBlockDataSet* block, const atlas::RecordedLayer& layer)
{
  for (std::size_t h = 0; h < layer.heads.size(); ++h)
  {
    const atlas::RecordedHead& head = layer.heads[h];
    vtkNew<vtkTable> table;
    for (const atlas::HeadQuantity& quantity : atlas::HeadQuantities)
    {
      AddRecorded(table, quantity.label, head.*quantity.matrix);
    }
    const std::string name = Numbered("head ", static_cast<std::int64_t>(h));
    AddBlock(block, name, table);
    for (const atlas::StoredQuantity& quantity : atlas::StoredQuantities)
    {
      AddStored(block, name, quantity, head.*quantity.matrices);
    }
  }
}

void AddRouting(vtkMultiBlockDataSet* block, const atlas::RecordedRouting& routing)
{
  if (routing.chosen.IsRecorded())
  {
    vtkNew<vtkTable> table;
    for (const atlas::RoutingQuantity& quantity : atlas::RoutingQuantities)
    {
      AddRecorded(table, quantity.label, routing.*quantity.matrix);
    }
    AddBlock(block, RoutingBlock, table);
    if (routing.bias.IsRecorded())
    {
      block->GetFieldData()->AddArray(ToArray(routing.bias, atlas::ExpertBiasLabel));
    }
  }
}

/// Adds what a layer adds to scores by the places of query and key.
void AddBiases(vtkMultiBlockDataSet* block, const atlas::RecordedLayer& layer)
{
  for (const atlas::LayerQuantity& quantity : atlas::LayerQuantities)
  {
    if ((layer.*quantity.matrix).IsRecorded())
    {
      block->GetFieldData()->AddArray(ToArray(layer.*quantity.matrix, quantity.label));
    }
  }
}

/// Adds an array of tuples (layer, values ...) of the layers that have some, unless none has.
template<class ValuesOf>
void AddLayerField(const char* name, const atlas::Recording& recording, vtkFieldData* fields,
  const ValuesOf& valuesOf)
{
  vtkNew<vtkDoubleArray> array;
  array->SetName(name);
  for (const atlas::RecordedLayer& layer : recording.layers)
  {
    std::vector<double> tuple = valuesOf(layer);
    if (!tuple.empty())
    {
      tuple.insert(tuple.begin(), layer.index);
      array->SetNumberOfComponents(static_cast<int>(tuple.size()));
      array->InsertNextTuple(tuple.data());
    }
  }
  if (array->GetNumberOfTuples() > 0)
  {
    fields->AddArray(array);
  }
}

/// Adds caps, windows of keys and of patches, chunks, sinks and numbers of experts.
void AddVariants(const atlas::Recording& recording, vtkFieldData* fields)
{
  using Layer = atlas::RecordedLayer;
  using Values = std::vector<double>;
  const auto unlessZero = [](double value) { return value != 0 ? Values{ value } : Values(); };
  AddLayerField(ScoreCapField, recording, fields,
    [&](const Layer& layer) { return unlessZero(layer.scoreCap); });
  for (const WindowKind& kind : WindowKinds)
  {
    AddLayerField(kind.field, recording, fields, [&](const Layer& layer)
      { return unlessZero(static_cast<double>(std::min(layer.*kind.size, LargestWindow))); });
  }
  AddLayerField(SinksField, recording, fields,
    [](const Layer& layer) { return Values(layer.sinks.begin(), layer.sinks.end()); });
  AddLayerField(ExpertsField, recording, fields, [&](const Layer& layer)
    { return unlessZero(layer.routing.chosen.IsRecorded() ? layer.routing.experts : 0); });
}

void AddFields(const atlas::Recording& recording, vtkFieldData* fields)
{
  const std::size_t heads = recording.layers.empty() ? 0 : recording.layers[0].heads.size();
  AddField(fields, FormatField, std::string(Formats::Recording));
  AddField(fields, ArchitectureField, recording.architecture);
  if (!recording.model.empty())
  {
    AddField(fields, ModelNameField, recording.model);
  }
  AddField(fields, MaskField, std::string(atlas::Name(recording.mask)));
  AddField(fields, WeightProcessingField, std::string(atlas::Name(recording.processing)));
  if (recording.products != atlas::ProductPrecision::Single)
  {
    AddField(fields, ProductsField, std::string(atlas::Name(recording.products)));
  }
  if (!recording.interventions.empty())
  {
    AddField(fields, InterventionsField, recording.interventions);
  }
  if (!recording.pixels.empty())
  {
    AddField(fields, PixelsField, recording.pixels);
  }
  AddField(fields, LayersField, recording.layerCount);
  if (!recording.layersWithoutHeads.empty())
  {
    fields->AddArray(MakeArray<vtkIntArray>(LayersWithoutHeadsField, recording.layersWithoutHeads));
  }
  AddField(fields, HeadsField, heads);
  AddField(fields, HeadDimensionField, heads > 0 ? recording.layers[0].heads[0].query.columns : 0);
  AddField(fields, RotatedField, recording.rotated ? 1 : 0);
  vtkNew<vtkDoubleArray> scales;
  scales->SetName(ScoreScaleField);
  scales->SetNumberOfComponents(2);
  for (const atlas::RecordedLayer& layer : recording.layers)
  {
    scales->InsertNextTuple2(layer.index, layer.scoreScale);
  }
  fields->AddArray(scales);
  AddVariants(recording, fields);
  if (!recording.alibiSlopes.empty())
  {
    fields->AddArray(MakeArray<vtkDoubleArray>(AlibiSlopesField, recording.alibiSlopes));
  }
  if (recording.distanceBias.IsRecorded())
  {
    fields->AddArray(ToArray(recording.distanceBias, DistanceBiasField));
  }
  fields->AddArray(MakeArray<vtkTypeInt64Array>(SequenceOffsetsField, recording.sequenceOffsets));
  if (!recording.sourceLengths.empty())
  {
    fields->AddArray(MakeArray<vtkTypeInt64Array>(SourceLengthsField, recording.sourceLengths));
  }
}

/// The pixels of all pictures.
std::int64_t PixelsOf(const atlas::RecordedPictures& pictures)
{
  return static_cast<std::int64_t>(pictures.FirstByte(pictures.count) / 3);
}

void AddPictures(const atlas::RecordedPictures& pictures, vtkMultiBlockDataSet* output)
{
  if (pictures.pixels != nullptr)
  {
    vtkNew<vtkTable> table;
    table->AddColumn(ToArray(pictures.pixels, PixelsOf(pictures), 3, atlas::Pictures.label));
    AddBlock(output, atlas::Pictures.name, table);
  }
}

/// Adds what pictures among words show: a tuple per picture.
void AddContents(const std::vector<atlas::PictureContent>& contents, vtkFieldData* fields)
{
  vtkNew<vtkIntArray> array;
  array->SetName(PictureContentsField);
  array->SetNumberOfComponents(PictureContentNumbers);
  for (const atlas::PictureContent& content : contents)
  {
    const std::array<int, PictureContentNumbers> tuple = { content.picture, content.frame,
      content.frames, content.isSmall ? 1 : 0, content.height, content.width };
    array->InsertNextTypedTuple(tuple.data());
  }
  fields->AddArray(array);
}

/// Adds a height and a width.
void AddSize(vtkFieldData* fields, const char* name, std::int64_t height, std::int64_t width)
{
  vtkNew<vtkIntArray> size;
  size->SetName(name);
  size->SetNumberOfComponents(2);
  const auto largest = static_cast<double>(std::numeric_limits<int>::max());
  size->InsertNextTuple2(
    std::min(static_cast<double>(height), largest), std::min(static_cast<double>(width), largest));
  fields->AddArray(size);
}

void AddPictureFields(const atlas::Recording& recording, vtkFieldData* fields)
{
  const atlas::RecordedTokens& tokens = recording.tokens;
  if (!tokens.row.empty() && !tokens.column.empty() && tokens.picture.empty())
  {
    AddSize(fields, PatchGridField,
      std::int64_t{ 1 } + *std::max_element(tokens.row.begin(), tokens.row.end()),
      std::int64_t{ 1 } + *std::max_element(tokens.column.begin(), tokens.column.end()));
  }
  const atlas::RecordedPictures& pictures = recording.pictures;
  if (pictures.IsEmpty())
  {
    return;
  }
  if (pictures.contents.empty())
  {
    AddSize(fields, PictureSizeField, pictures.height, pictures.width);
  }
  else
  {
    AddContents(pictures.contents, fields);
  }
  if (!pictures.sources.empty())
  {
    const std::vector<atlas::PictureSource>& sources = pictures.sources;
    fields->AddArray(MakeArray<vtkStringArray>(
      PictureFileField, sources, [](const auto& source) { return source.file; }));
    fields->AddArray(MakeArray<vtkStringArray>(
      PictureHashField, sources, [](const auto& source) { return source.hash; }));
    AddField(fields, PictureProcessingField, pictures.processing);
  }
}

template<class Value>
std::vector<Value> ListOf(vtkAbstractArray* array)
{
  std::vector<Value> values;
  auto* numbers = vtkDataArray::SafeDownCast(array);
  for (vtkIdType i = 0; numbers != nullptr && i < numbers->GetNumberOfTuples(); ++i)
  {
    values.push_back(static_cast<Value>(numbers->GetComponent(i, 0)));
  }
  return values;
}

template<>
std::vector<std::string> ListOf(vtkAbstractArray* array)
{
  std::vector<std::string> values;
  auto* texts = vtkStringArray::SafeDownCast(array);
  for (vtkIdType i = 0; texts != nullptr && i < texts->GetNumberOfValues(); ++i)
  {
    values.push_back(texts->GetValue(i));
  }
  return values;
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

void AddLastOffsets(const std::vector<std::int64_t>& offsets, vtkMultiBlockDataSet* output)
{
  output->GetFieldData()->AddArray(MakeArray<vtkTypeInt64Array>(LastSequenceOffsetsField, offsets));
  if (auto* cross = FindBlocks(output, std::string(atlas::Name(atlas::AttentionKind::Cross))))
  {
    vtkFieldData* fields = cross->GetFieldData();
    std::vector<std::int64_t> both = offsets;
    std::int64_t sources = 0;
    std::size_t s = 0;
    for (const auto length : ListOf<std::int64_t>(fields->GetArray(SourceLengthsField)))
    {
      sources += length;
      both.at(++s) += sources;
    }
    fields->AddArray(MakeArray<vtkTypeInt64Array>(LastSequenceOffsetsField, both));
  }
}

namespace
{

void AddRecording(const atlas::Recording& recording, vtkMultiBlockDataSet* output)
{
  AddBlock(output, "tokens", TokenTable(recording.tokens));
  for (std::int32_t index = 0; index <= recording.layerCount; ++index)
  {
    const std::size_t l = index;
    const auto layer = std::find_if(recording.layers.begin(), recording.layers.end(),
      [index](const atlas::RecordedLayer& candidate) { return candidate.index == index; });
    vtkNew<vtkMultiBlockDataSet> block;
    if (layer != recording.layers.end())
    {
      AddHeads(block, *layer);
      AddBiases(block, *layer);
      AddRouting(block, layer->routing);
    }
    if (l < recording.residual.size() && recording.residual[l].IsRecorded())
    {
      AddBlock(block, atlas::ResidualQuantity.name,
        TableOf(atlas::ResidualQuantity.label, recording.residual[l]));
    }
    if (block->GetNumberOfBlocks() > 0)
    {
      AddBlock(output, Numbered("layer ", index), block);
    }
  }
  if (recording.logits.IsRecorded())
  {
    AddBlock(
      output, atlas::LogitsQuantity.name, TableOf(atlas::LogitsQuantity.label, recording.logits));
  }
  AddPictures(recording.pictures, output);
  AddFields(recording, output->GetFieldData());
  AddPictureFields(recording, output->GetFieldData());
  for (const auto& [kind, part] : { std::pair(atlas::AttentionKind::Encoder, recording.encoder),
         std::pair(atlas::AttentionKind::Cross, recording.cross) })
  {
    if (part != nullptr)
    {
      vtkNew<vtkMultiBlockDataSet> block;
      AddRecording(*part, block);
      AddBlock(output, std::string(atlas::Name(kind)), block);
    }
  }
}

/// A table whose columns ParaView does not list among those of the data that it is a part of.
class UnlistedTable : public vtkTable
{
public:
  static UnlistedTable* New() { VTK_STANDARD_NEW_BODY(UnlistedTable); }

  vtkFieldData* GetAttributesAsFieldData(int type) override
  {
    return type == vtkDataObject::ROW ? nullptr : this->vtkTable::GetAttributesAsFieldData(type);
  }

protected:
  /// What filters and Fetch make copies of, which are not listed either.
  vtkObjectBase* NewInstanceInternal() const override { return UnlistedTable::New(); }
};

/// Makes tables unlisted that have a column of another size than the first one of its name.
/// ParaView lists a column once for all tables, and prints a warning for each such pair.
void UnlistOtherSizes(vtkMultiBlockDataSet* output, std::map<std::string, int>& sizes)
{
  for (unsigned int i = 0; i < output->GetNumberOfBlocks(); ++i)
  {
    if (auto* blocks = vtkMultiBlockDataSet::SafeDownCast(output->GetBlock(i)))
    {
      UnlistOtherSizes(blocks, sizes);
    }
    else if (auto* table = vtkTable::SafeDownCast(output->GetBlock(i)))
    {
      bool isListed = true;
      for (vtkIdType column = 0; column < table->GetNumberOfColumns(); ++column)
      {
        const int size = table->GetColumn(column)->GetNumberOfComponents();
        isListed =
          isListed && sizes.emplace(table->GetColumnName(column), size).first->second == size;
      }
      if (!isListed)
      {
        vtkNew<UnlistedTable> unlisted;
        unlisted->ShallowCopy(table);
        output->SetBlock(i, unlisted);
      }
    }
  }
}

}

void ToDataSet(const atlas::Recording& recording, vtkMultiBlockDataSet* output)
{
  output->Initialize();
  AddRecording(recording, output);
  std::map<std::string, int> sizes;
  UnlistOtherSizes(output, sizes);
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
