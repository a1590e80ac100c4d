#ifndef pqVectorSlidersWidget_h
#define pqVectorSlidersWidget_h

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class pqDoubleRangeWidget;

/// A slider for each element of a vector property of fixed size, where ParaView has fields of text.
/// Their labels are those of the property's hint ShowComponentLabels, their ranges those of its
/// DoubleRangeDomain; numbers beyond can be typed.
class pqVectorSlidersWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(QList<QVariant> values READ values WRITE setValues NOTIFY valuesChanged)

public:
  pqVectorSlidersWidget(vtkSMProxy* proxy, vtkSMProperty* property, QWidget* parent = nullptr);
  ~pqVectorSlidersWidget() override;

  QList<QVariant> values() const;
  void setValues(const QList<QVariant>& values);

Q_SIGNALS:
  void valuesChanged();

private:
  Q_DISABLE_COPY(pqVectorSlidersWidget)

  QList<pqDoubleRangeWidget*> Sliders;
};

#endif
