#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMArrayListDomain.h>

#include <string>

/**
 * @class vtkSMAtlasArrayListDomain
 * @brief A list of arrays that keeps the default of the XML until the arrays are known.
 *
 * ParaView 5.11 would take the first of the five default values for the array's name. It also
 * saved states and scripts in which the numbers before the name are names or missing. It read them
 * as zeros; ParaView 6.1 would not create the filter. The domain makes them zeros.
 *
 * With an attribute `fits` it offers the arrays that fit the recording of the property Recording.
 * fits="tokens": numbers of tokens, which are integers from -1 to the last token; of arrays of
 * floats those that have "token" in their name. fits="weights": an array of floats with at least
 * two components, and not more than there are tokens. The default is then the first one with
 * "token", or "slice" or "weight", in its name; else, of tokens, the first one.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasArrayListDomain : public vtkSMArrayListDomain
{
public:
  static vtkSMAtlasArrayListDomain* New();
  vtkTypeMacro(vtkSMAtlasArrayListDomain, vtkSMArrayListDomain);

  int SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values) override;

  /// With `fits`, the name of the array that is the default, or empty.
  std::string DefaultArray();

protected:
  vtkSMAtlasArrayListDomain() = default;

  int ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element) override;
  bool IsFilteredArray(vtkPVDataInformation* info, int association, const char* arrayName) override;

private:
  std::string Fits;

  double CountTokens();
  void ReplaceOldValues(vtkObject* caller, unsigned long event, void* data);
};
