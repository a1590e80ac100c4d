#include "vtkSMAtlasEnumerationDomain.h"

#include <vtkObjectFactory.h>
#include <vtkSMProperty.h>
#include <vtkSMProxy.h>
#include <vtkSMUncheckedPropertyHelper.h>

#include <algorithm>
#include <limits>

vtkStandardNewMacro(vtkSMAtlasEnumerationDomain);

int vtkSMAtlasEnumerationDomain::ReadXMLAttributes(vtkSMProperty* prop, vtkPVXMLElement* element)
{
  if (this->Superclass::ReadXMLAttributes(prop, element) == 0)
  {
    return 0;
  }
  for (unsigned int i = 0; i < this->GetNumberOfEntries(); ++i)
  {
    const char* info = this->GetInfoText(i);
    this->All.push_back(
      { this->GetEntryText(i), info != nullptr ? info : "", this->GetEntryValue(i) });
  }
  return 1;
}

void vtkSMAtlasEnumerationDomain::Update(vtkSMProperty* property)
{
  if (vtkSMProperty* input = this->GetRequiredProperty("Input"))
  {
    const vtkSMUncheckedPropertyHelper inputs(input);
    vtkSMProxy* connected = inputs.GetNumberOfElements() > 0 ? inputs.GetAsProxy() : nullptr;
    if (this->Input != connected)
    {
      this->Input = connected;
      this->List(std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
    }
  }
  vtkSMProperty* range = this->GetRequiredProperty("Range");
  if (range != nullptr && range == property)
  {
    const vtkSMPropertyHelper ends(range);
    this->List(ends.GetAsInt(0), ends.GetAsInt(1));
  }
}

/// Lists the entries with these values, unless they are listed already.
void vtkSMAtlasEnumerationDomain::List(int first, int last)
{
  std::vector<Entry> listed;
  for (const Entry& entry : this->All)
  {
    if (entry.value >= first && entry.value <= last)
    {
      listed.push_back(entry);
    }
  }
  unsigned int same = 0;
  while (same < std::min<std::size_t>(listed.size(), this->GetNumberOfEntries()) &&
         listed[same].value == this->GetEntryValue(same))
  {
    ++same;
  }
  if (same == listed.size() && same == this->GetNumberOfEntries())
  {
    return;
  }
  const DeferDomainModifiedEvents defer(this);
  this->RemoveAllEntries();
  for (const Entry& entry : listed)
  {
    this->AddEntry(
      entry.text.c_str(), entry.value, entry.info.empty() ? nullptr : entry.info.c_str());
  }
  this->DomainModified();
}
