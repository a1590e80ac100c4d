#include "pqPropertyWidgets.h"

#include "OurProxies.h"
#include "PanelWidth.h"
#include "PropertyHints.h"
#include "pqHeadWeightsWidget.h"
#include "pqNumberListWidget.h"
#include "pqSpecialValueWidget.h"
#include "pqVectorSlidersWidget.h"

#include <pqDoubleRangeWidget.h>
#include <pqIntRangeWidget.h>
#include <pqPropertyWidget.h>

#include <vtkPVXMLElement.h>
#include <vtkSMDocumentation.h>
#include <vtkSMEnumerationDomain.h>
#include <vtkSMProperty.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkWeakPointer.h>

#include <QAbstractItemModel>
#include <QComboBox>
#include <QHash>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QStandardItemModel>
#include <QStyledItemDelegate>
#include <QTreeView>

namespace
{

using Words = QHash<QString, QString>; ///< what is shown, by name

/// Shows items of a list in words. The items keep their names.
class WordsDelegate : public QStyledItemDelegate
{
public:
  WordsDelegate(Words words, QObject* parent)
    : QStyledItemDelegate(parent)
    , Texts(std::move(words))
  {
  }

  QString displayText(const QVariant& value, const QLocale& locale) const override
  {
    const QString name = QStyledItemDelegate::displayText(value, locale);
    return this->Texts.value(name, name);
  }

private:
  Words Texts;
};

Words WordsOf(vtkSMProperty* property)
{
  Words words;
  auto* choices =
    vtkSMEnumerationDomain::SafeDownCast(property->FindDomain("vtkSMEnumerationDomain"));
  for (unsigned int i = 0; choices != nullptr && i < choices->GetNumberOfEntries(); ++i)
  {
    if (const char* info = choices->GetInfoText(i))
    {
      words[choices->GetEntryText(i)] = info;
    }
  }
  for (vtkPVXMLElement* entry : AttentionAtlas::ElementsIn(FindHint(property, "AtlasWords")))
  {
    words[entry->GetAttributeOrEmpty("text")] = entry->GetAttributeOrEmpty("info");
  }
  return words;
}

void NameItems(QComboBox* box, const Words& words)
{
  const QSignalBlocker blocker(box);
  for (int i = 0; i < box->count(); ++i)
  {
    const QString name = box->itemData(i).toString();
    box->setItemText(i, words.value(name, name));
  }
}

void ShowWords(pqPropertyWidget* widget, const Words& words)
{
  const vtkWeakPointer<vtkSMProperty> property = widget->property();
  for (QComboBox* box : widget->findChildren<QComboBox*>())
  {
    NameItems(box, words);
    // The choices can depend on the input.
    const auto again = [box, property]()
    {
      if (property != nullptr)
      {
        NameItems(box, WordsOf(property));
      }
    };
    QObject::connect(
      box->model(), &QAbstractItemModel::rowsInserted, box, again, Qt::QueuedConnection);
  }
  for (QTreeView* list : widget->findChildren<QTreeView*>())
  {
    list->setItemDelegate(new WordsDelegate(words, list));
  }
}

/// Lets no one choose "(none)", the first entry of a list of inputs, where an input is needed.
void RefuseNone(pqPropertyWidget* widget)
{
  for (QComboBox* box : widget->findChildren<QComboBox*>())
  {
    auto* entries = qobject_cast<QStandardItemModel*>(box->model());
    const auto refuse = [entries]
    {
      QStandardItem* none = entries != nullptr ? entries->item(0) : nullptr;
      if (none != nullptr)
      {
        none->setEnabled(false);
      }
    };
    refuse();
    QObject::connect(box->model(), &QAbstractItemModel::rowsInserted, box, refuse);
  }
}

/// Makes what derived classes may call known here, for widgets that ParaView makes.
struct Labeled : pqPropertyWidget
{
  using pqPropertyWidget::setShowLabel;
};

/// Puts the slider of the only number of a property below it and the label.
template<typename Range>
void WidenSlider(pqPropertyWidget* widget)
{
  const QList<Range*> ranges = widget->findChildren<Range*>(QString(), Qt::FindDirectChildrenOnly);
  if (ranges.size() == 1 && widget->showLabel())
  {
    (widget->*&Labeled::setShowLabel)(false);
    PutSliderBelow(ranges.front(), widget->property()->GetXMLLabel());
  }
}

/// Whether a proxy shows an output of what is of this plugin.
bool ShowsOurs(vtkSMProxy* proxy)
{
  vtkSMProxy* shown = proxy->IsA("vtkSMRepresentationProxy") != 0
                        ? vtkSMPropertyHelper(proxy, "Input", true).GetAsProxy()
                        : nullptr;
  return shown != nullptr && IsOurs(shown);
}

/// The first sentence of a text. The point of "et al." ends none.
QString FirstSentence(const QString& text)
{
  static const QRegularExpression end("(?<! al)\\.(?= )");
  const QString line = text.simplified();
  const QRegularExpressionMatch found = end.match(line);
  return found.hasMatch() ? line.left(found.capturedEnd()) : line;
}

}

pqPropertyWidget* pqPropertyWidgets::createWidgetForProperty(
  vtkSMProxy* proxy, vtkSMProperty* property, QWidget* parent)
{
  const QString type = property->GetPanelWidget();
  if (type == "head_weights")
  {
    return new pqHeadWeightsWidget(proxy, property, parent);
  }
  if (type == "vector_sliders")
  {
    return new pqVectorSlidersWidget(proxy, property, parent);
  }
  vtkPVXMLElement* special = FindHint(property, "AtlasSpecial");
  if (special == nullptr)
  {
    return nullptr;
  }
  if (property->GetRepeatable())
  {
    return new pqNumberListWidget(proxy, property, special, parent);
  }
  return new pqSpecialValueWidget(proxy, property, special, parent);
}

void pqPropertyWidgets::createDefaultWidgetDecorators(pqPropertyWidget* widget)
{
  QWidget* panel = widget->parentWidget(); // none yet in ParaView 5.13
  if (panel != nullptr && ShowsOurs(widget->proxy()))
  {
    NarrowDisplay(panel); // with widgets of groups, which were made before
  }
  vtkSMProperty* property = widget->property();
  if (property == nullptr || !IsOurs(widget->proxy()))
  {
    return;
  }
  NarrowLists(widget);
  WidenSlider<pqDoubleRangeWidget>(widget);
  WidenSlider<pqIntRangeWidget>(widget);
  if (const Words words = WordsOf(property); !words.isEmpty())
  {
    ShowWords(widget, words);
  }
  if (FindHint(property, "AtlasNeeded") != nullptr)
  {
    RefuseNone(widget);
  }
  if (vtkSMDocumentation* documentation = property->GetDocumentation())
  {
    const QString sentence = FirstSentence(documentation->GetDescription());
    widget->setToolTip(QString("<p>%1</p>").arg(sentence.toHtmlEscaped()));
  }
}
