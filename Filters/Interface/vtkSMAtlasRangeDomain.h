#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMIntRangeDomain.h>

/**
 * @class vtkSMAtlasRangeDomain
 * @brief A range of integers from the input that keeps the default of the XML.
 *
 * ParaView's own domain sets the property to the minimum, middle or maximum of a range that becomes
 * known with the input. Here the range only limits the slider, so that it may begin with a value
 * that means all, such as -1, while the default is 0.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasRangeDomain : public vtkSMIntRangeDomain
{
public:
  static vtkSMAtlasRangeDomain* New();
  vtkTypeMacro(vtkSMAtlasRangeDomain, vtkSMIntRangeDomain);

  int SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values) override;

protected:
  vtkSMAtlasRangeDomain() = default;
};
