#ifndef vtkSMAtlasArrayListDomain_h
#define vtkSMAtlasArrayListDomain_h

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMArrayListDomain.h>

/**
 * @class vtkSMAtlasArrayListDomain
 * @brief A list of arrays that keeps the default of the XML until the arrays are known.
 *
 * ParaView 5.11 would take the first of the five default values for the array's name.
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

private:
  vtkSMAtlasArrayListDomain(const vtkSMAtlasArrayListDomain&) = delete;
  void operator=(const vtkSMAtlasArrayListDomain&) = delete;
};

#endif
