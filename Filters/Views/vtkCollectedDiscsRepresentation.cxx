#include "vtkCollectedDiscsRepresentation.h"

#include <vtkInformation.h>
#include <vtkMPIMoveData.h>
#include <vtkObjectFactory.h>
#include <vtkPVRenderView.h>

vtkStandardNewMacro(vtkCollectedDiscsRepresentation);

int vtkCollectedDiscsRepresentation::ProcessViewRequest(
  vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output)
{
  const int shown = this->Superclass::ProcessViewRequest(request, input, output);
  if (shown != 0 && request == vtkPVView::REQUEST_UPDATE())
  {
    vtkPVRenderView::SetForceDataDistributionMode(input, vtkMPIMoveData::COLLECT);
  }
  return shown;
}
