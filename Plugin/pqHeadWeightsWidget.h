#ifndef pqHeadWeightsWidget_h
#define pqHeadWeightsWidget_h

#include <pqPropertyWidget.h>

#include <QList>
#include <QVariant>

class pqDoubleRangeWidget;
class QVBoxLayout;

/// A slider for the weight of each head of the input model, in place of a list of numbers of
/// unknown length. While all weights are 1 the property stays empty, which means just that, for
/// models of any number of heads.
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
  double weight(int head) const;

  QList<pqDoubleRangeWidget*> Sliders;
  QVBoxLayout* SliderLayout;
};

#endif
