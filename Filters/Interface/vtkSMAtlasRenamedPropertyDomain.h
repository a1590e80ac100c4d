#ifndef vtkSMAtlasRenamedPropertyDomain_h
#define vtkSMAtlasRenamedPropertyDomain_h

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMDomain.h>

#include <vtkWeakPointer.h>

class vtkSMProperty;

/**
 * @class vtkSMAtlasRenamedPropertyDomain
 * @brief Makes a property the old name of another one, for scripts and states of the last version.
 *
 * What is set by either name is read by both; the old one warns, once for each proxy. States hold
 * both, in any order, and those of the last version only the old one. In XML,
 * behind the property of the new name, with the same default value and without a command:
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
  bool IsReady = false;    ///< the old property has got its default value
  bool IsOldNewer = false; ///< than the value of the new property
  bool HasWarned = false;
};

#endif
