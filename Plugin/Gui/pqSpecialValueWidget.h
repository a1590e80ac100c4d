#pragma once

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class QCheckBox;
class vtkPVXMLElement;
class vtkSMDomain;

/// Numbers with a check box for the one value that is not a number to the user, such as -1 for the
/// mean over heads: the hint <AtlasSpecial value="-1" text="Mean of heads" />. A property of
/// several elements has this value in all of them, and labels from the hint ShowComponentLabels.
/// While the box is ticked, the numbers are disabled and keep their values. They begin with the
/// attribute start, by default the next whole number. Their range is that of the property's domain
/// above the special value. Without an upper bound there is a field alone.
class pqSpecialValueWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(QVariant value READ value WRITE setValue NOTIFY valueChanged)

public:
  pqSpecialValueWidget(
    vtkSMProxy* proxy, vtkSMProperty* property, vtkPVXMLElement* hint, QWidget* parent = nullptr);

  /// A number or, of a property of several elements, a list.
  QVariant value() const;
  void setValue(const QVariant& value);

Q_SIGNALS:
  void valueChanged();

private:
  Q_SLOT void updateRange();
  Q_SLOT void finishEdit();

  template<typename Number>
  void addNumbers(const QList<QString>& labels);
  double startOf(int element) const;

  double Special = -1;
  double Start;       ///< not a number: the next whole number
  vtkSMDomain* Range; ///< null: any number
  QCheckBox* Box;
  QList<QWidget*> Numbers; ///< pqIntRangeWidget or pqDoubleRangeWidget
};
