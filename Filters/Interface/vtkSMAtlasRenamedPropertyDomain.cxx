#include "vtkSMAtlasRenamedPropertyDomain.h"

#include <vtkCommand.h>
#include <vtkObjectFactory.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkVariant.h>

namespace
{

bool AreEqual(vtkSMProperty* a, vtkSMProperty* b)
{
  const vtkSMPropertyHelper left(a);
  const vtkSMPropertyHelper right(b);
  if (left.GetNumberOfElements() != right.GetNumberOfElements())
  {
    return false;
  }
  for (unsigned int i = 0; i < left.GetNumberOfElements(); ++i)
  {
    if (left.GetAsVariant(i) != right.GetAsVariant(i))
    {
      return false;
    }
  }
  return true;
}

}

vtkStandardNewMacro(vtkSMAtlasRenamedPropertyDomain);

int vtkSMAtlasRenamedPropertyDomain::ReadXMLAttributes(
  vtkSMProperty* prop, vtkPVXMLElement* element)
{
  if (this->Superclass::ReadXMLAttributes(prop, element) == 0)
  {
    return 0;
  }
  this->Old = prop;
  this->Current = this->GetRequiredProperty("New");
  if (this->Current == nullptr)
  {
    vtkErrorMacro(<< prop->GetXMLName() << ": expected a required property New, found none.");
    return 0;
  }
  this->IsReady = AreEqual(prop, this->Current);
  for (vtkSMProperty* property : { prop, this->Current.Get() })
  {
    property->AddObserver(
      vtkCommand::ModifiedEvent, this, &vtkSMAtlasRenamedPropertyDomain::Follow);
  }
  return 1;
}

/// Gives the value of the property that has changed to the other one.
void vtkSMAtlasRenamedPropertyDomain::Follow(vtkObject* caller, unsigned long, void*)
{
  if (this->Old == nullptr || this->Current == nullptr)
  {
    return;
  }
  const bool areEqual = AreEqual(this->Old, this->Current);
  this->IsReady = this->IsReady || areEqual;
  if (areEqual || !this->IsReady)
  {
    return;
  }
  if (caller == this->Current.Get())
  {
    this->Old->Copy(this->Current);
    return;
  }
  if (!this->HasWarned && !this->Old->IsValueDefault())
  {
    this->HasWarned = true;
    vtkWarningMacro(<< this->Old->GetXMLName() << " is deprecated; use "
                    << this->Current->GetXMLName() << ".");
  }
  this->Current->Copy(this->Old);
}

void vtkSMAtlasRenamedPropertyDomain::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Old: " << (this->Old != nullptr ? this->Old->GetXMLName() : "(none)") << "\n";
  os << indent << "New: " << (this->Current != nullptr ? this->Current->GetXMLName() : "(none)")
     << "\n";
}
