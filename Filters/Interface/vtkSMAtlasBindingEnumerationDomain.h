#pragma once

#include "AttentionAtlasInterfaceModule.h"

#include <vtkSMEnumerationDomain.h>

/**
 * @class vtkSMAtlasBindingEnumerationDomain
 * @brief The methods of Bind Tokens, of which the default is one that fits the input.
 *
 * Required properties with the functions Tokens, Weights and Residues name the arrays of a method.
 * A method whose array was chosen is the default. Otherwise it is Array (0) for an array with
 * "token" in its name, Residues (4) for a dataset that has the array of residues, Weights (3) for
 * an array of weights, and Array for others.
 */
class ATTENTIONATLASINTERFACE_EXPORT vtkSMAtlasBindingEnumerationDomain
  : public vtkSMEnumerationDomain
{
public:
  static vtkSMAtlasBindingEnumerationDomain* New();
  vtkTypeMacro(vtkSMAtlasBindingEnumerationDomain, vtkSMEnumerationDomain);

  int SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values) override;

protected:
  vtkSMAtlasBindingEnumerationDomain() = default;
};
