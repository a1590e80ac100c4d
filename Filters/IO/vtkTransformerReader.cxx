#include "vtkTransformerReader.h"

#include "Base/Error.h"
#include "Learning/CheckpointFiles.h"
#include "Task.h"
#include "TransformerConversion.h"
#include "Weights/Adapter.h"
#include "Weights/CheckpointConfig.h"
#include "Weights/GgufModel.h"

#include <vtkDataObject.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

using namespace AttentionAtlas;

namespace
{

constexpr std::array<std::string_view, 4> TorchEndings = { ".bin", ".pt", ".pth", ".ckpt" };

/// What trainings leave beside the weights of a model.
constexpr std::array<std::string_view, 4> OtherTorchFiles = { "optimizer", "rng_state", "scheduler",
  "training_args" };

}

vtkStandardNewMacro(vtkTransformerReader);

vtkTransformerReader::vtkTransformerReader()
  : vtkTaskAlgorithm({}, { "vtkMultiBlockDataSet" })
{
}

int vtkTransformerReader::CanReadFile(const char* fileName)
{
  const std::filesystem::path path = fileName;
  const std::string ending = path.extension().string();
  const bool hasConfig = atlas::ModelFile(path.parent_path()) != path.parent_path();
  const bool isTorch =
    std::find(TorchEndings.begin(), TorchEndings.end(), ending) != TorchEndings.end() &&
    std::find(OtherTorchFiles.begin(), OtherTorchFiles.end(), path.stem().string()) ==
      OtherTorchFiles.end();
  return path.filename() == atlas::ConfigFile || path.filename() == atlas::MetaConfigFile ||
             path.filename() == atlas::AdapterConfigFile ||
             (atlas::IsGgufName(path) && !atlas::IsVocabularyAlone(path)) ||
             (hasConfig && (isTorch || ending == ".safetensors")) ||
             (isTorch && atlas::IsTransformerCheckpoint(path))
           ? 1
           : 0;
}

int vtkTransformerReader::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  this->Steps.clear();
  if (this->Checkpoints && !this->FileName.empty() && !atlas::IsGgufName(this->FileName))
  {
    this->Steps = atlas::FindCheckpoints(atlas::ModelFolder(this->FileName));
  }
  std::vector<double> times;
  for (const auto& [step, folder] : this->Steps)
  {
    times.push_back(static_cast<double>(step));
  }
  SetTimeSteps(outputVector->GetInformationObject(0), times);
  return 1;
}

/// The checkpoint at the time that is asked for; nullptr if there are none.
const vtkTransformerReader::Checkpoint* vtkTransformerReader::CheckpointAt(
  vtkInformation* outputInfo) const
{
  using SDDP = vtkStreamingDemandDrivenPipeline;
  if (this->Steps.empty())
  {
    return nullptr;
  }
  auto step = std::prev(this->Steps.end());
  if (outputInfo->Has(SDDP::UPDATE_TIME_STEP()))
  {
    const double time = outputInfo->Get(SDDP::UPDATE_TIME_STEP());
    while (step != this->Steps.begin() && static_cast<double>(step->first) > time)
    {
      --step;
    }
  }
  return &*step;
}

/// The model of a path, which stays open; a single one at a time if its weights are processed,
/// since these take memory.
const atlas::OpenTransformer& vtkTransformerReader::Open(
  const std::filesystem::path& path, const std::string& architecture, bool processes)
{
  const auto products = this->Products == BFLOAT16 ? atlas::ProductPrecision::Bfloat16
                                                   : atlas::ProductPrecision::Single;
  auto model = atlas::OpenTransformer::Open(path, architecture, processes, products);
  std::set<std::filesystem::path> kept;
  for (const auto& [step, folder] : this->Steps)
  {
    kept.insert(atlas::ModelFile(folder));
  }
  const std::string openedAs =
    architecture + (processes ? ", processed, " : ", ") + std::string(atlas::Name(products));
  const bool onlyOne = processes || openedAs != std::exchange(this->OpenedAs, openedAs);
  for (auto open = this->Models.begin(); open != this->Models.end();)
  {
    const bool stays = !onlyOne && kept.count(open->first) != 0;
    open = stays ? std::next(open) : this->Models.erase(open);
  }
  return *(this->Models[path] = std::move(model));
}

void vtkTransformerReader::Execute(Task& task)
{
  atlas::ThrowIf<atlas::OptionError>(this->FileName.empty(),
    "FileName: expected the config.json or the weights of a model, found none.");
  const std::string architecture = this->Architecture == "Auto" ? "" : this->Architecture;
  const bool processes = this->Processing == TRANSFORMER_LENS;
  const Checkpoint* checkpoint = this->CheckpointAt(task.OutputInformation());
  const std::filesystem::path path = checkpoint == nullptr ? std::filesystem::path(this->FileName)
                                                           : atlas::ModelFile(checkpoint->second);
  task.Reads(this->FileName.c_str());
  task.Reads(path.c_str());
  try
  {
    const atlas::OpenTransformer& open = this->Open(path, architecture, processes);
    const atlas::Transformer& model = open.GetModel();
    auto* output = task.Output<vtkMultiBlockDataSet>();
    ToDataSet(model, path, architecture, processes, output);
    if (checkpoint != nullptr)
    {
      output->GetInformation()->Set(
        vtkDataObject::DATA_TIME_STEP(), static_cast<double>(checkpoint->first));
    }
    std::error_code ignored;
    if (model.GetAdapter().empty() && !atlas::IsGgufName(path) &&
        std::filesystem::exists(atlas::ModelFolder(path) / atlas::AdapterConfigFile, ignored))
    {
      vtkWarningMacro(<< path.string() << ": these weights alone were opened, without the adapter "
                      << "beside them; open " << atlas::AdapterConfigFile << " for both.");
    }
    for (const auto& warnings : { atlas::UnusedWarnings(path, model), open.FileWarnings() })
    {
      for (const std::string& warning : warnings)
      {
        vtkWarningMacro(<< warning);
      }
    }
  }
  catch (const std::exception&)
  {
    this->Models.erase(path);
    throw;
  }
}
