#include "pqVectorSlidersWidget.h"

#include "PanelWidth.h"
#include "PropertyHints.h"

#include <pqDoubleRangeWidget.h>

#include <vtkSMDoubleRangeDomain.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>

#include <QSignalBlocker>
#include <QVBoxLayout>

pqVectorSlidersWidget::pqVectorSlidersWidget(
  vtkSMProxy* smProxy, vtkSMProperty* smProperty, QWidget* parentWidget)
  : pqPropertyWidget(smProxy, parentWidget)
{
  this->setShowLabel(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  const QList<QString> labels = ComponentLabels(smProperty);
  auto* range =
    vtkSMDoubleRangeDomain::SafeDownCast(smProperty->FindDomain("vtkSMDoubleRangeDomain"));
  const auto elements = static_cast<int>(vtkSMPropertyHelper(smProperty).GetNumberOfElements());
  for (int i = 0; i < elements; ++i)
  {
    auto* slider = new pqDoubleRangeWidget(this);
    slider->setObjectName(QString("Slider%1").arg(i));
    if (range != nullptr && range->GetMinimumExists(static_cast<unsigned int>(i)) &&
        range->GetMaximumExists(static_cast<unsigned int>(i)))
    {
      slider->setMinimum(range->GetMinimum(static_cast<unsigned int>(i)));
      slider->setMaximum(range->GetMaximum(static_cast<unsigned int>(i)));
    }
    PutSliderBelow(slider, labels.value(i, QString::number(i)));
    layout->addWidget(slider);
    this->Sliders.push_back(slider);
    QObject::connect(
      slider, &pqDoubleRangeWidget::valueChanged, this, &pqVectorSlidersWidget::valuesChanged);
    QObject::connect(
      slider, &pqDoubleRangeWidget::valueEdited, this, &pqVectorSlidersWidget::changeFinished);
  }
  this->addPropertyLink(this, "values", SIGNAL(valuesChanged()), smProperty);
}

QList<QVariant> pqVectorSlidersWidget::values() const
{
  QList<QVariant> values;
  for (const pqDoubleRangeWidget* slider : this->Sliders)
  {
    values.push_back(slider->value());
  }
  return values;
}

void pqVectorSlidersWidget::setValues(const QList<QVariant>& values)
{
  if (values == this->values())
  {
    return;
  }
  for (int i = 0; i < this->Sliders.size() && i < values.size(); ++i)
  {
    const QSignalBlocker blocker(this->Sliders[i]);
    this->Sliders[i]->setValue(values[i].toDouble());
  }
  Q_EMIT this->valuesChanged();
}
