#include "vtkAttentionOnlyModelWriter.h"

#include "AttentionOnlyModel.h"
#include "ModelConversion.h"

#include <vtkErrorCode.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkMultiProcessController.h>
#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkAttentionOnlyModelWriter);

vtkAttentionOnlyModelWriter::~vtkAttentionOnlyModelWriter()
{
  this->SetFileName(nullptr);
}

int vtkAttentionOnlyModelWriter::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
}

void vtkAttentionOnlyModelWriter::WriteData()
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
    auto* input = vtkMultiBlockDataSet::SafeDownCast(this->GetInput());
    atlas::WriteAttentionOnlyModel(this->FileName, AttentionAtlas::ToModel(input));
  }
  catch (const std::exception& e)
  {
    this->SetErrorCode(vtkErrorCode::CannotOpenFileError);
    vtkErrorMacro(<< e.what());
  }
}

void vtkAttentionOnlyModelWriter::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "FileName: " << (this->FileName ? this->FileName : "(none)") << "\n";
}
