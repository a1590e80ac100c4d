#include "vtkSMAtlasArrayListDomain.h"

#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkSMAtlasArrayListDomain);

int vtkSMAtlasArrayListDomain::SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values)
{
  return this->GetNumberOfStrings() > 0
           ? this->Superclass::SetDefaultValues(property, use_unchecked_values)
           : 0;
}
