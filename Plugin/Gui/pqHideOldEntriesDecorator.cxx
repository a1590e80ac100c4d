#include "pqHideOldEntriesDecorator.h"

#include "vtkSMAtlasEnumerationDomain.h"

#include <pqPropertyWidget.h>
#include <vtkSMProperty.h>

#include <QComboBox>

pqHideOldEntriesDecorator::pqHideOldEntriesDecorator(
  vtkPVXMLElement* config, pqPropertyWidget* parentObject)
  : pqPropertyWidgetDecorator(config, parentObject)
{
  auto* domain = vtkSMAtlasEnumerationDomain::SafeDownCast(
    parentObject->property()->FindDomain("vtkSMAtlasEnumerationDomain"));
  auto* entries = parentObject->findChild<QComboBox*>();
  if (domain == nullptr || entries == nullptr)
  {
    return;
  }
  for (unsigned int i = 0; i < domain->GetNumberOfEntries(); ++i)
  {
    const int row = entries->findData(QString(domain->GetEntryText(i)));
    if (domain->IsOldEntry(i) && row >= 0)
    {
      entries->removeItem(row);
    }
  }
}

pqHideOldEntriesDecorator::~pqHideOldEntriesDecorator() = default;
