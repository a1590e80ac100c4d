#pragma once

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class QTreeWidget;
class vtkPVXMLElement;
class vtkSMIntRangeDomain;

/// A list with a check box for each number of the property's range, and for those outside that a
/// script has set: the hint <AtlasSpecial value="-1" text="Mean of heads" /> of a property that
/// repeats its command. The special value, where it is in the range, is the row of this text.
class pqNumberListWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(QList<QVariant> values READ values WRITE setValues NOTIFY valuesChanged)

public:
  pqNumberListWidget(
    vtkSMProxy* proxy, vtkSMProperty* property, vtkPVXMLElement* hint, QWidget* parent = nullptr);

  QList<QVariant> values() const;
  void setValues(const QList<QVariant>& values);

Q_SIGNALS:
  void valuesChanged();

private:
  Q_SLOT void updateRange();
  void showNumbers(const QList<QVariant>& ticked);

  int Special = -1;
  QString Text;               ///< of the special value
  vtkSMIntRangeDomain* Range; ///< the numbers to choose
  QTreeWidget* List;
};
