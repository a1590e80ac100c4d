#pragma once

#include "NestedElements.h"

#include <vtkPVXMLElement.h>
#include <vtkSMProperty.h>

#include <QList>
#include <QString>

/// A hint of a property or proxy, or null.
template<class Item>
vtkPVXMLElement* FindHint(Item* item, const char* name)
{
  vtkPVXMLElement* hints = item->GetHints();
  return hints != nullptr ? hints->FindNestedElementByName(name) : nullptr;
}

/// The labels in the hint ShowComponentLabels, in order of elements.
inline QList<QString> ComponentLabels(vtkSMProperty* property)
{
  QList<QString> labels;
  vtkPVXMLElement* hint = FindHint(property, "ShowComponentLabels");
  for (vtkPVXMLElement* element : AttentionAtlas::ElementsIn(hint))
  {
    labels.push_back(element->GetAttributeOrEmpty("label"));
  }
  return labels;
}
