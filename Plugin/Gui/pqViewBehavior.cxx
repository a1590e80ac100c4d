#include "pqViewBehavior.h"

#include "OpenedViews.h"
#include "OurProxies.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqCoreUtilities.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <vtkSMProxy.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMTransferFunctionManager.h>
#include <vtkSMViewLayoutProxy.h>

#include <QDir>
#include <QFileInfo>
#include <QTimer>

#include <algorithm>

namespace
{

/// Replaces an empty render view that was made before the plugin was loaded: it has no title.
void ReplaceUntitledView()
{
  const QString type = pqRenderView::renderViewType();
  pqView* view = AttentionAtlas::FindEmptyView(type);
  if (view != nullptr && view->getProxy()->GetProperty("ShowTitle") == nullptr)
  {
    pqActiveObjects::instance().setActiveView(
      AttentionAtlas::CreateOwnView(type, view->getServer()));
  }
}

/// Whether nothing but outputs of a source is visible in a view.
bool ShowsOnly(pqView* view, pqPipelineSource* source)
{
  const QList<pqDataRepresentation*> shown = AttentionAtlas::VisibleDataIn(view);
  return std::all_of(shown.begin(), shown.end(),
    [source](pqDataRepresentation* data) { return data->getInput() == source; });
}

/// Hides in a view what the hints of a source say.
void HideReplaced(pqView* view, pqPipelineSource* source)
{
  vtkPVXMLElement* hint = FindHint(source->getProxy(), "AtlasHides");
  if (hint == nullptr)
  {
    return;
  }
  const QStringList filters = QString(hint->GetAttributeOrEmpty("filters")).split(' ');
  for (pqDataRepresentation* data : AttentionAtlas::DataIn(view))
  {
    if (filters.contains(data->getInput()->getProxy()->GetXMLName()))
    {
      data->setVisible(false);
    }
  }
  vtkNew<vtkSMTransferFunctionManager> tables;
  tables->UpdateScalarBars(view->getProxy(), vtkSMTransferFunctionManager::HIDE_UNUSED_SCALAR_BARS);
}

}

void pqViewBehavior::startup()
{
  pqObjectBuilder* builder = pqApplicationCore::instance()->getObjectBuilder();
  this->connect(builder, SIGNAL(sourceCreated(pqPipelineSource*)), SLOT(meet(pqPipelineSource*)));
  this->connect(builder, SIGNAL(filterCreated(pqPipelineSource*)), SLOT(meet(pqPipelineSource*)));
  this->connect(builder, SIGNAL(readerCreated(pqPipelineSource*, const QStringList&)),
    SLOT(rename(pqPipelineSource*, const QStringList&)));
  this->connect(pqApplicationCore::instance()->getServerManagerModel(),
    SIGNAL(sourceRemoved(pqPipelineSource*)), SLOT(forget(pqPipelineSource*)));
  const QWidget* window = pqCoreUtilities::mainWidget();
  if (window != nullptr && window->isVisible()) // else ParaView starts, and is not ready for that
  {
    QTimer::singleShot(0, this, ReplaceUntitledView); // once ParaView knows our properties
  }
}

void pqViewBehavior::shutdown()
{
  pqApplicationCore::instance()->getServerManagerModel()->disconnect(this);
  pqApplicationCore::instance()->getObjectBuilder()->disconnect(this);
}

void pqViewBehavior::meet(pqPipelineSource* source)
{
  if (FindHint(source->getProxy(), "AtlasRepresentation") != nullptr)
  {
    this->connect(source,
      SIGNAL(representationAdded(pqPipelineSource*, pqDataRepresentation*, int)),
      SLOT(frame(pqPipelineSource*, pqDataRepresentation*)));
  }
  const QString type = AttentionAtlas::PreferredView(source->getProxy());
  if (type == pqRenderView::renderViewType())
  {
    pqView* view = AttentionAtlas::FindView(type);
    pqActiveObjects::instance().setActiveView(
      view != nullptr ? view : AttentionAtlas::CreateView(type, source->getServer()));
  }
  else if (!type.isEmpty() && type != "SpreadSheetView")
  {
    pqView* view = AttentionAtlas::FindEmptyView(type);
    if (view == nullptr)
    {
      view = AttentionAtlas::CreateOwnView(type, source->getServer());
      this->Own[source] = view;
    }
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
      if (view == nullptr)
      {
        return;
      }
      BEGIN_UNDO_EXCLUDE(); // else undo would first undo this
      HideReplaced(view, source);
      if (ShowsOnly(view, source))
      {
        view->resetCamera();
        view->forceRender(); // now, before a click
      }
      END_UNDO_EXCLUDE();
    });
}
