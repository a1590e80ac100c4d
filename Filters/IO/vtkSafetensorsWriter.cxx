#include "vtkSafetensorsWriter.h"

#include <vtkErrorCode.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkMultiProcessController.h>

vtkSafetensorsWriter::~vtkSafetensorsWriter()
{
  this->SetFileName(nullptr);
}

int vtkSafetensorsWriter::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
}

void vtkSafetensorsWriter::WriteData()
{
  if (this->FileName == nullptr || this->FileName[0] == '\0')
  {
    this->SetErrorCode(vtkErrorCode::NoFileNameError);
    vtkErrorMacro("FileName: expected the name of a file to write, found none.");
    return;
  }
  auto* controller = vtkMultiProcessController::GetGlobalController();
  if (controller != nullptr && controller->GetLocalProcessId() != 0)
  {
    return;
  }
  try
  {
    this->WriteFile(vtkMultiBlockDataSet::SafeDownCast(this->GetInput()), this->FileName);
  }
  catch (const std::exception& e)
  {
    this->SetErrorCode(vtkErrorCode::CannotOpenFileError);
    vtkErrorMacro(<< e.what());
  }
}

void vtkSafetensorsWriter::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "FileName: " << (this->FileName ? this->FileName : "(none)") << "\n";
}
