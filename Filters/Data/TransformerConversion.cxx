#include "TransformerConversion.h"

#include "Base/Error.h"
#include "DataFields.h"
#include "Files/PackedNumbers.h"
#include "ModelConversion.h"
#include "RecordingConversion.h"
#include "TitleFields.h"
#include "Weights/ProcessedWeights.h"

#include <vtkCompositeDataSet.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkTable.h>
#include <vtkTypeInt64Array.h>

namespace AttentionAtlas
{
namespace
{

constexpr const char* ProcessedByLens = "TransformerLens";

vtkSmartPointer<vtkTable> TensorTable(const atlas::WeightFiles& files)
{
  auto table = vtkSmartPointer<vtkTable>::New();
  const atlas::TensorViews& tensors = files.GetTensors();
  using Named = atlas::TensorViews::value_type;
  AddColumn<vtkStringArray>(table, "Name", tensors, [](const Named& t) { return t.first; });
  AddColumn<vtkStringArray>(
    table, "Type", tensors, [](const Named& t) { return atlas::TypeOf(t.second); });
  AddColumn<vtkStringArray>(
    table, "Shape", tensors, [](const Named& t) { return atlas::ToString(t.second.shape); });
  AddColumn<vtkTypeInt64Array>(table, "Bytes", tensors,
    [](const Named& t)
    {
      vtkTypeInt64 bytes = 0;
      atlas::VisitStored(t.second, [&bytes](const atlas::TensorView& stored)
        { bytes += static_cast<vtkTypeInt64>(stored.Bytes()); });
      return bytes;
    });
  AddColumn<vtkStringArray>(
    table, "File", tensors, [&](const Named& t) { return files.FileOf(t.first); });
  return table;
}

std::string RequireModelFile(vtkMultiBlockDataSet* input)
{
  RequireFormat(
    input, Formats::Transformer, "input model", "give the output of a Transformer Reader.");
  std::string path = FieldText(input->GetFieldData(), ModelFileField);
  atlas::ThrowIf<atlas::ModelError>(
    path.empty(), "input model: expected a path in the field array 'Model File', found none.");
  return path;
}

}

void ToDataSet(const atlas::Transformer& model, const std::filesystem::path& path,
  const std::string& architecture, bool processes, vtkMultiBlockDataSet* output)
{
  output->Initialize();
  output->SetBlock(0, TensorTable(model.GetFiles()));
  output->GetMetaData(0U)->Set(vtkCompositeDataSet::NAME(), "tensors");
  const atlas::TransformerConfig& config = model.GetConfig();
  vtkFieldData* fields = output->GetFieldData();
  SetFormat(output, Formats::Transformer);
  AddField(fields, ArchitectureField, config.architecture);
  AddField(fields, ModelFileField,
    (atlas::IsInMemory(path) ? path : std::filesystem::absolute(path)).string());
  if (!model.GetName().empty())
  {
    AddField(fields, ModelNameField, model.GetName());
  }
  AddField(fields, ModelTypeField, architecture);
  AddField(fields, AdapterField, model.GetAdapter().string());
  AddField(fields, ProcessingField, std::string(processes ? ProcessedByLens : "None"));
  AddField(fields, ProductsField, std::string(atlas::Name(model.GetProducts())));
  AddField(fields, MaskField, std::string(atlas::Name(config.mask)));
  AddField(fields, WeightProcessingField, std::string(atlas::Name(model.GetWeights().processing)));
  AddField(fields, LayersField, config.layers);
  AddField(fields, HeadsField, config.heads);
  AddField(fields, "KeyHeads", config.keyHeads);
  AddField(fields, HeadDimensionField, config.headDimension);
  AddField(fields, EmbeddingDimensionField, config.modelDimension);
  AddField(fields, VocabularySizeField, config.vocabulary);
  AddField(fields, "Positions", config.positions);
  AddField(fields, "Processable", atlas::IsProcessable(config) ? 1 : 0);
  vtkNew<vtkIntArray> size;
  size->SetName(ImageSizeField);
  size->SetNumberOfComponents(3);
  size->InsertNextTuple3(static_cast<double>(config.channels),
    static_cast<double>(config.imageHeight), static_cast<double>(config.imageWidth));
  fields->AddArray(size);
}

std::shared_ptr<const atlas::OpenTransformer> ToTransformer(vtkMultiBlockDataSet* input)
{
  if (input == nullptr || input->GetNumberOfBlocks() == 0)
  {
    throw atlas::OptionError(
      "Model: expected the transformer that was recorded, from a Transformer Reader, found none.");
  }
  vtkFieldData* fields = input->GetFieldData();
  const std::string products = FieldText(fields, ProductsField);
  return atlas::OpenTransformer::Open(RequireModelFile(input), FieldText(fields, ModelTypeField),
    FieldText(fields, ProcessingField) == ProcessedByLens,
    products.empty() ? atlas::ProductPrecision::Single
                     : atlas::ParseNamed<atlas::ModelError>(atlas::ProductPrecisions, products,
                         "input model: field array 'Products'"));
}

}
