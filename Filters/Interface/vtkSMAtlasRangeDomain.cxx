#include "vtkSMAtlasRangeDomain.h"

#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkSMAtlasRangeDomain);

int vtkSMAtlasRangeDomain::SetDefaultValues(vtkSMProperty*, bool)
{
  return 0; // the property resets to the default of the XML
}
