#include "ModelConversion.h"

#include "Base/Error.h"
#include "DataFields.h"

#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkDoubleArray.h>
#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkSmartPointer.h>
#include <vtkTable.h>
#include <vtkTypeInt64Array.h>

#include <cstdint>
#include <cstring>
#include <map>

namespace AttentionAtlas
{
namespace
{

vtkSmartPointer<vtkDataArray> NewArray(atlas::DType dtype)
{
  switch (dtype)
  {
    case atlas::DType::F64:
      return vtkSmartPointer<vtkDoubleArray>::New();
    case atlas::DType::F32:
      return vtkSmartPointer<vtkFloatArray>::New();
    case atlas::DType::I64:
      return vtkSmartPointer<vtkTypeInt64Array>::New();
    default:
      throw atlas::FormatError(
        "expected a tensor of F64, F32 or I64, found " + std::string(atlas::Name(dtype)) + ".");
  }
}

/// Each column has the name of its tensor. ParaView merges the information on arrays of the same
/// name over all blocks, and warns if their numbers of components differ.
vtkSmartPointer<vtkTable> ToTable(const std::string& name, const atlas::Tensor& tensor)
{
  const auto values = NewArray(tensor.dtype);
  values->SetName(name.c_str());
  values->SetNumberOfComponents(static_cast<int>(tensor.shape[1]));
  values->SetNumberOfTuples(tensor.shape[0]);
  if (!tensor.bytes.empty())
  {
    std::memcpy(values->GetVoidPointer(0), tensor.bytes.data(), tensor.bytes.size());
  }
  auto table = vtkSmartPointer<vtkTable>::New();
  table->AddColumn(values);
  return table;
}

/// The element type of a VTK array, by kind and size.
atlas::DType ToDType(const std::string& block, vtkDataArray* array)
{
  const atlas::DType integer =
    array->GetDataTypeSize() == 8 ? atlas::DType::I64 : atlas::DType::I32;
  const std::map<int, atlas::DType> types = { { VTK_DOUBLE, atlas::DType::F64 },
    { VTK_FLOAT, atlas::DType::F32 }, { VTK_UNSIGNED_CHAR, atlas::DType::U8 }, { VTK_INT, integer },
    { VTK_LONG, integer }, { VTK_LONG_LONG, integer }, { VTK_ID_TYPE, integer } };
  const auto found = types.find(array->GetDataType());
  if (found == types.end())
  {
    throw atlas::ModelError("input model: block '", block,
      "': expected double, float or integer values, found ", array->GetDataTypeAsString(), ".");
  }
  return found->second;
}

atlas::TensorView ToView(const std::string& block, vtkTable* table)
{
  auto* values =
    vtkDataArray::SafeDownCast(table->GetNumberOfColumns() == 1 ? table->GetColumn(0) : nullptr);
  if (values == nullptr)
  {
    throw atlas::ModelError("input model: block '", block,
      "': expected a table with one column of numbers, found ", table->GetNumberOfColumns(),
      " columns.");
  }
  return { ToDType(block, values), { values->GetNumberOfTuples(), values->GetNumberOfComponents() },
    static_cast<const std::byte*>(values->GetVoidPointer(0)) };
}

atlas::Metadata ReadMetadata(vtkFieldData* fields)
{
  atlas::Metadata metadata;
  const std::size_t prefix = std::strlen(MetadataFieldPrefix);
  for (int i = 0; i < fields->GetNumberOfArrays(); ++i)
  {
    auto* array = vtkStringArray::SafeDownCast(fields->GetAbstractArray(i));
    if (array != nullptr && array->GetName() != nullptr && array->GetNumberOfValues() == 1 &&
        std::strncmp(array->GetName(), MetadataFieldPrefix, prefix) == 0)
    {
      metadata.emplace(array->GetName() + prefix, array->GetValue(0));
    }
  }
  return metadata;
}

}

void ToDataSet(const atlas::AttentionOnlyModel& model, vtkMultiBlockDataSet* output)
{
  output->Initialize();
  unsigned int block = 0;
  for (const auto& [name, tensor] : atlas::MakeTensors(model))
  {
    output->SetBlock(block, ToTable(name, tensor));
    output->GetMetaData(block)->Set(vtkCompositeDataSet::NAME(), name.c_str());
    ++block;
  }
  vtkFieldData* fields = output->GetFieldData();
  SetFormat(output, Formats::AttentionOnly);
  AddField(fields, VocabularySizeField, model.VocabularySize());
  AddField(fields, HeadsField, static_cast<std::int64_t>(model.HeadCount()));
  AddField(fields, HeadDimensionField, model.HeadDimension());
  AddField(fields, EmbeddingDimensionField, model.wordEmbedding.cols());
  for (const auto& [key, text] : model.metadata)
  {
    AddField(fields, MetadataFieldPrefix + key, text);
  }
}

atlas::AttentionOnlyModel ToModel(vtkMultiBlockDataSet* input)
{
  if (!FormatOf(input).empty())
  {
    RequireFormat(input, Formats::AttentionOnly, "input model",
      "give the output of an Attention-Only Model Reader or Attention-Only Training.");
  }
  atlas::TensorViews views;
  for (unsigned int block = 0; block < input->GetNumberOfBlocks(); ++block)
  {
    auto* table = vtkTable::SafeDownCast(input->GetBlock(block));
    const char* name = input->HasMetaData(block)
                         ? input->GetMetaData(block)->Get(vtkCompositeDataSet::NAME())
                         : nullptr;
    if (table != nullptr && name != nullptr)
    {
      views.emplace(name, ToView(name, table));
    }
  }
  return atlas::MakeAttentionOnlyModel(
    views, ReadMetadata(input->GetFieldData()), 1, "input model");
}

}
