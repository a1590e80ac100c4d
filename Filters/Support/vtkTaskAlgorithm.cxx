#include "vtkTaskAlgorithm.h"

#include "Error.h"
#include "Task.h"

#include <vtkCompositeDataPipeline.h>
#include <vtkDataObject.h>
#include <vtkDataObjectTypes.h>
#include <vtkErrorCode.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiProcessController.h>
#include <vtkSmartPointer.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <sstream>

using AttentionAtlas::RankGroup;
using AttentionAtlas::Task;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

void ClearOutputs(vtkInformationVector* outputVector)
{
  for (int port = 0; port < outputVector->GetNumberOfInformationObjects(); ++port)
  {
    if (vtkDataObject* output = vtkDataObject::GetData(outputVector, port))
    {
      output->Initialize();
    }
  }
}

/// Whether an output with this type has the class of the first input.
bool IsAsInput(const std::string& type)
{
  return type.front() == '=';
}

/// Empties all outputs, so that no partial results remain, and makes the next update compute them.
void LeaveCanceled(vtkInformationVector* outputVector)
{
  for (int port = 0; port < outputVector->GetNumberOfInformationObjects(); ++port)
  {
    vtkInformation* info = outputVector->GetInformationObject(port);
    vtkDataObject::GetData(info)->ReleaseData();
    info->Set(vtkDemandDrivenPipeline::DATA_NOT_GENERATED(), 1);
  }
}

}

/// How a task failed on this rank.
struct vtkTaskAlgorithm::Failure
{
  unsigned long code = vtkErrorCode::UnknownError;
  std::optional<std::string> error; ///< none: it was canceled
  bool isKnown = false;             ///< to all ranks
  bool isOfAll = false;             ///< of data or options, which all ranks have
};

vtkTaskAlgorithm::vtkTaskAlgorithm(
  const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, int options)
  : Inputs(inputs)
  , Outputs(outputs)
  , Options(options)
  , Shown(
      static_cast<int>(std::find(outputs.begin(), outputs.end(), "vtkImageData") - outputs.begin()))
{
  this->SetNumberOfInputPorts(static_cast<int>(inputs.size()));
  this->SetNumberOfOutputPorts(static_cast<int>(outputs.size()));
}

vtkTaskAlgorithm::~vtkTaskAlgorithm() = default;

void vtkTaskAlgorithm::SetController(vtkMultiProcessController* controller)
{
  if (this->Controller != controller)
  {
    this->Controller = controller;
    this->Modified();
  }
}

vtkMultiProcessController* vtkTaskAlgorithm::GetController() const
{
  return this->Controller ? this->Controller.Get()
                          : vtkMultiProcessController::GetGlobalController();
}

int vtkTaskAlgorithm::ComputePipelineMTime(
  vtkInformation*, vtkInformationVector**, vtkInformationVector*, int, vtkMTimeType* mtime)
{
  vtkMultiProcessController* controller = this->GetController();
  if ((controller == nullptr || controller->GetNumberOfProcesses() == 1) &&
      this->Errors.AreMended())
  {
    this->Modified();
  }
  *mtime = this->GetMTime();
  return 1;
}

int vtkTaskAlgorithm::FillInputPortInformation(int port, vtkInformation* info)
{
  std::string type = this->Inputs.at(port);
  if (type.back() == '?')
  {
    type.pop_back();
    info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1);
  }
  std::istringstream types(type);
  info->Remove(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE());
  while (std::getline(types, type, '|'))
  {
    info->Append(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), type.c_str());
  }
  return 1;
}

int vtkTaskAlgorithm::FillOutputPortInformation(int port, vtkInformation* info)
{
  const std::string& type = this->Outputs.at(port);
  info->Set(vtkDataObject::DATA_TYPE_NAME(), type.c_str() + (IsAsInput(type) ? 1 : 0));
  return 1;
}

/// As ParaView's own, so that a filter behaves in the same way without it.
vtkExecutive* vtkTaskAlgorithm::CreateDefaultExecutive()
{
  return vtkCompositeDataPipeline::New();
}

int vtkTaskAlgorithm::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  for (std::size_t port = 0; port < this->Outputs.size(); ++port)
  {
    if ((this->Options & WHOLE_INPUT) != 0 && this->Outputs[port] != "vtkImageData")
    {
      outputVector->GetInformationObject(static_cast<int>(port))
        ->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
    }
  }
  return 1;
}

/// Makes the outputs that are as the first input; the executive makes the others.
int vtkTaskAlgorithm::RequestDataObject(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  for (std::size_t port = 0; port < this->Outputs.size(); ++port)
  {
    if (IsAsInput(this->Outputs[port]))
    {
      vtkDataObject* input = vtkDataObject::GetData(inputVector[0]);
      if (input == nullptr)
      {
        return 0;
      }
      MakeOutput(outputVector, static_cast<int>(port), input->GetClassName());
    }
  }
  return 1;
}

