#include "vtkAttentionOnlyModelReader.h"

#include "AttentionOnlyModel.h"
#include "ModelConversion.h"
#include "Safetensors.h"

#include <vtkDataObject.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <cmath>
#include <cstdlib>
#include <optional>

namespace
{

/// The training step in the metadata of a checkpoint, if it is a number.
std::optional<double> TrainingStep(const atlas::Metadata& metadata)
{
  const auto step = metadata.find("step");
  if (step == metadata.end())
  {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(step->second.c_str(), &end);
  if (end == step->second.c_str() || *end != '\0' || !std::isfinite(value))
  {
    return std::nullopt;
  }
  return value;
}

}

vtkStandardNewMacro(vtkAttentionOnlyModelReader);

vtkAttentionOnlyModelReader::vtkAttentionOnlyModelReader()
{
  this->SetNumberOfInputPorts(0);
}

vtkAttentionOnlyModelReader::~vtkAttentionOnlyModelReader()
{
  this->SetFileName(nullptr);
}

vtkMTimeType vtkAttentionOnlyModelReader::GetMTime()
{
  this->Failed.Touch(this);
  return this->Superclass::GetMTime();
}

int vtkAttentionOnlyModelReader::CanReadFile(const char* fileName)
{
  try
  {
    const atlas::SafetensorsFile file(fileName);
    return file.GetTensors().count("word_embedding") + file.GetTensors().count("word_emb.weight") !=
           0;
  }
  catch (const std::exception&)
  {
    return 1;
  }
}

int vtkAttentionOnlyModelReader::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkInformation* info = outputVector->GetInformationObject(0);
  info->Remove(vtkStreamingDemandDrivenPipeline::TIME_STEPS());
  info->Remove(vtkStreamingDemandDrivenPipeline::TIME_RANGE());
  if (this->FileName == nullptr)
  {
    return 1;
  }
  std::optional<double> step;
  try
  {
    step = TrainingStep(atlas::SafetensorsFile(this->FileName).GetMetadata());
  }
  catch (const std::exception&)
  {
    return 1; // RequestData gets the same error and reports it once.
  }
  if (step)
  {
    const double range[2] = { *step, *step };
    info->Set(vtkStreamingDemandDrivenPipeline::TIME_STEPS(), range, 1);
    info->Set(vtkStreamingDemandDrivenPipeline::TIME_RANGE(), range, 2);
  }
  return 1;
}

int vtkAttentionOnlyModelReader::RequestData(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  if (this->FileName == nullptr || this->FileName[0] == '\0')
  {
    vtkErrorMacro("FileName: expected the name of a safetensors file, found none.");
    return 0;
  }
  vtkInformation* info = outputVector->GetInformationObject(0);
  auto* output = vtkMultiBlockDataSet::GetData(outputVector);
  this->Failed.Forget();
  try
  {
    const atlas::AttentionOnlyModel model =
      atlas::ReadAttentionOnlyModel(this->FileName, this->SubHeads);
    AttentionAtlas::ToDataSet(model, output);
    if (const std::optional<double> step = TrainingStep(model.metadata))
    {
      output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), *step);
    }
    else if (info->Has(vtkStreamingDemandDrivenPipeline::UPDATE_TIME_STEP()))
    {
      output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(),
        info->Get(vtkStreamingDemandDrivenPipeline::UPDATE_TIME_STEP()));
    }
  }
  catch (const std::exception& e)
  {
    output->Initialize();
    this->Failed.Remember({ this->FileName });
    vtkErrorMacro(<< e.what());
    return 1; // as in vtkModelAlgorithm
  }
  return 1;
}

void vtkAttentionOnlyModelReader::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "FileName: " << (this->FileName ? this->FileName : "(none)") << "\n";
  os << indent << "SubHeads: " << this->SubHeads << "\n";
}
