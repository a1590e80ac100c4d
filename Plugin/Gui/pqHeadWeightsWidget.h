#ifndef pqHeadWeightsWidget_h
#define pqHeadWeightsWidget_h

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class pqDoubleRangeWidget;
class QVBoxLayout;

/// One slider per head of the input model for its weight, in place of a list of numbers of unknown
/// length. While all weights are 1, the property stays empty, which means the same for any number
/// of heads. If the number of heads changes, surplus weights are dropped and new ones are 1. Only
/// the first 64 heads have sliders; the weights of further heads are kept.
class pqHeadWeightsWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(QList<QVariant> weights READ weights WRITE setWeights NOTIFY weightsChanged)

public:
  pqHeadWeightsWidget(vtkSMProxy* proxy, vtkSMProperty* property, QWidget* parent = nullptr);
  ~pqHeadWeightsWidget() override;

  QList<QVariant> weights() const;
  void setWeights(const QList<QVariant>& weights);

Q_SIGNALS:
  void weightsChanged();

private:
  Q_DISABLE_COPY(pqHeadWeightsWidget)

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

#endif
