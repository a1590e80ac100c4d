#include "OldStates.h"

#include "Coloring.h"

#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyLocator.h>

#include <string>

namespace AttentionAtlas
{
namespace
{

/// The property of a proxy in a state; null if it is not there.
vtkPVXMLElement* FindProperty(vtkPVXMLElement* proxy, const std::string& name)
{
  for (unsigned int i = 0; i < proxy->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* property = proxy->GetNestedElement(i);
    if (property->GetAttributeOrEmpty("name") == name)
    {
      return property;
    }
  }
  return nullptr;
}

void RestoreTranslation(vtkSMProxy* representation, vtkPVXMLElement* position)
{
  vtkSMPropertyHelper translation(representation, "Translation");
  for (unsigned int i = 0; i < position->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* element = position->GetNestedElement(i);
    int index = 0;
    double value = 0;
    if (element->GetScalarAttribute("index", &index) != 0 &&
        element->GetScalarAttribute("value", &value) != 0)
    {
      translation.Set(static_cast<unsigned int>(index), value);
    }
  }
  representation->UpdateVTKObjects();
}

}

void RestoreTranslations(vtkPVXMLElement* state, vtkSMProxyLocator* locator)
{
  const std::string proxies = "ServerManagerState";
  if (state->GetName() != proxies)
  {
    state = state->FindNestedElementByName(proxies.c_str());
  }
  for (unsigned int i = 0; state != nullptr && i < state->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* proxy = state->GetNestedElement(i);
    vtkPVXMLElement* position = FindProperty(proxy, "Position");
    int id = 0;
    if (position == nullptr ||
        proxy->GetAttributeOrEmpty("group") != std::string("representations") ||
        proxy->GetScalarAttribute("id", &id) == 0)
    {
      continue;
    }
    vtkSMProxy* representation = locator->LocateProxy(static_cast<vtkTypeUInt32>(id));
    if (representation != nullptr && representation->GetProperty("Translation") != nullptr &&
        RepresentationHint(representation) != nullptr)
    {
      RestoreTranslation(representation, position);
    }
  }
}

}
