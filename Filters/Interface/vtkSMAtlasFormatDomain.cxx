#include "vtkSMAtlasFormatDomain.h"

#include <vtkDataObject.h>
#include <vtkObjectFactory.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkPVXMLElement.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMUncheckedPropertyHelper.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

namespace
{

/// The names in a list that semicolons separate.
std::vector<std::string> NamesIn(const char* list)
{
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ';');)
  {
    names.push_back(name);
  }
  return names;
}

bool HasArray(vtkPVDataInformation* data, const std::string& name)
{
  constexpr std::array<int, 3> Places = { vtkDataObject::POINT, vtkDataObject::CELL,
    vtkDataObject::ROW };
  return std::any_of(Places.begin(), Places.end(),
    [&](int place) { return data->GetArrayInformation(name.c_str(), place) != nullptr; });
}

}

vtkStandardNewMacro(vtkSMAtlasFormatDomain);

int vtkSMAtlasFormatDomain::ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element)
{
  std::istringstream formats(element->GetAttributeOrEmpty("formats"));
  this->Formats.assign(std::istream_iterator<std::string>(formats), {});
  this->Fields = NamesIn(element->GetAttributeOrEmpty("fields"));
  this->Arrays = NamesIn(element->GetAttributeOrEmpty("arrays"));
  this->AcceptsAbsent = std::string(element->GetAttributeOrEmpty("absent")) == "accepted";
  return this->Superclass::ReadXMLAttributes(prop, element);
}

bool vtkSMAtlasFormatDomain::Fits(vtkPVDataInformation* data) const
{
  if (data == nullptr || data->IsNull())
  {
    return false;
  }
  const bool hasField =
    this->Fields.empty() ||
    std::any_of(this->Fields.begin(), this->Fields.end(), [data](const std::string& name)
      { return data->GetArrayInformation(name.c_str(), vtkDataObject::FIELD) != nullptr; });
  vtkPVArrayInformation* array = data->GetArrayInformation("Format", vtkDataObject::FIELD);
  bool hasFormat = this->Formats.empty() || (array == nullptr && this->AcceptsAbsent);
  // Each rank adds a value, also if all pieces have the same format.
  for (int i = 0; array != nullptr && i < array->GetNumberOfStringValues(); ++i)
  {
    const auto end = this->Formats.end();
    hasFormat = hasFormat || std::find(this->Formats.begin(), end, array->GetStringValue(i)) != end;
  }
  return hasField && hasFormat &&
         std::all_of(this->Arrays.begin(), this->Arrays.end(),
           [data](const std::string& name) { return HasArray(data, name); });
}

int vtkSMAtlasFormatDomain::IsInDomain(vtkSMProperty* property)
{
  const vtkSMUncheckedPropertyHelper inputs(property);
  const unsigned int count = inputs.GetNumberOfElements();
  for (unsigned int i = 0; i < count; ++i)
  {
    auto* input = vtkSMSourceProxy::SafeDownCast(inputs.GetAsProxy(i));
    if (input == nullptr)
    {
      return NOT_IN_DOMAIN;
    }
    input->CreateOutputPorts();
    if (!this->Fits(input->GetDataInformation(inputs.GetOutputPort(i))))
    {
      return NOT_IN_DOMAIN;
    }
  }
  return count > 0 ? IN_DOMAIN : NOT_IN_DOMAIN;
}