void vtkTaskAlgorithm::MakeOutput(
  vtkInformationVector* outputVector, int port, const char* className)
{
  vtkInformation* info = outputVector->GetInformationObject(port);
  vtkDataObject* output = vtkDataObject::GetData(info);
  if (output == nullptr || std::strcmp(output->GetClassName(), className) != 0)
  {
    const auto made =
      vtkSmartPointer<vtkDataObject>::Take(vtkDataObjectTypes::NewDataObject(className));
    info->Set(vtkDataObject::DATA_OBJECT(), made);
  }
}

int vtkTaskAlgorithm::RequestUpdateExtent(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  if (this->ShowsMatrix())
  {
    this->Shown.Limit(this, request, outputVector);
  }
  for (int port = 0; port < this->GetNumberOfInputPorts(); ++port)
  {
    for (int i = 0; i < this->GetNumberOfInputConnections(port); ++i)
    {
      vtkInformation* info = inputVector[port]->GetInformationObject(i);
      if ((this->Options & WHOLE_INPUT) != 0)
      {
        AttentionAtlas::KeepRequest(info, this->GetController());
      }
      else
      {
        info->Set(SDDP::EXACT_EXTENT(), 1);
      }
    }
  }
  return 1;
}

void vtkTaskAlgorithm::AskForAllOutputs(vtkInformation* request, vtkInformationVector* outputVector)
{
  const int port = request->Get(vtkExecutive::FROM_OUTPUT_PORT());
  for (int other = 0; port >= 0 && other < outputVector->GetNumberOfInformationObjects(); ++other)
  {
    for (auto* key : { SDDP::UPDATE_PIECE_NUMBER(), SDDP::UPDATE_NUMBER_OF_PIECES() })
    {
      outputVector->GetInformationObject(other)->Set(
        key, outputVector->GetInformationObject(port)->Get(key));
    }
  }
}

int vtkTaskAlgorithm::RequestData(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  std::optional<RankGroup> group(std::in_place);
  if ((this->Options & TOGETHER) != 0)
  {
    group.emplace(this->GetController(), outputVector);
  }
  const RankGroup& ranks = *group;
  Task task(this, request, inputVector, outputVector, ranks);
  ClearOutputs(outputVector);
  this->Shown.Forget();
  try
  {
    this->Execute(task);
    ranks.Finish();
    this->Errors.Clear();
    this->ErrorCode = vtkErrorCode::NoError; // the setter would count as a change of the filter
    this->WithdrawCancel(); // it came too late, and would cancel the next execution
    if (this->ShowsMatrix())
    {
      this->Shown.Answered(request, outputVector);
    }
  }
  catch (const atlas::Canceled&)
  {
    this->Fail(task, {}, outputVector);
  }
  catch (const AttentionAtlas::KnownError& e)
  {
    this->Fail(task, { vtkErrorCode::UnknownError, e.what(), true, true }, outputVector);
  }
  catch (const atlas::FileError& e)
  {
    this->Fail(task, { vtkErrorCode::CannotOpenFileError, e.what(), false, true }, outputVector);
  }
  catch (const atlas::FormatError& e)
  {
    this->Fail(task, { vtkErrorCode::FileFormatError, e.what(), false, true }, outputVector);
  }
  catch (const atlas::Error& e)
  {
    this->Fail(task, { vtkErrorCode::UnknownError, e.what(), false, true }, outputVector);
  }
  catch (const std::exception& e)
  {
    this->Fail(task, { vtkErrorCode::UnknownError, e.what(), false, false }, outputVector);
  }
  this->SetProgressText(nullptr);
  return 1;
}

void vtkTaskAlgorithm::Fail(Task& task, const Failure& failure, vtkInformationVector* outputVector)
{
  const bool isTogether = (this->Options & TOGETHER) != 0;
  const std::optional<std::string> error =
    isTogether && !failure.isKnown ? task.Ranks().Leave(failure.error) : failure.error;
  if (!error)
  {
    this->ErrorCode = vtkErrorCode::NoError;
    this->Errors.Clear();
    this->WithdrawCancel();
    LeaveCanceled(outputVector);
    return;
  }
  this->ErrorCode = failure.code;
  ClearOutputs(outputVector);
  // Files may differ between the ranks.
  const bool isOfAll = failure.isOfAll && task.GetFiles().empty();
  const bool isHere = isTogether ? task.Ranks().Rank() == 0 : !isOfAll || task.IsFirst();
  if (this->Errors.Add(this, *error, task.GetFiles()) && isHere)
  {
    vtkErrorMacro(<< *error);
  }
}
