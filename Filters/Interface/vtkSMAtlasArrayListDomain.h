#ifndef vtkSMAtlasArrayListDomain_h
#define vtkSMAtlasArrayListDomain_h

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMArrayListDomain.h>

/**
 * @class vtkSMAtlasArrayListDomain
 * @brief A list of arrays that keeps the default of the XML until the arrays are known.
 *
 * ParaView 5.11 would take the first of the five default values for the array's name. It also
 * saved states and scripts in which the numbers before the name are names or missing. It read them
 * as zeros; ParaView 6.1 would not create the filter. The domain makes them zeros.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasArrayListDomain : public vtkSMArrayListDomain
{
public:
  static vtkSMAtlasArrayListDomain* New();
  vtkTypeMacro(vtkSMAtlasArrayListDomain, vtkSMArrayListDomain);

  int SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values) override;

protected:
  vtkSMAtlasArrayListDomain() = default;
  ~vtkSMAtlasArrayListDomain() override = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;

private:
  void ReplaceOldValues(vtkObject* caller, unsigned long event, void* data);
};

#endif
