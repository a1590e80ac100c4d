#include "vtkSMAtlasSecondInputDomain.h"

#include "SecondInputs.h"

#include <vtkObjectFactory.h>
#include <vtkPVXMLElement.h>
#include <vtkSMInputProperty.h>
#include <vtkSMProperty.h>

vtkStandardNewMacro(vtkSMAtlasSecondInputDomain);

int vtkSMAtlasSecondInputDomain::ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element)
{
  this->Second = element->GetAttributeOrEmpty("property");
  return this->Superclass::ReadXMLAttributes(prop, element);
}

int vtkSMAtlasSecondInputDomain::IsInDomain(vtkSMProperty* property)
{
  vtkSMProxy* filter = property->GetParent();
  vtkSMInputProperty* second = AttentionAtlas::PrototypeInput(filter, this->Second.c_str());
  return second != nullptr && !AttentionAtlas::AllFittingOutputs(second, filter).empty()
           ? IN_DOMAIN
           : NOT_IN_DOMAIN;
}
