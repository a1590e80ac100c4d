#include "vtkTransformerReader.h"

#include "Joined.h"
#include "TransformerConversion.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <filesystem>
#include <string>

vtkStandardNewMacro(vtkTransformerReader);

vtkTransformerReader::vtkTransformerReader()
{
  this->SetNumberOfInputPorts(0);
  this->SetArchitecture("Auto");
}

vtkTransformerReader::~vtkTransformerReader()
{
  this->SetFileName(nullptr);
  this->SetArchitecture(nullptr);
}

int vtkTransformerReader::CanReadFile(const char* fileName)
{
  const std::filesystem::path path = fileName;
  std::error_code ignored;
  return path.filename() == "config.json" ||
             (path.extension() == ".safetensors" &&
               std::filesystem::exists(path.parent_path() / "config.json", ignored))
           ? 1
           : 0;
}

int vtkTransformerReader::RequestData(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  if (this->FileName == nullptr || this->FileName[0] == '\0')
  {
    vtkErrorMacro("FileName: expected the config.json or the weights of a model, found none.");
    return 0;
  }
  const std::string name = this->Architecture != nullptr ? this->Architecture : "";
  const std::string architecture = name == "Auto" ? "" : name;
  const bool processes = this->Processing == TRANSFORMER_LENS;
  auto* output = vtkMultiBlockDataSet::GetData(outputVector);
  try
  {
    this->Model = AttentionAtlas::OpenTransformer::Open(this->FileName, architecture, processes);
    const atlas::Transformer& model = this->Model->GetModel();
    AttentionAtlas::ToDataSet(model, this->FileName, architecture, processes, output);
    const std::string unused = atlas::Joined(
      model.GetWeights().unused, [](const std::string& tensor) { return "'" + tensor + "'"; });
    if (!unused.empty())
    {
      vtkWarningMacro(<< this->FileName << ": no part of " << model.GetConfig().architecture
                      << " has the names of these tensors, which are not used: " << unused << ".");
    }
  }
  catch (const std::exception& e)
  {
    output->Initialize();
    this->Model.reset();
    vtkErrorMacro(<< e.what());
    return 1; // as in vtkModelAlgorithm
  }
  return 1;
}

void vtkTransformerReader::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "FileName: " << (this->FileName ? this->FileName : "(none)") << "\n";
  os << indent << "Architecture: " << (this->Architecture ? this->Architecture : "(none)") << "\n";
  os << indent << "Processing: " << this->Processing << "\n";
}
