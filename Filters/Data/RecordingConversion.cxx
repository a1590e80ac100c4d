#include "RecordingConversion.h"

#include "DataFields.h"
#include "ModelConversion.h"
#include "RecordingBlocks.h"
#include "SharedArray.h"
#include "TitleFields.h"

#include <vtkTypeInt64Array.h>

#include <algorithm>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

namespace AttentionAtlas
{
namespace
{

void AddBlock(vtkMultiBlockDataSet* parent, const std::string& name, vtkDataObject* block)
{
  const unsigned int index = parent->GetNumberOfBlocks();
  parent->SetBlock(index, block);
  parent->GetMetaData(index)->Set(vtkCompositeDataSet::NAME(), name.c_str());
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
  if (recording.alibiUnit > 0)
  {
    fields->AddArray(
      MakeArray<vtkDoubleArray>(AlibiUnitField, std::vector<double>{ recording.alibiUnit }));
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

}
