#include "pqVectorSlidersWidget.h"

#include "PropertyHints.h"

#include <pqDoubleRangeWidget.h>

#include <vtkSMDoubleRangeDomain.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>

#include <QGridLayout>
#include <QLabel>
#include <QSignalBlocker>

pqVectorSlidersWidget::pqVectorSlidersWidget(
  vtkSMProxy* smProxy, vtkSMProperty* smProperty, QWidget* parentWidget)
  : pqPropertyWidget(smProxy, parentWidget)
{
  this->setShowLabel(false);
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setColumnStretch(1, 1);
  const QList<QString> labels = ComponentLabels(smProperty);
  auto* range =
    vtkSMDoubleRangeDomain::SafeDownCast(smProperty->FindDomain("vtkSMDoubleRangeDomain"));
  const auto elements = static_cast<int>(vtkSMPropertyHelper(smProperty).GetNumberOfElements());
  for (int i = 0; i < elements; ++i)
  {
    layout->addWidget(new QLabel(labels.value(i, QString::number(i)), this), i, 0);
    auto* slider = new pqDoubleRangeWidget(this);
    slider->setObjectName(QString("Slider%1").arg(i));
    if (range != nullptr && range->GetMinimumExists(static_cast<unsigned int>(i)) &&
        range->GetMaximumExists(static_cast<unsigned int>(i)))
    {
      slider->setMinimum(range->GetMinimum(static_cast<unsigned int>(i)));
      slider->setMaximum(range->GetMaximum(static_cast<unsigned int>(i)));
    }
    layout->addWidget(slider, i, 1);
    this->Sliders.push_back(slider);
    QObject::connect(
      slider, &pqDoubleRangeWidget::valueChanged, this, &pqVectorSlidersWidget::valuesChanged);
    QObject::connect(
      slider, &pqDoubleRangeWidget::valueEdited, this, &pqVectorSlidersWidget::changeFinished);
  }
  this->addPropertyLink(this, "values", SIGNAL(valuesChanged()), smProperty);
}

pqVectorSlidersWidget::~pqVectorSlidersWidget() = default;

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
