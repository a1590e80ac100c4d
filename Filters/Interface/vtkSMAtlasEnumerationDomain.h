#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMEnumerationDomain.h>
#include <vtkWeakPointer.h>

#include <string>
#include <vector>

class vtkSMProxy;

/**
 * @class vtkSMAtlasEnumerationDomain
 * @brief An enumeration of which the input has a part.
 *
 * The entries are those of the XML whose value is in the range of a required property with the
 * function Range: the first and the last one. A required property with the function Input brings
 * all of them back when another input is connected, until the range of that is known.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasEnumerationDomain : public vtkSMEnumerationDomain
{
public:
  static vtkSMAtlasEnumerationDomain* New();
  vtkTypeMacro(vtkSMAtlasEnumerationDomain, vtkSMEnumerationDomain);

  void Update(vtkSMProperty* property) override;

protected:
  vtkSMAtlasEnumerationDomain() = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;

private:
  struct Entry
  {
    std::string text;
    std::string info;
    int value = 0;
  };

  void List(int first, int last);

  std::vector<Entry> All;
  vtkWeakPointer<vtkSMProxy> Input;
};
