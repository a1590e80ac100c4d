#ifndef vtkSMAtlasRenamedPropertyDomain_h
#define vtkSMAtlasRenamedPropertyDomain_h

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMDomain.h>

#include <vtkWeakPointer.h>

class vtkSMProperty;

/**
 * @class vtkSMAtlasRenamedPropertyDomain
 * @brief Makes a property the old name of another one, for scripts and states of the previous
 * version.
 *
 * A value that is set under either name can be read under both. The old name warns, once per proxy.
 * States contain both in any order, and states of the previous version only the old one. In XML,
 * after the property with the new name, with the same default value and without a command:
 *
 *     <StringVectorProperty name="TokenTypes" number_of_elements="1" panel_visibility="never">
 *       <AtlasRenamedPropertyDomain name="renamed">
 *         <RequiredProperties>
 *           <Property function="New" name="Segments" />
 *         </RequiredProperties>
 *       </AtlasRenamedPropertyDomain>
 *       <Documentation>The old name of Segments.</Documentation>
 *     </StringVectorProperty>
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasRenamedPropertyDomain : public vtkSMDomain
{
public:
  static vtkSMAtlasRenamedPropertyDomain* New();
  vtkTypeMacro(vtkSMAtlasRenamedPropertyDomain, vtkSMDomain);
  void PrintSelf(ostream& os, vtkIndent indent) override;

protected:
  vtkSMAtlasRenamedPropertyDomain() = default;
  ~vtkSMAtlasRenamedPropertyDomain() override = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;

private:
  vtkSMAtlasRenamedPropertyDomain(const vtkSMAtlasRenamedPropertyDomain&) = delete;
  void operator=(const vtkSMAtlasRenamedPropertyDomain&) = delete;

  void Follow(vtkObject* caller, unsigned long event, void* data);
  void TakeOldValue(vtkObject* caller, unsigned long event, void* data);

  vtkWeakPointer<vtkSMProperty> Old;
  vtkWeakPointer<vtkSMProperty> Current;
  bool IsReady = false;    ///< the old property has received its default value
  bool IsOldNewer = false; ///< the old value was set after the new one
  bool HasWarned = false;
};

#endif
