#pragma once

#include <pqPropertyWidgetDecorator.h>

/// Hides the old names of entries, which are for scripts, in the combo box of an enumeration. Its
/// domain must be a vtkSMAtlasEnumerationDomain.
class pqHideOldEntriesDecorator : public pqPropertyWidgetDecorator
{
  Q_OBJECT

public:
  pqHideOldEntriesDecorator(vtkPVXMLElement* config, pqPropertyWidget* parent);
  ~pqHideOldEntriesDecorator() override;

private:
  Q_DISABLE_COPY(pqHideOldEntriesDecorator)
};
