#include "OpenedViews.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqDataRepresentation.h>
#include <pqObjectBuilder.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>

#include <vtkNew.h>
#include <vtkPVXMLElement.h>
#include <vtkRenderWindowInteractor.h>
#include <vtkRenderer.h>
#include <vtkSMParaViewPipelineControllerWithRendering.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewLayoutProxy.h>
#include <vtkSMViewProxy.h>

#include <algorithm>
#include <string>

namespace
{

/// The type of view in which a hint shows an output; empty if there is none.
QString HintedView(vtkPVXMLElement* hints, int port)
{
  for (unsigned int i = 0; i < hints->GetNumberOfNestedElements(); ++i)
  {
    vtkPVXMLElement* hint = hints->GetNestedElement(i);
    int of = port;
    hint->GetScalarAttribute("port", &of);
    if (hint->GetName() == std::string("View") && of == port)
    {
      return hint->GetAttributeOrEmpty("type");
    }
  }
  return {};
}

/// A new render view to the right of one.
pqView* SplitView(pqView* view)
{
  pqView* beside = pqApplicationCore::instance()->getObjectBuilder()->createView(
    pqRenderView::renderViewType(), view->getServer());
  vtkSMViewLayoutProxy* layout = vtkSMViewLayoutProxy::FindLayout(view->getViewProxy());
  if (layout != nullptr)
  {
    layout->RemoveView(beside->getViewProxy());
    const int left = layout->SplitHorizontal(layout->GetViewLocation(view->getViewProxy()), 0.6);
    layout->AssignView(left + 1, beside->getViewProxy());
  }
  return beside;
}

}

namespace AttentionAtlas
{

pqRenderView* ViewOf(const vtkObject* interactor)
{
  pqRenderView* found = nullptr;
  auto* model = pqApplicationCore::instance()->getServerManagerModel();
  for (pqRenderView* view : model->findItems<pqRenderView*>())
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
    renderer->GetWorldPoint(ends.at(depth).data());
  }
  for (std::array<double, 4>& end : ends)
  {
    const double weight = end[3];
    for (double& coordinate : end)
    {
      coordinate /= weight;
    }
  }
  const double height = ends[0][2] - ends[1][2];
  const double share = height != 0 ? ends[0][2] / height : 0;
  return { ends[0][0] + share * (ends[1][0] - ends[0][0]),
    ends[0][1] + share * (ends[1][1] - ends[0][1]) };
}

QString PreferredView(vtkSMProxy* source)
{
  vtkPVXMLElement* hints = source->GetHints();
  auto* filter = vtkSMSourceProxy::SafeDownCast(source);
  if (hints == nullptr || filter == nullptr ||
      hints->FindNestedElementByName("AtlasRepresentation") == nullptr)
  {
    return {};
  }
  for (int port = 0; port < static_cast<int>(filter->GetNumberOfOutputPorts()); ++port)
  {
    QString type = HintedView(hints, port);
    if (type.isEmpty() && hints->FindNestedElementByName("RepresentationType") != nullptr)
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

bool IsEmpty(pqView* view)
{
  const QList<pqRepresentation*> shown = view->getRepresentations();
  return std::none_of(shown.begin(), shown.end(),
    [](pqRepresentation* one) { return qobject_cast<pqDataRepresentation*>(one) != nullptr; });
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
