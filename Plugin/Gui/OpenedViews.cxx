#include "OpenedViews.h"

#include "PropertyHints.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqOutputPort.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <vtkCollection.h>
#include <vtkNew.h>
#include <vtkRenderWindowInteractor.h>
#include <vtkRenderer.h>
#include <vtkSMDomain.h>
#include <vtkSMInputProperty.h>
#include <vtkSMParaViewPipelineControllerWithRendering.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewLayoutProxy.h>
#include <vtkSMViewProxy.h>

#include <algorithm>
#include <string>

namespace
{

pqObjectBuilder* Builder()
{
  return pqApplicationCore::instance()->getObjectBuilder();
}

/// The type of view in which a hint shows an output; empty if there is none.
QString HintedView(vtkPVXMLElement* hints, int port)
{
  for (vtkPVXMLElement* hint : AttentionAtlas::ElementsIn(hints, "View"))
  {
    int of = port;
    hint->GetScalarAttribute("port", &of);
    if (of == port)
    {
      return hint->GetAttributeOrEmpty("type");
    }
  }
  return {};
}

/// A new render view to the right of one.
pqView* SplitView(pqView* view)
{
  pqView* beside = Builder()->createView(pqRenderView::renderViewType(), view->getServer());
  vtkSMViewLayoutProxy* layout = vtkSMViewLayoutProxy::FindLayout(view->getViewProxy());
  if (layout != nullptr)
  {
    layout->RemoveView(beside->getViewProxy());
    const int left = layout->SplitHorizontal(layout->GetViewLocation(view->getViewProxy()), 0.6);
    layout->AssignView(left + 1, beside->getViewProxy());
  }
  return beside;
}

/// A view of the active layout that meets a condition, the active one before others, or null.
template<class Condition>
pqView* FindViewThat(Condition condition)
{
  pqActiveObjects& active = pqActiveObjects::instance();
  QList<pqView*> views = AttentionAtlas::Model()->findItems<pqView*>();
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

}

namespace AttentionAtlas
{

pqServerManagerModel* Model()
{
  return pqApplicationCore::instance()->getServerManagerModel();
}

QList<pqDataRepresentation*> DataIn(pqView* view)
{
  QList<pqDataRepresentation*> found;
  for (pqRepresentation* representation : view->getRepresentations())
  {
    if (auto* data = qobject_cast<pqDataRepresentation*>(representation))
    {
      found.push_back(data);
    }
  }
  return found;
}

QList<pqDataRepresentation*> VisibleDataIn(pqView* view)
{
  QList<pqDataRepresentation*> found;
  for (pqDataRepresentation* data : DataIn(view))
  {
    if (data->isVisible() && data->getOutputPortFromInput() != nullptr)
    {
      found.push_back(data);
    }
  }
  return found;
}

InFront::InFront(pqRenderView* view, std::array<int, 4> region, bool byPoints)
{
  vtkNew<vtkCollection> representations;
  vtkNew<vtkCollection> selections;
  BEGIN_UNDO_EXCLUDE();
  vtkSMRenderViewProxy* rendered = view->getRenderViewProxy();
  if (byPoints)
  {
    rendered->SelectSurfacePoints(region.data(), representations, selections);
  }
  else
  {
    rendered->SelectSurfaceCells(region.data(), representations, selections);
  }
  END_UNDO_EXCLUDE();
  if (auto* proxy = vtkSMProxy::SafeDownCast(representations->GetItemAsObject(0)))
  {
    this->shown = Model()->findItem<pqDataRepresentation*>(proxy);
    this->selection = vtkSMSourceProxy::SafeDownCast(selections->GetItemAsObject(0));
  }
}

pqRenderView* ViewOf(const vtkObject* interactor)
{
  pqRenderView* found = nullptr;
  for (pqRenderView* view : Model()->findItems<pqRenderView*>())
  {
    found = view->getRenderViewProxy()->GetInteractor() == interactor ? view : found;
  }
  return found;
}

std::array<double, 2> PlaceInPlane(pqRenderView* view, int x, int y)
{
  vtkRenderer* renderer = view->getRenderViewProxy()->GetRenderer();
  std::array<std::array<double, 4>, 2> ends;
  for (const int depth : { 0, 1 })
  {
    renderer->SetDisplayPoint(x, y, depth);
    renderer->DisplayToWorld();
    std::array<double, 4>& end = ends.at(depth);
    renderer->GetWorldPoint(end.data());
    for (double& coordinate : end)
    {
      coordinate /= end[3]; // which is the last
    }
  }
  const double height = ends[0][2] - ends[1][2];
  const double share = height != 0 ? ends[0][2] / height : 0;
  return { ends[0][0] + share * (ends[1][0] - ends[0][0]),
    ends[0][1] + share * (ends[1][1] - ends[0][1]) };
}

QString PreferredView(vtkSMProxy* source)
{
  auto* filter = vtkSMSourceProxy::SafeDownCast(source);
  if (filter == nullptr || FindHint(filter, "AtlasRepresentation") == nullptr)
  {
    return {};
  }
  for (int port = 0; port < static_cast<int>(filter->GetNumberOfOutputPorts()); ++port)
  {
    QString type = HintedView(filter->GetHints(), port);
    if (type.isEmpty() && FindHint(filter, "RepresentationType") != nullptr)
    {
      return pqRenderView::renderViewType();
    }
    if (type != "None")
    {
      return type;
    }
  }
  return {};
}

vtkSMDomain* RefusingDomain(vtkSMProxy* filter, pqOutputPort* port)
{
  auto* input = vtkSMInputProperty::SafeDownCast(filter->GetProperty("Input"));
  if (input == nullptr)
  {
    return nullptr;
  }
  vtkSMDomain* domain = nullptr;
  input->RemoveAllUncheckedProxies();
  input->AddUncheckedInputConnection(
    port->getSourceProxy(), static_cast<unsigned int>(port->getPortNumber()));
  const bool isIn = input->IsInDomains(&domain) != 0;
  input->RemoveAllUncheckedProxies();
  return isIn ? nullptr : domain;
}

bool IsEmpty(pqView* view)
{
  return DataIn(view).isEmpty();
}

pqView* CreateView(const QString& type, pqServer* server)
{
  pqActiveObjects& active = pqActiveObjects::instance();
  vtkSMViewLayoutProxy* layout = active.activeLayout();
  const int location = active.activeLayoutLocation();
  pqView* view = Builder()->createView(type, server);
  vtkNew<vtkSMParaViewPipelineControllerWithRendering> controller;
  controller->AssignViewToLayout(view->getViewProxy(), layout, location);
  return view;
}

pqView* FindView(const QString& type)
{
  return FindViewThat([&type](pqView* view) { return type == view->getProxy()->GetXMLName(); });
}

pqView* FindEmptyView(const QString& type)
{
  return FindViewThat(
    [&type](pqView* view) { return type == view->getProxy()->GetXMLName() && IsEmpty(view); });
}

pqView* CreateOwnView(const QString& type, pqServer* server)
{
  BEGIN_UNDO_EXCLUDE();
  if (pqView* place = FindEmptyView(pqRenderView::renderViewType()))
  {
    Builder()->destroy(place);
  }
  pqView* view = CreateView(type, server);
  END_UNDO_EXCLUDE();
  return view;
}

pqView* ViewForOpened(pqView* view)
{
  pqActiveObjects& active = pqActiveObjects::instance();
  if (active.activeView() == view || active.activeView() == nullptr ||
      !IsEmpty(active.activeView()))
  {
    active.setActiveView(SplitView(view));
  }
  return active.activeView();
}

void ShowOutputs(vtkSMSourceProxy* filter, vtkSMViewProxy* view)
{
  vtkNew<vtkSMParaViewPipelineControllerWithRendering> controller;
  filter->UpdatePipeline();
  for (unsigned int i = 0; i < filter->GetNumberOfOutputPorts(); ++i)
  {
    const auto port = static_cast<int>(i);
    const char* type = controller->GetPreferredViewType(filter, port);
    if ((type == nullptr || std::string(type) != "None") && view->CanDisplayData(filter, port))
    {
      controller->Show(filter, port, view);
    }
  }
}

}
