#ifndef vtkSMAtlasEnumerationDomain_h
#define vtkSMAtlasEnumerationDomain_h

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMEnumerationDomain.h>

#include <map>

/**
 * @class vtkSMAtlasEnumerationDomain
 * @brief An enumeration in which some entries are old names of others.
 *
 * If an old script sets an old name, the property takes the value of the new one, with a warning.
 * In XML, the old entry needs a value that no other entry has:
 *
 *     <AtlasEnumerationDomain name="enum">
 *       <Entry text="Auto" value="0" />
 *       <Entry text="FromFile" value="-1" new_text="Auto" />
 *     </AtlasEnumerationDomain>
 *
 * The hint `<PropertyWidgetDecorator type="hide_old_entries" />` hides old names in the panel.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasEnumerationDomain : public vtkSMEnumerationDomain
{
public:
  static vtkSMAtlasEnumerationDomain* New();
  vtkTypeMacro(vtkSMAtlasEnumerationDomain, vtkSMEnumerationDomain);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  /**
   * Whether an entry, counted from 0, is an old name.
   */
  bool IsOldEntry(unsigned int index);

protected:
  vtkSMAtlasEnumerationDomain() = default;
  ~vtkSMAtlasEnumerationDomain() override = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;

private:
  vtkSMAtlasEnumerationDomain(const vtkSMAtlasEnumerationDomain&) = delete;
  void operator=(const vtkSMAtlasEnumerationDomain&) = delete;

  void ReplaceOldValues(vtkObject* caller, unsigned long event, void* data);

  std::map<int, int> NewValues; ///< by old value
};

#endif
