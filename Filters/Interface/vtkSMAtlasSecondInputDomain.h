#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMDomain.h>

#include <string>

/**
 * @class vtkSMAtlasSecondInputDomain
 * @brief Offers a filter only while there is an input for another of its ports.
 *
 * In XML, inside the first InputProperty, where `Model` is the second one:
 *
 *     <AtlasSecondInputDomain name="second" property="Model" />
 *
 * vtkSMAtlasSecondInputHelper chooses the second input.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasSecondInputDomain : public vtkSMDomain
{
public:
  static vtkSMAtlasSecondInputDomain* New();
  vtkTypeMacro(vtkSMAtlasSecondInputDomain, vtkSMDomain);

  /// IN_DOMAIN if an output of a source or filter is in the domains of the second input.
  int IsInDomain(vtkSMProperty* property) override;

protected:
  vtkSMAtlasSecondInputDomain() = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;

private:
  std::string Second;
};
