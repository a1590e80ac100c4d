#include "OpenedViews.h"

#include <pqActiveObjects.h>
#include <pqApplicationCore.h>
#include <pqObjectBuilder.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>

#include <vtkNew.h>
#include <vtkRenderWindowInteractor.h>
#include <vtkRenderer.h>
#include <vtkSMParaViewPipelineControllerWithRendering.h>
#include <vtkSMRenderViewProxy.h>
#include <vtkSMSourceProxy.h>
#include <vtkSMViewLayoutProxy.h>
#include <vtkSMViewProxy.h>

#include <string>

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
