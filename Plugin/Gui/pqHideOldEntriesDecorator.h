#pragma once

#include <pqPropertyWidgetDecorator.h>

/// Takes the old names of entries out of the combo box of an enumeration, whose domain is a
/// vtkSMAtlasEnumerationDomain: they are for scripts.
class pqHideOldEntriesDecorator : public pqPropertyWidgetDecorator
{
  Q_OBJECT

public:
  pqHideOldEntriesDecorator(vtkPVXMLElement* config, pqPropertyWidget* parent);
  ~pqHideOldEntriesDecorator() override;

private:
  Q_DISABLE_COPY(pqHideOldEntriesDecorator)
};
