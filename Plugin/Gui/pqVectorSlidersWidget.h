#pragma once

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class pqDoubleRangeWidget;

/// One slider per element of a vector property of fixed size, in place of ParaView's text fields.
/// Labels come from the property's hint ShowComponentLabels, ranges from its DoubleRangeDomain.
/// Numbers outside the range can be typed.
class pqVectorSlidersWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(QList<QVariant> values READ values WRITE setValues NOTIFY valuesChanged)

public:
  pqVectorSlidersWidget(vtkSMProxy* proxy, vtkSMProperty* property, QWidget* parent = nullptr);

  QList<QVariant> values() const;
  void setValues(const QList<QVariant>& values);

Q_SIGNALS:
  void valuesChanged();

private:
  QList<pqDoubleRangeWidget*> Sliders;
};
