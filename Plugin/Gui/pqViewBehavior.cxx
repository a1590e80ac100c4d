#include "pqViewBehavior.h"

#include "OpenedViews.h"
#include "OurProxies.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <vtkNew.h>
#include <vtkPVXMLElement.h>
#include <vtkSMParaViewPipelineControllerWithRendering.h>
#include <vtkSMProxy.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMViewLayoutProxy.h>

#include <QDir>
#include <QFileInfo>
#include <QTimer>

#include <algorithm>

namespace
{

/// Whether the hints of a proxy state how it is shown.
bool IsShownByUs(pqPipelineSource* source)
{
  vtkPVXMLElement* hints = source->getProxy()->GetHints();
  return hints != nullptr && hints->FindNestedElementByName("AtlasRepresentation") != nullptr;
}

/// Whether nothing but outputs of a source is visible in a view.
bool ShowsOnly(pqView* view, pqPipelineSource* source)
{
  const QList<pqRepresentation*> shown = view->getRepresentations();
  return std::all_of(shown.begin(), shown.end(),
    [source](pqRepresentation* representation)
    {
      auto* data = qobject_cast<pqDataRepresentation*>(representation);
      return data == nullptr || !data->isVisible() || data->getInput() == source;
    });
}

/// A view of the active layout that meets a condition, the active one before others, or null.
template<class Condition>
pqView* FindView(Condition condition)
{
  pqActiveObjects& active = pqActiveObjects::instance();
  QList<pqView*> views =
    pqApplicationCore::instance()->getServerManagerModel()->findItems<pqView*>();
  views.push_front(active.activeView());
  vtkSMViewLayoutProxy* layout = active.activeLayout();
  for (pqView* view : views)
  {
    if (view != nullptr && condition(view) &&
        (layout == nullptr || layout->GetViewLocation(view->getViewProxy()) >= 0))
    {
      return view;
    }
  }
  return nullptr;
}

/// A new view, in the active cell of the layout if that is empty, or beside it.
pqView* CreateView(const QString& type, pqServer* server)
{
  pqActiveObjects& active = pqActiveObjects::instance();
  vtkSMViewLayoutProxy* layout = active.activeLayout();
  const int location = active.activeLayoutLocation();
  pqView* view = pqApplicationCore::instance()->getObjectBuilder()->createView(type, server);
  vtkNew<vtkSMParaViewPipelineControllerWithRendering> controller;
  controller->AssignViewToLayout(view->getViewProxy(), layout, location);
  return view;
}

/// An empty view of a type, or a new one in the place of an empty render view, or beside the
/// others.
pqView* FindOwnView(const QString& type, pqServer* server)
{
  const auto isEmpty = [](const QString& wanted)
  {
    return FindView([&wanted](pqView* view)
      { return wanted == view->getProxy()->GetXMLName() && AttentionAtlas::IsEmpty(view); });
  };
  if (pqView* view = isEmpty(type))
  {
    return view;
  }
  if (pqView* place = isEmpty(pqRenderView::renderViewType()))
  {
    pqApplicationCore::instance()->getObjectBuilder()->destroy(place);
  }
  return CreateView(type, server);
}

}

pqViewBehavior::pqViewBehavior(QObject* parent)
  : QObject(parent)
{
}

pqViewBehavior::~pqViewBehavior() = default;

void pqViewBehavior::startup()
{
  pqObjectBuilder* builder = pqApplicationCore::instance()->getObjectBuilder();
  this->connect(builder, SIGNAL(sourceCreated(pqPipelineSource*)), SLOT(meet(pqPipelineSource*)));
  this->connect(builder, SIGNAL(filterCreated(pqPipelineSource*)), SLOT(meet(pqPipelineSource*)));
  this->connect(builder, SIGNAL(readerCreated(pqPipelineSource*, const QStringList&)),
    SLOT(rename(pqPipelineSource*, const QStringList&)));
  this->connect(pqApplicationCore::instance()->getServerManagerModel(),
    SIGNAL(sourceRemoved(pqPipelineSource*)), SLOT(forget(pqPipelineSource*)));
}

void pqViewBehavior::shutdown()
{
  pqApplicationCore::instance()->getServerManagerModel()->disconnect(this);
  pqApplicationCore::instance()->getObjectBuilder()->disconnect(this);
}

void pqViewBehavior::meet(pqPipelineSource* source)
{
  if (IsShownByUs(source))
  {
    this->connect(source,
      SIGNAL(representationAdded(pqPipelineSource*, pqDataRepresentation*, int)),
      SLOT(frame(pqPipelineSource*, pqDataRepresentation*)));
  }
  const QString type = AttentionAtlas::PreferredView(source->getProxy());
  if (type == pqRenderView::renderViewType())
  {
    pqView* view =
      FindView([&type](pqView* other) { return type == other->getProxy()->GetXMLName(); });
    pqActiveObjects::instance().setActiveView(
      view != nullptr ? view : CreateView(type, source->getServer()));
  }
  else if (!type.isEmpty() && type != "SpreadSheetView")
  {
    BEGIN_UNDO_EXCLUDE();
    pqView* view = FindOwnView(type, source->getServer());
    END_UNDO_EXCLUDE();
    this->Own[source] = view;
    pqActiveObjects::instance().setActiveView(view);
  }
}

void pqViewBehavior::rename(pqPipelineSource* source, const QStringList& files)
{
  const QFileInfo file(files.front());
  const QStringList ofModels = { "config.json", "adapter_config.json", "params.json" };
  if (IsOurs(source->getProxy()) && ofModels.contains(file.fileName()))
  {
    source->rename(file.dir().dirName());
  }
}

void pqViewBehavior::forget(pqPipelineSource* source)
{
  // Later: all of a session may be about to go.
  QTimer::singleShot(0, this,
    [view = this->Own.take(source)]
    {
      if (view != nullptr && AttentionAtlas::IsEmpty(view))
      {
        BEGIN_UNDO_EXCLUDE();
        vtkSMViewLayoutProxy* layout = vtkSMViewLayoutProxy::FindLayout(view->getViewProxy());
        const int location = layout != nullptr ? layout->GetViewLocation(view->getViewProxy()) : 0;
        pqApplicationCore::instance()->getObjectBuilder()->destroy(view);
        if (location > 0) // not the only cell
        {
          layout->Collapse(location);
        }
        END_UNDO_EXCLUDE();
      }
    });
}

void pqViewBehavior::frame(pqPipelineSource* source, pqDataRepresentation* shown)
{
  // After Apply, which shows the other outputs and moves the camera.
  QTimer::singleShot(0, shown,
    [source, shown]
    {
      auto* view = qobject_cast<pqRenderView*>(shown->getView());
      if (view != nullptr && ShowsOnly(view, source))
      {
        view->resetCamera();
        view->forceRender(); // now, before a click
      }
    });
}
