#include "pqHeadWeightsWidget.h"

#include "PanelWidth.h"

#include <pqCoreUtilities.h>
#include <pqDoubleRangeWidget.h>

#include <vtkCommand.h>
#include <vtkDataObject.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkSMDoubleRangeDomain.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMSourceProxy.h>

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <algorithm>

namespace
{

/// More sliders would only fill the panel; scripts can set any number of weights.
constexpr int MaximumSliders = 64;

/// The number of heads of the proxy's input model, from the field data; 0 if not known yet.
int HeadsOfInput(vtkSMProxy* proxy)
{
  vtkSMPropertyHelper input(proxy, "Input", true);
  auto* producer = vtkSMSourceProxy::SafeDownCast(input.GetAsProxy());
  vtkPVArrayInformation* heads = producer == nullptr
                                   ? nullptr
                                   : producer->GetDataInformation(input.GetOutputPort())
                                       ->GetArrayInformation("Heads", vtkDataObject::FIELD);
  return heads == nullptr ? 0 : static_cast<int>(heads->GetComponentRange(0)[1]);
}

/// Drops surplus weights, and makes new ones 1.
void Fit(QList<QVariant>& weights, qsizetype count)
{
  weights = weights.mid(0, static_cast<int>(count));
  while (weights.size() < count)
  {
    weights.push_back(1.);
  }
}

}

pqHeadWeightsWidget::pqHeadWeightsWidget(
  vtkSMProxy* smProxy, vtkSMProperty* smProperty, QWidget* parentWidget)
  : pqPropertyWidget(smProxy, parentWidget)
  , SliderLayout(new QVBoxLayout)
{
  this->setShowLabel(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* title = new QHBoxLayout;
  auto* label = new QLabel(tr("Head Weights"), this);
  title->addWidget(label, 1);
  auto* reset = new QPushButton(tr("All 1"), this);
  reset->setObjectName("Reset");
  reset->setToolTip(tr("Reset the weight of every head to 1"));
  title->addWidget(reset);
  layout->addLayout(title);
  layout->addLayout(this->SliderLayout);

  QObject::connect(reset, &QPushButton::clicked, this, &pqHeadWeightsWidget::resetWeights);
  pqCoreUtilities::connect(
    smProxy->GetProperty("Input"), vtkCommand::ModifiedEvent, this, SLOT(updateHeadCount()));
  pqCoreUtilities::connect(smProxy, vtkCommand::UpdateDataEvent, this, SLOT(updateHeadCount()));

  this->setHeadCount(HeadsOfInput(smProxy));
  this->addPropertyLink(this, "weights", SIGNAL(weightsChanged()), smProperty);
}

QList<QVariant> pqHeadWeightsWidget::weights() const
{
  const bool allOne = std::all_of(this->Weights.begin(), this->Weights.end(),
    [](const QVariant& weight) { return weight.toDouble() == 1; });
  return allOne ? QList<QVariant>() : this->Weights;
}

void pqHeadWeightsWidget::setWeights(const QList<QVariant>& values)
{
  if (values == this->weights())
  {
    return;
  }
  this->Weights = values;
  if (const qsizetype count = values.size(); count > 0)
  {
    this->setHeadCount(static_cast<int>(count));
  }
  this->showWeights();
  Q_EMIT this->weightsChanged();
}

void pqHeadWeightsWidget::setWeight(int head, double weight)
{
  Fit(this->Weights, std::max<qsizetype>(this->Weights.size(), this->HeadCount));
  this->Weights[head] = weight;
  Q_EMIT this->weightsChanged();
}

void pqHeadWeightsWidget::showWeights()
{
  for (int head = 0; head < this->Sliders.size(); ++head)
  {
    const QSignalBlocker blocker(this->Sliders[head]);
    this->Sliders[head]->setValue(head < this->Weights.size() ? this->Weights[head].toDouble() : 1);
  }
}

void pqHeadWeightsWidget::resetWeights()
{
  this->Weights.clear();
  this->showWeights();
  Q_EMIT this->weightsChanged();
  Q_EMIT this->changeFinished();
}

void pqHeadWeightsWidget::updateHeadCount()
{
  const int count = HeadsOfInput(this->proxy());
  if (count == 0)
  {
    return;
  }
  this->setHeadCount(count);
  if (!this->Weights.empty() && this->Weights.size() != count)
  {
    Fit(this->Weights, count);
    this->showWeights();
    Q_EMIT this->weightsChanged();
  }
}

void pqHeadWeightsWidget::setHeadCount(int count)
{
  this->HeadCount = count;
  count = std::min(count, MaximumSliders);
  while (this->Sliders.size() > count)
  {
    delete this->Sliders.takeLast()->parentWidget();
  }
  const qsizetype present = this->Sliders.size(); // an int in Qt 5
  for (auto head = static_cast<int>(present); head < count; ++head)
  {
    auto* row = new QWidget(this);
    row->setObjectName(QString("Row%1").arg(head));
    auto* rowLayout = new QHBoxLayout(row);
    rowLayout->setContentsMargins(0, 0, 0, 0);
    auto* slider = new pqDoubleRangeWidget(row);
    slider->setObjectName(QString("Head%1").arg(head));
    slider->setMinimum(-2);
    slider->setMaximum(2);
    slider->setValue(1);
    PutSliderBelow(slider, tr("Head %1").arg(head));
    rowLayout->addWidget(slider);
    QObject::connect(slider, &pqDoubleRangeWidget::valueChanged, this,
      [this, head](double weight) { this->setWeight(head, weight); });
    QObject::connect(
      slider, &pqDoubleRangeWidget::valueEdited, this, &pqHeadWeightsWidget::changeFinished);
    this->SliderLayout->addWidget(row);
    this->Sliders.push_back(slider);
  }
}
