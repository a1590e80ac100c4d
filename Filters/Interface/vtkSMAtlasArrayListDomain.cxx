#include "vtkSMAtlasArrayListDomain.h"

#include <vtkCommand.h>
#include <vtkObjectFactory.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>

#include <algorithm>
#include <string>

namespace
{

/// Of the values that choose an array, the last is its name; the others are numbers.
constexpr unsigned int Numbers = 4;

bool IsNumber(const std::string& text)
{
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}

vtkStandardNewMacro(vtkSMAtlasArrayListDomain);

int vtkSMAtlasArrayListDomain::ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element)
{
  if (this->Superclass::ReadXMLAttributes(prop, element) == 0)
  {
    return 0;
  }
  prop->AddObserver(vtkCommand::ModifiedEvent, this, &vtkSMAtlasArrayListDomain::ReplaceOldValues);
  return 1;
}

int vtkSMAtlasArrayListDomain::SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values)
{
  return this->GetNumberOfStrings() > 0
           ? this->Superclass::SetDefaultValues(property, use_unchecked_values)
           : 0;
}

void vtkSMAtlasArrayListDomain::ReplaceOldValues(vtkObject* caller, unsigned long, void*)
{
  vtkSMPropertyHelper values(vtkSMProperty::SafeDownCast(caller));
  if (values.GetNumberOfElements() != Numbers + 1)
  {
    return;
  }
  for (unsigned int i = 0; i < Numbers; ++i)
  {
    if (!IsNumber(values.GetAsString(i)))
    {
      values.Set(i, "0");
    }
  }
}
