#include "vtkSMAtlasRenamedPropertyDomain.h"

#include <vtkCommand.h>
#include <vtkObjectFactory.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
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
  prop->GetParent()->AddObserver(
    vtkCommand::UpdateEvent, this, &vtkSMAtlasRenamedPropertyDomain::TakeOldValue);
  return 1;
}

/// Copies the new value to the old name at once. In the other direction it waits for the proxy to
/// be updated: a state may set only the old name, or set the new one later.
void vtkSMAtlasRenamedPropertyDomain::Follow(vtkObject* caller, unsigned long, void*)
{
  if (this->Old == nullptr || this->Current == nullptr)
  {
    return;
  }
  const bool areEqual = AreEqual(this->Old, this->Current);
  this->IsReady = this->IsReady || areEqual;
  this->IsOldNewer = this->IsReady && !areEqual && caller == this->Old.Get();
  if (this->IsReady && !areEqual && !this->IsOldNewer)
  {
    this->Old->Copy(this->Current);
  }
}

void vtkSMAtlasRenamedPropertyDomain::TakeOldValue(vtkObject* caller, unsigned long, void*)
{
  if (!this->IsOldNewer || this->Old == nullptr || this->Current == nullptr)
  {
    return;
  }
  this->IsOldNewer = false;
  if (!this->HasWarned && !this->Old->IsValueDefault())
  {
    this->HasWarned = true;
    vtkWarningMacro(<< this->Old->GetXMLName() << " is deprecated; use "
                    << this->Current->GetXMLName() << ".");
  }
  this->Current->Copy(this->Old);
  vtkSMProxy::SafeDownCast(caller)->UpdateVTKObjects();
}

void vtkSMAtlasRenamedPropertyDomain::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Old: " << (this->Old != nullptr ? this->Old->GetXMLName() : "(none)") << "\n";
  os << indent << "New: " << (this->Current != nullptr ? this->Current->GetXMLName() : "(none)")
     << "\n";
}
