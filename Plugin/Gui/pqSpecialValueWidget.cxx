#include "pqSpecialValueWidget.h"

#include <pqCoreUtilities.h>
#include <pqIntRangeWidget.h>

#include <vtkCommand.h>
#include <vtkPVXMLElement.h>
#include <vtkSMIntRangeDomain.h>
#include <vtkSMProperty.h>

#include <QCheckBox>
#include <QHBoxLayout>
#include <QSlider>

#include <algorithm>

pqSpecialValueWidget::pqSpecialValueWidget(
  vtkSMProxy* smProxy, vtkSMProperty* smProperty, vtkPVXMLElement* hint, QWidget* parentWidget)
  : pqPropertyWidget(smProxy, parentWidget)
  , Range(vtkSMIntRangeDomain::SafeDownCast(smProperty->FindDomain("vtkSMIntRangeDomain")))
  , Box(new QCheckBox(hint->GetAttributeOrEmpty("text"), this))
  , Number(new pqIntRangeWidget(this))
{
  this->setChangeAvailableAsChangeFinished(false);
  hint->GetScalarAttribute("value", &this->Special);
  this->Box->setObjectName("CheckBox");
  this->Number->setObjectName("IntRangeWidget");
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(this->Number, 1);
  layout->addWidget(this->Box);

  this->updateRange();
  this->Number->setValue(this->Number->minimum());
  if (this->Range != nullptr)
  {
    pqCoreUtilities::connect(
      this->Range, vtkCommand::DomainModifiedEvent, this, SLOT(updateRange()));
  }
  QObject::connect(this->Box, &QCheckBox::toggled, this,
    [this](bool ticked)
    {
      this->Number->setEnabled(!ticked);
      Q_EMIT this->valueChanged();
    });
  QObject::connect(this->Box, &QCheckBox::clicked, this, &pqSpecialValueWidget::changeFinished);
  QObject::connect(
    this->Number, &pqIntRangeWidget::valueChanged, this, &pqSpecialValueWidget::valueChanged);
  QObject::connect(this->Number, &pqIntRangeWidget::valueEdited, this,
    [this](int number)
    {
      if (number == this->Special)
      {
        this->Box->setChecked(true);
        this->Number->setValue(this->Number->minimum()); // for when the box is unticked
      }
      Q_EMIT this->changeFinished();
    });
  this->addPropertyLink(this, "value", SIGNAL(valueChanged()), smProperty);
}

pqSpecialValueWidget::~pqSpecialValueWidget() = default;

int pqSpecialValueWidget::value() const
{
  return this->Box->isChecked() ? this->Special : this->Number->value();
}

void pqSpecialValueWidget::setValue(int value)
{
  if (value != this->Special)
  {
    this->Number->setValue(value);
  }
  this->Box->setChecked(value == this->Special);
}

void pqSpecialValueWidget::updateRange()
{
  const bool bounded = this->Range != nullptr && this->Range->GetMaximumExists(0) != 0;
  const int least = this->Range != nullptr && this->Range->GetMinimumExists(0) != 0
                      ? this->Range->GetMinimum(0)
                      : this->Special;
  this->Number->setMinimum(std::max(least, this->Special + 1));
  if (bounded)
  {
    this->Number->setMaximum(std::max(this->Range->GetMaximum(0), this->Number->minimum()));
  }
  this->Number->findChild<QSlider*>("Slider")->setVisible(bounded);
}
