#pragma once

#include <vtkPVXMLElement.h>
#include <vtkSMProxy.h>

#include <QString>

/// Whether a proxy is of this plugin: its menu says so, or a hint, where it is in no menu.
inline bool IsOurs(vtkSMProxy* proxy)
{
  vtkPVXMLElement* hints = proxy->GetHints();
  if (hints == nullptr)
  {
    return false;
  }
  vtkPVXMLElement* menu = hints->FindNestedElementByName("ShowInMenu");
  return (menu != nullptr &&
           QString(menu->GetAttributeOrEmpty("category")).startsWith("Attention Atlas")) ||
         hints->FindNestedElementByName("AtlasPanel") != nullptr;
}
