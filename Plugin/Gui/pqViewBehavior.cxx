#include "pqViewBehavior.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>

#include <vtkPVXMLElement.h>
#include <vtkSMProxy.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMViewLayoutProxy.h>

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

/// Whether the hints of a proxy, which all our proxies have, state how a render view shows it.
bool IsShownInRenderView(pqPipelineSource* source)
{
  vtkPVXMLElement* hints = source->getProxy()->GetHints();
  return IsShownByUs(source) && hints->FindNestedElementByName("RepresentationType") != nullptr;
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

/// A visible render view of the active layout, or null.
pqView* FindRenderView()
{
  vtkSMViewLayoutProxy* layout = pqActiveObjects::instance().activeLayout();
  const auto views =
    pqApplicationCore::instance()->getServerManagerModel()->findItems<pqRenderView*>();
  for (pqRenderView* view : views)
  {
    if (layout == nullptr || layout->GetViewLocation(view->getViewProxy()) >= 0)
    {
      return view;
    }
  }
  return nullptr;
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
}

void pqViewBehavior::shutdown()
{
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
  pqActiveObjects& active = pqActiveObjects::instance();
  if (!IsShownInRenderView(source) || qobject_cast<pqRenderView*>(active.activeView()) != nullptr)
  {
    return;
  }
  pqView* view = FindRenderView();
  active.setActiveView(view != nullptr
                         ? view
                         : pqApplicationCore::instance()->getObjectBuilder()->createView(
                             pqRenderView::renderViewType(), source->getServer()));
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
