#pragma once

#include <vtkPVXMLElement.h>

#include <string>
#include <vector>

namespace AttentionAtlas
{

/// The elements in an element, all or those with a name; none in null.
inline std::vector<vtkPVXMLElement*> ElementsIn(
  vtkPVXMLElement* element, const std::string& name = {})
{
  std::vector<vtkPVXMLElement*> found;
  for (unsigned int i = 0; element != nullptr && i < element->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* nested = element->GetNestedElement(i);
    if (name.empty() || nested->GetName() == name)
    {
      found.push_back(nested);
    }
  }
  return found;
}

}
