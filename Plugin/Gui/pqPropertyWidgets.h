#pragma once

#include <pqPropertyWidgetInterface.h>

#include <QObject>

/// What the Properties panel shows for properties of this plugin.
///
/// - panel_widget="head_weights" and "vector_sliders" are pqHeadWeightsWidget and
///   pqVectorSlidersWidget.
/// - The hint <AtlasSpecial value="-1" text="Mean of heads" /> is a check box beside the number or
///   numbers (pqSpecialValueWidget). In a list it is a row of check boxes (pqNumberListWidget).
/// - An <Entry> with the attribute info, of an enumeration or of the hint <AtlasWords>, which lists
///   have, is shown as this text. Scripts and states have its short name, the attribute text.
/// - A tooltip is the first sentence of the documentation; the help page has all of it.
class pqPropertyWidgets
  : public QObject
  , public pqPropertyWidgetInterface
{
  Q_OBJECT
  Q_INTERFACES(pqPropertyWidgetInterface)

public:
  using QObject::QObject;

  pqPropertyWidget* createWidgetForProperty(
    vtkSMProxy* proxy, vtkSMProperty* property, QWidget* parent) override;

  /// ParaView calls it for each widget that it has made.
  void createDefaultWidgetDecorators(pqPropertyWidget* widget) override;
};
