#include "pqViewBehavior.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqObjectBuilder.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>

#include <vtkPVXMLElement.h>
#include <vtkSMProxy.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMViewLayoutProxy.h>

namespace
{

/// Whether the hints of a proxy, which all our proxies have, state how a render view shows it.
bool IsShownInRenderView(pqPipelineSource* source)
{
  vtkPVXMLElement* hints = source->getProxy()->GetHints();
  return hints != nullptr && hints->FindNestedElementByName("AtlasRepresentation") != nullptr &&
         hints->FindNestedElementByName("RepresentationType") != nullptr;
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
