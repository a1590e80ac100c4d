#include "pqNumberListWidget.h"

#include <pqCoreUtilities.h>

#include <vtkCommand.h>
#include <vtkPVXMLElement.h>
#include <vtkSMIntRangeDomain.h>
#include <vtkSMProperty.h>

#include <QSignalBlocker>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <algorithm>
#include <set>

namespace
{

/// The rows that are seen at once, at most.
constexpr int MaximumRows = 8;

int NumberOf(const QTreeWidgetItem* row)
{
  return row->data(0, Qt::UserRole).toInt();
}

}

pqNumberListWidget::pqNumberListWidget(
  vtkSMProxy* smProxy, vtkSMProperty* smProperty, vtkPVXMLElement* hint, QWidget* parentWidget)
  : pqPropertyWidget(smProxy, parentWidget)
  , Text(hint->GetAttributeOrEmpty("text"))
  , Range(vtkSMIntRangeDomain::SafeDownCast(smProperty->FindDomain("vtkSMIntRangeDomain")))
  , List(new QTreeWidget(this))
{
  hint->GetScalarAttribute("value", &this->Special);
  this->List->setObjectName("List");
  this->List->setHeaderHidden(true);
  this->List->setRootIsDecorated(false);
  this->List->setUniformRowHeights(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(this->List);

  this->updateRange();
  pqCoreUtilities::connect(this->Range, vtkCommand::DomainModifiedEvent, this, SLOT(updateRange()));
  QObject::connect(this->List, &QTreeWidget::itemChanged, this, &pqNumberListWidget::valuesChanged);
  this->addPropertyLink(this, "values", SIGNAL(valuesChanged()), smProperty);
}

QList<QVariant> pqNumberListWidget::values() const
{
  QList<QVariant> ticked;
  for (int i = 0; i < this->List->topLevelItemCount(); ++i)
  {
    const QTreeWidgetItem* row = this->List->topLevelItem(i);
    if (row->checkState(0) == Qt::Checked)
    {
      ticked.push_back(NumberOf(row));
    }
  }
  return ticked;
}

void pqNumberListWidget::setValues(const QList<QVariant>& values)
{
  this->showNumbers(values);
  Q_EMIT this->valuesChanged();
}

void pqNumberListWidget::updateRange()
{
  this->showNumbers(this->values());
}

void pqNumberListWidget::showNumbers(const QList<QVariant>& ticked)
{
  std::set<int> chosen;
  for (const QVariant& value : ticked)
  {
    chosen.insert(value.toInt());
  }
  std::set<int> numbers = chosen;
  if (this->Range->GetMinimumExists(0) != 0 && this->Range->GetMaximumExists(0) != 0)
  {
    for (int number = this->Range->GetMinimum(0); number <= this->Range->GetMaximum(0); ++number)
    {
      numbers.insert(number);
    }
  }

  const QSignalBlocker blocker(this->List);
  this->List->clear();
  for (const int number : numbers)
  {
    auto* row = new QTreeWidgetItem(this->List);
    row->setText(0, number == this->Special ? this->Text : QString::number(number));
    row->setData(0, Qt::UserRole, number);
    row->setCheckState(0, chosen.count(number) > 0 ? Qt::Checked : Qt::Unchecked);
  }
  const int rows = std::clamp(static_cast<int>(numbers.size()), 1, MaximumRows);
  this->List->setFixedHeight(rows * this->List->sizeHintForRow(0) + 2 * this->List->frameWidth());
}
