#include "vtkSMAtlasEnumerationDomain.h"

#include <vtkCommand.h>
#include <vtkObjectFactory.h>
#include <vtkPVXMLElement.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>

vtkStandardNewMacro(vtkSMAtlasEnumerationDomain);

int vtkSMAtlasEnumerationDomain::ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element)
{
  if (this->Superclass::ReadXMLAttributes(prop, element) == 0)
  {
    return 0;
  }
  for (unsigned int i = 0; i < element->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* entry = element->GetNestedElement(i);
    const char* text = entry->GetAttribute("new_text");
    int value = 0;
    if (text == nullptr || entry->GetScalarAttribute("value", &value) == 0)
    {
      continue;
    }
    if (this->HasEntryText(text) == 0)
    {
      vtkErrorMacro("new_text: expected the text of an entry, found '" << text << "'.");
      return 0;
    }
    this->NewValues[value] = this->GetEntryValueForText(text);
  }
  if (!this->NewValues.empty())
  {
    prop->AddObserver(
      vtkCommand::ModifiedEvent, this, &vtkSMAtlasEnumerationDomain::ReplaceOldValues);
  }
  return 1;
}

bool vtkSMAtlasEnumerationDomain::IsOldEntry(unsigned int index)
{
  return this->NewValues.count(this->GetEntryValue(index)) > 0;
}

void vtkSMAtlasEnumerationDomain::ReplaceOldValues(vtkObject* caller, unsigned long, void*)
{
  auto* property = vtkSMProperty::SafeDownCast(caller);
  vtkSMPropertyHelper values(property);
  for (unsigned int i = 0; i < values.GetNumberOfElements(); ++i)
  {
    const int value = values.GetAsInt(i);
    const auto found = this->NewValues.find(value);
    if (found != this->NewValues.end())
    {
      vtkWarningMacro(<< property->GetXMLName() << ": " << this->GetEntryTextForValue(value)
                      << " is deprecated; use " << this->GetEntryTextForValue(found->second)
                      << ".");
      values.Set(i, found->second);
    }
  }
}

void vtkSMAtlasEnumerationDomain::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  for (const auto& [old, current] : this->NewValues)
  {
    os << indent << "NewValue of " << old << ": " << current << "\n";
  }
}
