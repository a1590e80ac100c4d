#ifndef pqHeadWeightsWidget_h
#define pqHeadWeightsWidget_h

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class pqDoubleRangeWidget;
class QVBoxLayout;

/// A slider for the weight of each head of the input model, in place of a list of numbers of
/// unknown length. While all weights are 1 the property stays empty, which means just that, for
/// models of any number of heads. Where the model has other heads than weights, those there are too
/// many of are dropped and new ones are 1. Of more than 64 heads the first have sliders; the
/// weights of the others stay as they are.
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
