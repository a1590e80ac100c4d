#ifndef pqSpecialValueWidget_h
#define pqSpecialValueWidget_h

#include <pqPropertyWidget.h>

class QCheckBox;
class pqIntRangeWidget;
class vtkPVXMLElement;
class vtkSMIntRangeDomain;

/// A number with a check box for the one value that is not a number to the user, such as -1 for the
/// mean over heads: the hint <AtlasSpecial value="-1" text="Mean of heads" />. While the box is
/// ticked, the slider is disabled and keeps its number. Its range is that of the property's domain
/// above this value. Without an upper bound there is a field alone.
class pqSpecialValueWidget : public pqPropertyWidget
{
  Q_OBJECT
  Q_PROPERTY(int value READ value WRITE setValue NOTIFY valueChanged)

public:
  pqSpecialValueWidget(
    vtkSMProxy* proxy, vtkSMProperty* property, vtkPVXMLElement* hint, QWidget* parent = nullptr);
  ~pqSpecialValueWidget() override;

  int value() const;
  void setValue(int value);

Q_SIGNALS:
  void valueChanged();

private:
  Q_DISABLE_COPY(pqSpecialValueWidget)

  Q_SLOT void updateRange();

  int Special = -1;
  vtkSMIntRangeDomain* Range; ///< null: any number
  QCheckBox* Box;
  pqIntRangeWidget* Number;
};

#endif
