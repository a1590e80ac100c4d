#include "OldStates.h"

#include "Coloring.h"
#include "NestedElements.h"

#include <vtkPVXMLElement.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyLocator.h>

#include <algorithm>
#include <string>
#include <vector>

namespace AttentionAtlas
{
namespace
{

/// The property of a proxy in a state; null if it is not there.
vtkPVXMLElement* FindProperty(vtkPVXMLElement* proxy, const std::string& name)
{
  const std::vector<vtkPVXMLElement*> all = ElementsIn(proxy);
  const auto found = std::find_if(all.begin(), all.end(),
    [&name](vtkPVXMLElement* property) { return property->GetAttributeOrEmpty("name") == name; });
  return found != all.end() ? *found : nullptr;
}

void RestoreTranslation(vtkSMProxy* representation, vtkPVXMLElement* position)
{
  vtkSMPropertyHelper translation(representation, "Translation");
  for (vtkPVXMLElement* element : ElementsIn(position))
  {
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
  for (vtkPVXMLElement* proxy : ElementsIn(state))
  {
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
