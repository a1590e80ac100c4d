#include "vtkTransformerWriter.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFields.h"
#include "Files/Safetensors.h"
#include "Learning/CheckpointFiles.h"
#include "Learning/LearningTask.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"
#include "ModelConversion.h"
#include "TransformerConversion.h"

#include <vtkErrorCode.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

namespace fs = std::filesystem;

/// Whether a folder has the files of the training with this recipe.
bool HasTraining(const fs::path& folder, const std::string& recipe)
{
  std::ifstream file(folder / atlas::RecipeFile);
  const std::string found((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try
  {
    return atlas::AreOfOneTraining(found, recipe);
  }
  catch (const std::exception&)
  {
    return false;
  }
}

/// Throws atlas::OptionError if a folder has what does not belong to a training with checkpoints at
/// these times: another checkpoint, unless the folder has the same training (`isSame`), which has
/// gone on from there, or a state that is not replaced by one of the same training.
void RequireNoOther(
  const fs::path& folder, const std::vector<double>& times, bool isSame, bool hasState)
{
  const auto fail = [&](const std::string& found)
  {
    throw atlas::OptionError(
      folder.string(), ": expected a folder without another training, found ", found, ".");
  };
  for (const auto& [step, path] : atlas::FindCheckpoints(folder))
  {
    const auto time = static_cast<double>(step);
    const bool isEarlier = isSame && !times.empty() && time < times.front();
    if (!isEarlier && std::find(times.begin(), times.end(), time) == times.end())
    {
      fail(path.filename().string());
    }
  }
  std::error_code ignored;
  if (fs::exists(folder / atlas::TrainingStateFile, ignored) && !(isSame && hasState))
  {
    fail(atlas::TrainingStateFile);
  }
}

atlas::LearningCurves ToCurves(vtkTable* table)
{
  atlas::LearningCurves curves;
  curves.rows.resize(static_cast<std::size_t>(table->GetNumberOfRows()));
  for (vtkIdType column = 0; column < table->GetNumberOfColumns(); ++column)
  {
    curves.names.emplace_back(table->GetColumnName(column));
    for (std::size_t row = 0; row < curves.rows.size(); ++row)
    {
      curves.rows[row].push_back(table->GetValue(static_cast<vtkIdType>(row), column).ToDouble());
    }
  }
  return curves;
}

}

vtkStandardNewMacro(vtkTransformerWriter);

vtkTransformerWriter::vtkTransformerWriter()
{
  this->SetNumberOfInputPorts(2);
}

int vtkTransformerWriter::FillInputPortInformation(int port, vtkInformation* info)
{
  if (port == 0)
  {
    return this->Superclass::FillInputPortInformation(port, info);
  }
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkTable");
  info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1);
  return 1;
}

/// Executes once for each checkpoint, in the order of their steps, after an error, too: all ranks
/// have to ask for the same times, and the first one alone knows of the error.
vtkTypeBool vtkTransformerWriter::ProcessRequest(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkInformation* model = inputVector[0]->GetInformationObject(0);
  if (request->Has(SDDP::REQUEST_UPDATE_EXTENT()) != 0)
  {
    if (this->Next == 0)
    {
      this->Failed = false;
      this->Times.clear();
      if (this->Checkpoints && model->Has(SDDP::TIME_STEPS()) != 0)
      {
        const double* times = model->Get(SDDP::TIME_STEPS());
        this->Times.assign(times, times + model->Length(SDDP::TIME_STEPS()));
      }
    }
    if (!this->Times.empty())
    {
      model->Set(SDDP::UPDATE_TIME_STEP(), this->Times[this->Next]);
    }
  }
  const vtkTypeBool result = this->Superclass::ProcessRequest(request, inputVector, outputVector);
  if (request->Has(vtkDemandDrivenPipeline::REQUEST_DATA()) != 0)
  {
    ++this->Next;
    this->Failed = this->Failed || this->GetErrorCode() != vtkErrorCode::NoError;
    if (this->Next < this->Times.size())
    {
      request->Set(SDDP::CONTINUE_EXECUTING(), 1);
    }
    else
    {
      request->Remove(SDDP::CONTINUE_EXECUTING());
      this->Next = 0;
      this->SetErrorCode(this->Failed ? vtkErrorCode::CannotOpenFileError : vtkErrorCode::NoError);
    }
  }
  return result;
}

void vtkTransformerWriter::WriteFile(vtkMultiBlockDataSet* input, const char* fileName)
{
  if (this->Failed)
  {
    return;
  }
  const fs::path path = fs::absolute(fileName);
  atlas::ThrowIf<atlas::OptionError>(path.filename() != atlas::ConfigFile, "FileName: expected ",
    std::string(atlas::ConfigFile), " in a folder for the model, found ", fileName, ".");
  const fs::path folder = path.parent_path();
  const auto model = ToTransformer(input);
  const atlas::ModelInMemory* trained = model->GetMemory();
  const std::string recipe = FieldText(input->GetFieldData(), ArrayNames::Recipe);
  if (trained == nullptr)
  {
    throw atlas::ModelError("input model: expected one that was just trained, found ",
      FieldText(input->GetFieldData(), ModelFileField), ", which is a file.");
  }
  const std::vector<std::string> labels =
    atlas::LabelsOf(atlas::ParseRecipe(recipe, "input model").task);
  if (this->Next == 0)
  {
    const bool isSame = HasTraining(folder, recipe);
    // The last checkpoint has the state, if all are written.
    const bool hasState = trained->state != nullptr || !this->Times.empty();
    RequireNoOther(folder, this->Times, isSame, hasState);
    this->GoesOn = isSame && !this->Times.empty() && this->Times.front() > 0;
  }
  if (!this->Times.empty())
  {
    const double step = input->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP());
    const std::string name = "checkpoint-" + std::to_string(static_cast<std::int64_t>(step));
    atlas::WriteCheckpoint(folder / name, model->GetModel(), {}, atlas::DType::F32, labels);
    if (this->Next + 1 < this->Times.size())
    {
      return;
    }
  }
  std::map<std::string, std::string> files = *trained->files;
  files[atlas::RecipeFile] = recipe;
  atlas::WriteCheckpoint(folder, model->GetModel(), files, atlas::DType::F32, labels);
  if (trained->state != nullptr)
  {
    atlas::WriteSafetensors(folder / atlas::TrainingStateFile, *trained->state, {});
  }
  if (auto* table = vtkTable::SafeDownCast(this->GetInputDataObject(1, 0)))
  {
    const fs::path curves = folder / "curves.csv";
    atlas::WriteCurves(
      curves, this->GoesOn ? atlas::WithEarlierRows(curves, ToCurves(table)) : ToCurves(table));
  }
}
