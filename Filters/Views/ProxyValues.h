#pragma once

#include <vtkNew.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMProxyIterator.h>
#include <vtkSMSessionProxyManager.h>

#include <sstream>
#include <string>
#include <vector>

/// What the properties of proxies are set to.
namespace AttentionAtlas
{

/// A number; 0 if there is no such property.
inline int Number(vtkSMProxy* proxy, const char* property)
{
  return vtkSMPropertyHelper(proxy, property, true).GetAsInt();
}

/// A text; empty if there is none.
inline std::string TextOf(const vtkSMPropertyHelper& property)
{
  const char* text = property.GetAsString();
  return text != nullptr ? text : "";
}

inline std::vector<std::string> TextsOf(const vtkSMPropertyHelper& property)
{
  std::vector<std::string> texts;
  texts.reserve(property.GetNumberOfElements());
  for (unsigned int i = 0; i < property.GetNumberOfElements(); ++i)
  {
    texts.emplace_back(property.GetAsString(i));
  }
  return texts;
}

inline void SetTexts(
  vtkSMProxy* proxy, const std::string& name, const std::vector<std::string>& texts)
{
  vtkSMPropertyHelper property(proxy, name.c_str(), true);
  property.SetNumberOfElements(static_cast<unsigned int>(texts.size()));
  for (unsigned int i = 0; i < texts.size(); ++i)
  {
    property.Set(i, texts[i].c_str());
  }
}

/// The lookup table of a representation or color bar; null if it has none.
inline vtkSMProxy* TableOf(vtkSMProxy* proxy)
{
  vtkSMPropertyHelper table(proxy, "LookupTable", true);
  return table.GetNumberOfElements() > 0 ? table.GetAsProxy() : nullptr;
}

/// The proxies that are registered in a group, such as "representations".
inline std::vector<vtkSMProxy*> ProxiesOf(vtkSMSessionProxyManager* manager, const char* group)
{
  std::vector<vtkSMProxy*> found;
  vtkNew<vtkSMProxyIterator> proxies;
  proxies->SetSessionProxyManager(manager);
  for (proxies->Begin(group); !proxies->IsAtEnd(); proxies->Next())
  {
    found.push_back(proxies->GetProxy());
  }
  return found;
}

/// What is visible in a view: representations and color bars.
inline std::vector<vtkSMProxy*> VisibleIn(vtkSMProxy* view)
{
  vtkSMPropertyHelper shown(view, "Representations");
  std::vector<vtkSMProxy*> found;
  for (unsigned int i = 0; i < shown.GetNumberOfElements(); ++i)
  {
    vtkSMProxy* proxy = shown.GetAsProxy(i);
    if (proxy != nullptr && Number(proxy, "Visibility") != 0)
    {
      found.push_back(proxy);
    }
  }
  return found;
}

/// The names in a text, separated by semicolons.
inline std::vector<std::string> NamesIn(const char* text)
{
  std::istringstream from(text);
  std::vector<std::string> names;
  for (std::string name; std::getline(from, name, ';');)
  {
    names.push_back(name);
  }
  return names;
}

}
