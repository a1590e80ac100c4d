#pragma once

#include "PropertyHints.h"

#include <vtkSMProxy.h>

#include <QString>

/// Whether a proxy is of this plugin: its menu says so, or a hint, where it is in no menu.
inline bool IsOurs(vtkSMProxy* proxy)
{
  vtkPVXMLElement* menu = FindHint(proxy, "ShowInMenu");
  return (menu != nullptr &&
           QString(menu->GetAttributeOrEmpty("category")).startsWith("Attention Atlas")) ||
         FindHint(proxy, "AtlasPanel") != nullptr;
}
