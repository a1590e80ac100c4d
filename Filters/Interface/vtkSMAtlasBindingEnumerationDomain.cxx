#include "vtkSMAtlasBindingEnumerationDomain.h"

#include "vtkSMAtlasArrayListDomain.h"

#include <vtkObjectFactory.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>

#include <string>

vtkStandardNewMacro(vtkSMAtlasBindingEnumerationDomain);

namespace
{

/// The array of a method: that which fits best, if any, and whether one was chosen.
struct FittingArray
{
  std::string best;
  bool isChosen = false;

  explicit FittingArray(vtkSMProperty* property)
  {
    auto* domain =
      property == nullptr ? nullptr : property->FindDomain<vtkSMAtlasArrayListDomain>();
    if (domain != nullptr)
    {
      this->best = domain->DefaultArray();
      const char* value = vtkSMPropertyHelper(property).GetAsString();
      this->isChosen = value != nullptr && value[0] != '\0';
    }
  }
};

/// Whether the array that a property names is in its list. Anything is in an empty one.
bool IsThere(vtkSMProperty* property)
{
  auto* domain = property == nullptr ? nullptr : property->FindDomain<vtkSMArrayListDomain>();
  unsigned int ignored = 0;
  return domain != nullptr && domain->GetNumberOfStrings() > 0 &&
         domain->IsInDomain(vtkSMPropertyHelper(property).GetAsString(), ignored) != 0;
}

}

int vtkSMAtlasBindingEnumerationDomain::SetDefaultValues(
  vtkSMProperty* property, bool use_unchecked_values)
{
  enum Method
  {
    Array = 0,
    Weights = 3,
    Residues = 4
  };
  const FittingArray tokens(this->GetRequiredProperty("Tokens"));
  const FittingArray weights(this->GetRequiredProperty("Weights"));
  const bool hasTokens = tokens.isChosen || tokens.best.find("oken") != std::string::npos;
  const bool hasResidues = IsThere(this->GetRequiredProperty("Residues")) && !weights.isChosen;
  const bool hasWeights = weights.isChosen || !weights.best.empty();
  const Method method = hasTokens ? Array : hasResidues ? Residues : hasWeights ? Weights : Array;
  vtkSMPropertyHelper(property, use_unchecked_values).Set(static_cast<int>(method));
  return 1;
}
