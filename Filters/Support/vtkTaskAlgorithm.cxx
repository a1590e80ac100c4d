#include "vtkTaskAlgorithm.h"

#include "Base/Error.h"
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

/// The types of an input, separated by |, of its declaration.
std::string TypesOf(const std::string& input)
{
  return input.substr(0, input.find('?'));
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

  Failure() = default;
  explicit Failure(const std::exception& e)
    : error(e.what())
    , isKnown(dynamic_cast<const AttentionAtlas::KnownError*>(&e) != nullptr)
    , isOfAll(this->isKnown || dynamic_cast<const atlas::Error*>(&e) != nullptr)
  {
    if (dynamic_cast<const atlas::FileError*>(&e) != nullptr)
    {
      this->code = vtkErrorCode::CannotOpenFileError;
    }
    if (dynamic_cast<const atlas::FormatError*>(&e) != nullptr)
    {
      this->code = vtkErrorCode::FileFormatError;
    }
  }
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
  // Any data, since VTK would report a wrong type once for each request; RequestData looks at it.
  // But to filters of any dataset VTK gives the blocks of composite data one by one.
  const std::string types = TypesOf(this->Inputs.at(port));
  if (types == "vtkDataSet" || types == "vtkDataSet|vtkTable")
  {
    info->Remove(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE());
    for (const char* type : { "vtkDataSet", "vtkTable", "vtkGraph", "vtkSelection" })
    {
      info->Append(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), type);
    }
  }
  else
  {
    info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkDataObject");
  }
  if (this->Inputs.at(port).back() == '?')
  {
    info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1);
  }
  return 1;
}

/// Whether data have one of the types of an input, or there are none.
bool vtkTaskAlgorithm::IsOfType(int port, vtkDataObject* data) const
{
  std::istringstream types(TypesOf(this->Inputs.at(port)));
  std::string type;
  bool isOfType = data == nullptr;
  while (!isOfType && std::getline(types, type, '|'))
  {
    isOfType = data->IsA(type.c_str()) != 0;
  }
  return isOfType;
}

/// Throws atlas::Error if an input has none of its types.
void vtkTaskAlgorithm::RequireTypes(vtkInformationVector** inputVector) const
{
  for (int port = 0; port < static_cast<int>(this->Inputs.size()); ++port)
  {
    for (int i = 0; i < inputVector[port]->GetNumberOfInformationObjects(); ++i)
    {
      vtkDataObject* data = vtkDataObject::GetData(inputVector[port], i);
      if (!this->IsOfType(port, data))
      {
        std::string types = TypesOf(this->Inputs.at(port));
        for (std::size_t bar = 0; (bar = types.find('|', bar)) != std::string::npos;)
        {
          types.replace(bar, 1, " or ");
        }
        throw atlas::Error(port == 0 ? "input" : "second input", ": expected a ", types,
          ", found a ", data->GetClassName(), ".");
      }
    }
  }
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
      // Of a wrong type, RequestData tells; until then the output is some dataset.
      const bool isOfType = input->IsA(this->Outputs[port].c_str() + 1) != 0;
      MakeOutput(
        outputVector, static_cast<int>(port), isOfType ? input->GetClassName() : "vtkPolyData");
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
      if (!this->IsOfType(port, vtkDataObject::GetData(info)) && info->Has(SDDP::WHOLE_EXTENT()))
      {
        info->Set(SDDP::UPDATE_EXTENT(), info->Get(SDDP::WHOLE_EXTENT()), 6); // not that of ours
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
    this->RequireTypes(inputVector);
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
  catch (const std::exception& e)
  {
    this->Fail(task, Failure(e), outputVector);
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
