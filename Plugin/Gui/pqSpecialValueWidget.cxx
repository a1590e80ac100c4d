#include "pqSpecialValueWidget.h"

#include "PropertyHints.h"

#include <pqCoreUtilities.h>
#include <pqDoubleRangeWidget.h>
#include <pqIntRangeWidget.h>

#include <vtkCommand.h>
#include <vtkPVXMLElement.h>
#include <vtkSMDoubleRangeDomain.h>
#include <vtkSMIntRangeDomain.h>
#include <vtkSMIntVectorProperty.h>
#include <vtkSMVectorProperty.h>

#include <QCheckBox>
#include <QGridLayout>
#include <QLabel>
#include <QSlider>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace
{

struct Limits
{
  std::optional<double> Least;
  std::optional<double> Most;
};

template<typename Domain>
Limits LimitsIn(Domain* domain, unsigned int element)
{
  Limits found;
  if (domain != nullptr && domain->GetMinimumExists(element) != 0)
  {
    found.Least = domain->GetMinimum(element);
  }
  if (domain != nullptr && domain->GetMaximumExists(element) != 0)
  {
    found.Most = domain->GetMaximum(element);
  }
  return found;
}

Limits LimitsOf(vtkSMDomain* domain, int element)
{
  const auto index = static_cast<unsigned int>(element);
  auto* numbers = vtkSMDoubleRangeDomain::SafeDownCast(domain);
  return numbers != nullptr ? LimitsIn(numbers, index)
                            : LimitsIn(vtkSMIntRangeDomain::SafeDownCast(domain), index);
}

}

pqSpecialValueWidget::pqSpecialValueWidget(
  vtkSMProxy* smProxy, vtkSMProperty* smProperty, vtkPVXMLElement* hint, QWidget* parentWidget)
  : pqPropertyWidget(smProxy, parentWidget)
  , Start(std::numeric_limits<double>::quiet_NaN())
  , Box(new QCheckBox(hint->GetAttributeOrEmpty("text"), this))
{
  this->setChangeAvailableAsChangeFinished(false);
  hint->GetScalarAttribute("value", &this->Special);
  hint->GetScalarAttribute("start", &this->Start);
  this->Box->setObjectName("CheckBox");
  new QGridLayout(this);
  this->layout()->setContentsMargins(0, 0, 0, 0);

  const auto elements =
    static_cast<int>(vtkSMVectorProperty::SafeDownCast(smProperty)->GetNumberOfElements());
  QList<QString> labels = ComponentLabels(smProperty);
  labels.reserve(elements);
  while (labels.size() < elements)
  {
    labels.push_back({});
  }
  if (vtkSMIntVectorProperty::SafeDownCast(smProperty) != nullptr)
  {
    this->Range = smProperty->FindDomain("vtkSMIntRangeDomain");
    this->addNumbers<pqIntRangeWidget>(labels);
  }
  else
  {
    this->Range = smProperty->FindDomain("vtkSMDoubleRangeDomain");
    this->addNumbers<pqDoubleRangeWidget>(labels);
  }
  this->updateRange();
  for (int i = 0; i < elements; ++i)
  {
    this->Numbers[i]->setProperty("value", this->startOf(i));
  }
  if (this->Range != nullptr)
  {
    pqCoreUtilities::connect(
      this->Range, vtkCommand::DomainModifiedEvent, this, SLOT(updateRange()));
  }
  QObject::connect(this->Box, &QCheckBox::toggled, this,
    [this](bool ticked)
    {
      for (QWidget* number : this->Numbers)
      {
        number->setEnabled(!ticked);
      }
      Q_EMIT this->valueChanged();
    });
  QObject::connect(this->Box, &QCheckBox::clicked, this, &pqSpecialValueWidget::changeFinished);
  this->addPropertyLink(this, "value", SIGNAL(valueChanged()), smProperty);
}

/// The box is below the numbers.
template<typename Number>
void pqSpecialValueWidget::addNumbers(const QList<QString>& labels)
{
  auto* grid = static_cast<QGridLayout*>(this->layout());
  const bool several = labels.size() > 1;
  for (int element = 0; element < labels.size(); ++element)
  {
    auto* number = new Number(this);
    const QString name = Number::staticMetaObject.className() + 2; // without pq
    number->setObjectName(several ? name + QString::number(element) : name);
    int column = several ? 2 * element : 0;
    if (!labels[element].isEmpty())
    {
      grid->addWidget(new QLabel(labels[element], this), 0, column);
      ++column;
    }
    grid->addWidget(number, 0, column);
    grid->setColumnStretch(column, 1);
    QObject::connect(number, &Number::valueChanged, this, &pqSpecialValueWidget::valueChanged);
    QObject::connect(number, &Number::valueEdited, this, &pqSpecialValueWidget::finishEdit);
    this->Numbers.push_back(number);
  }
  grid->addWidget(this->Box, 1, 0, 1, grid->columnCount());
}

QVariant pqSpecialValueWidget::value() const
{
  QList<QVariant> values;
  for (const QWidget* number : this->Numbers)
  {
    values.push_back(this->Box->isChecked() ? QVariant(this->Special) : number->property("value"));
  }
  return values.size() == 1 ? values[0] : QVariant(values);
}

void pqSpecialValueWidget::setValue(const QVariant& value)
{
  const QList<QVariant> values =
    this->Numbers.size() == 1 ? QList<QVariant>{ value } : value.toList();
  const bool special = std::all_of(values.begin(), values.end(),
    [this](const QVariant& each) { return each.toDouble() == this->Special; });
  for (int i = 0; !special && i < this->Numbers.size() && i < values.size(); ++i)
  {
    this->Numbers[i]->setProperty("value", values[i]);
  }
  this->Box->setChecked(special);
}

/// The number with which an element begins. It is not the special value: a new widget with the
/// value of its property would not be told of it, and leave the box unticked.
double pqSpecialValueWidget::startOf(int element) const
{
  const double least = this->Numbers[element]->property("minimum").toDouble();
  return std::isnan(this->Start) ? std::max(least, this->Special + 1) : this->Start;
}

/// A number that is the special value ticks the box.
void pqSpecialValueWidget::finishEdit()
{
  const auto isSpecial = [this](const QWidget* number)
  { return number->property("value").toDouble() == this->Special; };
  if (std::any_of(this->Numbers.begin(), this->Numbers.end(), isSpecial))
  {
    this->Box->setChecked(true);
    for (int i = 0; i < this->Numbers.size(); ++i)
    {
      this->Numbers[i]->setProperty("value", this->startOf(i)); // for when the box is unticked
    }
  }
  Q_EMIT this->changeFinished();
}

void pqSpecialValueWidget::updateRange()
{
  const bool integers =
    this->Range != nullptr && vtkSMIntRangeDomain::SafeDownCast(this->Range) != nullptr;
  for (int i = 0; i < this->Numbers.size(); ++i)
  {
    QWidget* number = this->Numbers[i];
    const Limits limits = LimitsOf(this->Range, i);
    const double above = integers || this->Special < 0 ? this->Special + 1 : this->Special;
    const double least = std::max(limits.Least.value_or(above), above);
    number->setProperty("minimum", least);
    if (limits.Most)
    {
      number->setProperty("maximum", std::max(*limits.Most, least));
    }
    number->findChild<QSlider*>("Slider")->setVisible(limits.Most.has_value());
  }
}
