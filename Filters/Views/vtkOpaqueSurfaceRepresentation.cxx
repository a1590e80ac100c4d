#include "vtkOpaqueSurfaceRepresentation.h"

#include <vtkObjectFactory.h>
#include <vtkPVLODActor.h>
#include <vtkProperty.h>

vtkStandardNewMacro(vtkOpaqueSurfaceRepresentation);

bool vtkOpaqueSurfaceRepresentation::NeedsOrderedCompositing()
{
  const double opacity = this->Actor->GetProperty()->GetOpacity();
  return opacity > 0 && opacity < 1;
}
