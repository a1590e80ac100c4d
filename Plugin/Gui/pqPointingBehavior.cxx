#include "pqPointingBehavior.h"

#include "OpenedViews.h"
#include "TokenSelection.h"

#include <pqDataRepresentation.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServer.h>
#include <pqServerManagerModel.h>

#include <vtkPVDataInformation.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMSourceProxy.h>

#include <QHelpEvent>
#include <QStringList>
#include <QToolTip>
#include <QWidget>

#include <array>
#include <cmath>

using AttentionAtlas::Model;

namespace
{

/// How far from the pointer a line may be, in pixels.
constexpr int LineReach = 3;

/// The names of the arrays whose numbers a representation shows, one per line.
QString QuantitiesOf(pqDataRepresentation* shown)
{
  QStringList names;
  vtkSMPropertyHelper colors(shown->getProxy(), "ColorArrayName", true);
  names << colors.GetInputArrayNameToProcess();
  vtkSMProxy* filter = shown->getOutputPortFromInput()->getSourceProxy();
  for (const char* property : { "XColumn", "YColumn", "SizeColumn" }) // of a scatter
  {
    names << vtkSMPropertyHelper(filter, property, true).GetAsString();
  }
  names << "Weight" << "Received" << "Given"; // of lines, bars and words
  names.removeAll(QString());
  names.removeDuplicates();
  return names.join('\n');
}

/// What is said of an image at a place, or of what is selected.
QString TextOf(
  pqDataRepresentation* shown, const std::array<double, 2>& place, vtkSMSourceProxy* selection)
{
  pqOutputPort* port = shown->getOutputPortFromInput();
  return QString::fromStdString(AttentionAtlas::PointedText(port->getSourceProxy(),
    port->getPortNumber(), place, selection, QuantitiesOf(shown).toUtf8().constData()));
}

/// What the images of a view say of a place.
QString TextOfImages(pqRenderView* view, const std::array<double, 2>& place)
{
  QString text;
  for (pqDataRepresentation* shown : AttentionAtlas::VisibleDataIn(view))
  {
    vtkPVDataInformation* data = shown->getOutputPortFromInput()->getDataInformation();
    if (text.isEmpty() && data->GetDataSetType() == VTK_IMAGE_DATA)
    {
      text = TextOf(shown, place, nullptr);
    }
  }
  return text;
}

/// What is said of the cell in front at a pixel.
QString TextOfCells(pqRenderView* view, int x, int y)
{
  const AttentionAtlas::InFront front(
    view, { x - LineReach, y - LineReach, x + LineReach, y + LineReach }, false);
  return front.shown != nullptr && front.selection != nullptr
           ? TextOf(front.shown, {}, front.selection)
           : QString();
}

}

void pqPointingBehavior::startup()
{
  this->connect(Model(), SIGNAL(viewAdded(pqView*)), SLOT(meet(pqView*)));
  for (pqView* view : Model()->findItems<pqView*>())
  {
    this->meet(view);
  }
}

void pqPointingBehavior::shutdown()
{
  Model()->disconnect(this);
}

void pqPointingBehavior::meet(pqView* view)
{
  if (qobject_cast<pqRenderView*>(view) != nullptr &&
      view->getProxy()->GetProperty("FitToData") != nullptr) // a diagram
  {
    view->widget()->installEventFilter(this);
  }
}

bool pqPointingBehavior::eventFilter(QObject* widget, QEvent* event)
{
  if (event->type() != QEvent::ToolTip)
  {
    return QObject::eventFilter(widget, event);
  }
  for (pqRenderView* view : Model()->findItems<pqRenderView*>())
  {
    QWidget* shown = view->widget();
    if (shown != widget || view->getServer()->isProgressPending())
    {
      continue;
    }
    auto* help = static_cast<QHelpEvent*>(event);
    const double scale = shown->devicePixelRatioF();
    const int x = static_cast<int>(std::lround(help->pos().x() * scale));
    const int y = static_cast<int>(std::lround((shown->height() - 1 - help->pos().y()) * scale));
    QString text = TextOfImages(view, AttentionAtlas::PlaceInPlane(view, x, y));
    if (text.isEmpty())
    {
      text = TextOfCells(view, x, y);
    }
    QToolTip::showText(help->globalPos(), text, shown); // an empty one hides the last
    return true;
  }
  return QObject::eventFilter(widget, event);
}
