#include "TransformerConversion.h"

#include "DataFields.h"
#include "Error.h"
#include "ModelConversion.h"
#include "RecordingConversion.h"

#include <vtkCompositeDataSet.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkTable.h>
#include <vtkTypeInt64Array.h>

namespace AttentionAtlas
{
namespace
{

vtkSmartPointer<vtkTable> TensorTable(const atlas::WeightFiles& files)
{
  vtkNew<vtkStringArray> names;
  vtkNew<vtkStringArray> types;
  vtkNew<vtkStringArray> shapes;
  vtkNew<vtkStringArray> origins;
  vtkNew<vtkTypeInt64Array> bytes;
  names->SetName("Name");
  types->SetName("Type");
  shapes->SetName("Shape");
  origins->SetName("File");
  bytes->SetName("Bytes");
  for (const auto& [name, view] : files.GetTensors())
  {
    names->InsertNextValue(name);
    types->InsertNextValue(std::string(atlas::Name(view.dtype)));
    shapes->InsertNextValue(atlas::ToString(view.shape));
    origins->InsertNextValue(files.FileOf(name));
    bytes->InsertNextValue(static_cast<vtkTypeInt64>(view.Count()) *
                           static_cast<vtkTypeInt64>(atlas::ByteSize(view.dtype)));
  }
  auto table = vtkSmartPointer<vtkTable>::New();
  for (vtkAbstractArray* column :
    std::initializer_list<vtkAbstractArray*>{ names, types, shapes, bytes, origins })
  {
    table->AddColumn(column);
  }
  return table;
}

std::string RequireModelFile(vtkMultiBlockDataSet* input)
{
  std::string path = FieldText(input->GetFieldData(), ModelFileField);
  if (FieldText(input->GetFieldData(), FormatField) != TransformerFormat || path.empty())
  {
    throw atlas::ModelError("input model: expected the output of a Transformer Reader, found data "
                            "without its field arrays 'Format' and 'Model File'.");
  }
  return path;
}

}

void ToDataSet(const atlas::Transformer& model, const std::filesystem::path& path,
  const std::string& architecture, vtkMultiBlockDataSet* output)
{
  output->Initialize();
  output->SetBlock(0, TensorTable(model.GetFiles()));
  output->GetMetaData(0U)->Set(vtkCompositeDataSet::NAME(), "tensors");
  const atlas::TransformerConfig& config = model.GetConfig();
  vtkFieldData* fields = output->GetFieldData();
  AddField(fields, FormatField, std::string(TransformerFormat));
  AddField(fields, ArchitectureField, config.architecture);
  AddField(fields, ModelFileField, std::filesystem::absolute(path).string());
  AddField(fields, ModelTypeField, architecture);
  AddField(fields, MaskField, std::string(atlas::Name(config.mask)));
  AddField(fields, WeightProcessingField, std::string(atlas::Name(model.GetWeights().processing)));
  AddField(fields, LayersField, config.layers);
  AddField(fields, HeadsField, config.heads);
  AddField(fields, "KeyHeads", config.keyHeads);
  AddField(fields, HeadDimensionField, config.headDimension);
  AddField(fields, EmbeddingDimensionField, config.modelDimension);
  AddField(fields, VocabularySizeField, config.vocabulary);
  AddField(fields, "Positions", config.positions);
  vtkNew<vtkIntArray> size;
  size->SetName(ImageSizeField);
  size->SetNumberOfComponents(3);
  size->InsertNextTuple3(static_cast<double>(config.channels),
    static_cast<double>(config.imageHeight), static_cast<double>(config.imageWidth));
  fields->AddArray(size);
}

atlas::Transformer ToTransformer(vtkMultiBlockDataSet* input)
{
  return atlas::Transformer::Read(
    RequireModelFile(input), FieldText(input->GetFieldData(), ModelTypeField));
}

std::filesystem::path ModelFolder(vtkMultiBlockDataSet* input)
{
  const std::filesystem::path path = RequireModelFile(input);
  return std::filesystem::is_directory(path) ? path : path.parent_path();
}

}
