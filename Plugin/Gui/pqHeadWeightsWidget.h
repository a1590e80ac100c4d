#pragma once

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class pqDoubleRangeWidget;
class QVBoxLayout;

/// One slider per head of the input model for its weight. While all weights are 1, the property
/// stays empty, which means the same for any number of heads. If this changes, surplus weights are
/// dropped and new ones are 1. Only the first 64 heads have sliders; other weights are kept.
class pqHeadWeightsWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(QList<QVariant> weights READ weights WRITE setWeights NOTIFY weightsChanged)

public:
  pqHeadWeightsWidget(vtkSMProxy* proxy, vtkSMProperty* property, QWidget* parent = nullptr);

  QList<QVariant> weights() const;
  void setWeights(const QList<QVariant>& weights);

Q_SIGNALS:
  void weightsChanged();

private:
  Q_SLOT void resetWeights();
  Q_SLOT void updateHeadCount();
  void setHeadCount(int count);
  void setWeight(int head, double weight);
  void showWeights();

  QList<QVariant> Weights; ///< empty: all 1
  int HeadCount = 0;
  QList<pqDoubleRangeWidget*> Sliders;
  QVBoxLayout* SliderLayout;
};
