#include "vtkAttentionOnlyModelReader.h"

#include "AttentionOnly/AttentionOnlyModel.h"
#include "Base/Error.h"
#include "Files/Safetensors.h"
#include "ModelConversion.h"
#include "Task.h"

#include <vtkDataObject.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

using namespace AttentionAtlas;

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
  : vtkTaskAlgorithm({}, { "vtkMultiBlockDataSet" })
{
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
    // Reading tells what is wrong, but for the index of a recording.
    return std::filesystem::path(fileName).extension() == ".json" ? 0 : 1;
  }
}

int vtkAttentionOnlyModelReader::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  std::optional<double> step;
  if (!this->FileName.empty())
  {
    try
    {
      step = TrainingStep(atlas::SafetensorsFile(this->FileName).GetMetadata());
    }
    catch (const std::exception&)
    {
      step.reset(); // RequestData gets the same error and reports it once.
    }
  }
  SetTimeSteps(outputVector->GetInformationObject(0),
    step ? std::vector<double>{ *step } : std::vector<double>());
  return 1;
}

void vtkAttentionOnlyModelReader::Execute(Task& task)
{
  using SDDP = vtkStreamingDemandDrivenPipeline;
  atlas::ThrowIf<atlas::OptionError>(
    this->FileName.empty(), "FileName: expected the name of a safetensors file, found none.");
  task.Reads(this->FileName.c_str());
  const atlas::AttentionOnlyModel model =
    atlas::ReadAttentionOnlyModel(this->FileName, this->SubHeads);
  auto* output = task.Output<vtkMultiBlockDataSet>();
  ToDataSet(model, output);
  vtkInformation* info = task.OutputInformation();
  if (const std::optional<double> step = TrainingStep(model.metadata))
  {
    output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), *step);
  }
  else if (info->Has(SDDP::UPDATE_TIME_STEP()))
  {
    output->GetInformation()->Set(
      vtkDataObject::DATA_TIME_STEP(), info->Get(SDDP::UPDATE_TIME_STEP()));
  }
}
