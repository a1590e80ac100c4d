#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMProxyInitializationHelper.h>

/**
 * @class vtkSMAtlasSecondInputHelper
 * @brief Chooses the second input of a new filter, unless its creator has.
 *
 * In XML, among the hints of a filter whose second input is `Model`:
 *
 *     <InitializationHelper class="vtkSMAtlasSecondInputHelper" property="Model" />
 *
 * It is the nearest output upstream of the other inputs that is in the domains of the property, as
 * the model with which a recording was made; otherwise that of the latest source or filter; none
 * if there is none.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasSecondInputHelper
  : public vtkSMProxyInitializationHelper
{
public:
  static vtkSMAtlasSecondInputHelper* New();
  vtkTypeMacro(vtkSMAtlasSecondInputHelper, vtkSMProxyInitializationHelper);

  void PostInitializeProxy(
    vtkSMProxy* proxy, vtkPVXMLElement* xml, vtkMTimeType initializationTimeStamp) override;

protected:
  vtkSMAtlasSecondInputHelper() = default;
};
