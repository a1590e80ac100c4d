#include "vtkSMAtlasArrayListDomain.h"

#include <vtkCommand.h>
#include <vtkDataObject.h>
#include <vtkObjectFactory.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSourceProxy.h>
#include <vtkType.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

namespace
{

/// Of the values that choose an array, the last is its name; the others are numbers.
constexpr unsigned int Numbers = 4;

bool IsNumber(const std::string& text)
{
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a name has a word, in any case.
bool HasWord(const std::string& name, const std::string& word)
{
  return std::search(name.begin(), name.end(), word.begin(), word.end(), [](char a, char b)
           { return std::tolower(static_cast<unsigned char>(a)) == b; }) != name.end();
}

}

vtkStandardNewMacro(vtkSMAtlasArrayListDomain);

int vtkSMAtlasArrayListDomain::ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element)
{
  if (this->Superclass::ReadXMLAttributes(prop, element) == 0)
  {
    return 0;
  }
  this->Fits = element->GetAttributeOrEmpty("fits");
  prop->AddObserver(vtkCommand::ModifiedEvent, this, &vtkSMAtlasArrayListDomain::ReplaceOldValues);
  return 1;
}

int vtkSMAtlasArrayListDomain::SetDefaultValues(vtkSMProperty* property, bool use_unchecked_values)
{
  if (!this->Fits.empty())
  {
    vtkSMPropertyHelper(property, use_unchecked_values).Set(this->DefaultArray().c_str());
    return 1;
  }
  return this->GetNumberOfStrings() > 0
           ? this->Superclass::SetDefaultValues(property, use_unchecked_values)
           : 0;
}

std::string vtkSMAtlasArrayListDomain::DefaultArray()
{
  const bool isOfTokens = this->Fits == "tokens";
  for (unsigned int i = 0; i < this->GetNumberOfStrings(); ++i)
  {
    const std::string name = this->GetString(i);
    if (isOfTokens ? HasWord(name, "token") : HasWord(name, "slice") || HasWord(name, "weight"))
    {
      return name;
    }
  }
  return isOfTokens && this->GetNumberOfStrings() > 0 ? this->GetString(0) : "";
}

/// The tokens of all sequences of the recording; many if they are not known.
double vtkSMAtlasArrayListDomain::CountTokens()
{
  vtkSMProperty* property = this->GetProperty();
  vtkSMProxy* filter = property == nullptr ? nullptr : property->GetParent();
  vtkSMProperty* input = filter == nullptr ? nullptr : filter->GetProperty("Recording");
  double range[2] = { 0, std::numeric_limits<double>::max() };
  if (input != nullptr && vtkSMPropertyHelper(input).GetNumberOfElements() > 0)
  {
    const vtkSMPropertyHelper helper(input);
    auto* recording = vtkSMSourceProxy::SafeDownCast(helper.GetAsProxy());
    vtkPVDataInformation* data =
      recording == nullptr ? nullptr : recording->GetDataInformation(helper.GetOutputPort());
    vtkPVArrayInformation* offsets =
      data == nullptr ? nullptr
                      : data->GetArrayInformation("Sequence Offsets", vtkDataObject::FIELD);
    if (offsets != nullptr)
    {
      offsets->GetComponentRange(0, range);
    }
  }
  return range[1];
}

bool vtkSMAtlasArrayListDomain::IsFilteredArray(
  vtkPVDataInformation* info, int association, const char* arrayName)
{
  if (this->Superclass::IsFilteredArray(info, association, arrayName))
  {
    return true;
  }
  vtkPVArrayInformation* array =
    this->Fits.empty() ? nullptr : info->GetArrayInformation(arrayName, association);
  if (array == nullptr)
  {
    return false;
  }
  const int type = array->GetDataType();
  const bool isFloat = type == VTK_FLOAT || type == VTK_DOUBLE;
  const int components = array->GetNumberOfComponents();
  const double tokens = this->CountTokens();
  if (this->Fits == "weights")
  {
    return !isFloat || components < 2 || components > tokens;
  }
  double range[2] = { 0, 0 };
  array->GetComponentRange(0, range);
  return components != 1 || range[0] < -1 || range[1] >= tokens || type == VTK_STRING ||
         (isFloat && !HasWord(arrayName, "token"));
}

void vtkSMAtlasArrayListDomain::ReplaceOldValues(vtkObject* caller, unsigned long, void*)
{
  vtkSMPropertyHelper values(vtkSMProperty::SafeDownCast(caller));
  if (values.GetNumberOfElements() != Numbers + 1)
  {
    return;
  }
  for (unsigned int i = 0; i < Numbers; ++i)
  {
    if (!IsNumber(values.GetAsString(i)))
    {
      values.Set(i, "0");
    }
  }
}
