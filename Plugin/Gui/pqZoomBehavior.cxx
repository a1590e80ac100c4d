#include "pqZoomBehavior.h"

#include "OpenedViews.h"

#include <pqApplicationCore.h>
#include <pqDataRepresentation.h>
#include <pqOutputPort.h>
#include <pqPipelineSource.h>
#include <pqRenderView.h>
#include <pqServerManagerModel.h>
#include <pqUndoStack.h>

#include <vtkCamera.h>
#include <vtkCommand.h>
#include <vtkDataObject.h>
#include <vtkMath.h>
#include <vtkPVArrayInformation.h>
#include <vtkPVDataInformation.h>
#include <vtkRenderWindowInteractor.h>
#include <vtkSMPropertyHelper.h>
#include <vtkSMProxy.h>
#include <vtkSMRenderViewProxy.h>

#include <QTimer>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace
{

/// Beyond the positions of any text.
constexpr double LargestPosition = 1 << 29;

/// A rectangle in the plane z = 0.
struct Visible
{
  std::array<double, 2> x;
  std::array<double, 2> y;
};

/// What a view shows of the plane, with a quarter more on each side; nothing unless it looks
/// straight at it.
std::optional<Visible> VisibleIn(pqRenderView* view)
{
  vtkCamera* camera = view->getRenderViewProxy()->GetActiveCamera();
  const QSize size = view->getSize();
  const double* direction = camera->GetDirectionOfProjection();
  const double* up = camera->GetViewUp();
  constexpr double straight = 0.999;
  if (size.height() <= 0 || direction[2] > -straight || up[1] < straight)
  {
    return std::nullopt;
  }
  const double* focus = camera->GetFocalPoint();
  const double half = camera->GetParallelProjection() != 0
                        ? camera->GetParallelScale()
                        : camera->GetPosition()[2] *
                            std::tan(vtkMath::RadiansFromDegrees(camera->GetViewAngle()) / 2);
  const double height = 1.5 * half;
  const double width = height * size.width() / size.height();
  return Visible{ { focus[0] - width, focus[0] + width },
    { focus[1] - height, focus[1] + height } };
}

/// Positions whose squares meet a range; nothing if there are none at or after 0.
std::optional<std::vector<int>> PositionsIn(double from, double to)
{
  const double first = std::clamp(std::floor(from + 0.5), 0., LargestPosition);
  const double last = std::clamp(std::ceil(to + 0.5), 0., LargestPosition);
  if (last <= first)
  {
    return std::nullopt;
  }
  return std::vector<int>{ static_cast<int>(first), static_cast<int>(last) };
}

/// Whether an output is a map that follows the camera, and pooled.
bool Follows(pqOutputPort* port)
{
  vtkSMProxy* proxy = port->getSource()->getProxy();
  vtkSMProperty* property = proxy->GetProperty("FollowCamera");
  if (property == nullptr || port->getPortNumber() != 0 ||
      vtkSMPropertyHelper(property).GetAsInt() == 0)
  {
    return false;
  }
  vtkPVDataInformation* data = port->getDataInformation();
  return data != nullptr && data->GetArrayInformation("Cell Size", vtkDataObject::FIELD) != nullptr;
}

/// Sets a window. Returns whether it is another one.
bool SetWindow(vtkSMProxy* proxy, const char* name, const std::vector<int>& window)
{
  vtkSMPropertyHelper helper(proxy, name);
  if (helper.GetIntArray() == window)
  {
    return false;
  }
  helper.Set(window.data(), 2);
  return true;
}

/// Shows what is visible of the maps of a view.
void Follow(pqRenderView* view)
{
  const std::optional<Visible> visible = VisibleIn(view);
  if (!visible)
  {
    return;
  }
  const auto keys = PositionsIn(visible->x[0], visible->x[1]);
  const auto queries = PositionsIn(-visible->y[1], -visible->y[0]);
  bool isChanged = false;
  for (pqDataRepresentation* shown : AttentionAtlas::VisibleDataIn(view))
  {
    pqOutputPort* port = shown->getOutputPortFromInput();
    if (!keys || !queries || !Follows(port))
    {
      continue;
    }
    vtkSMProxy* proxy = port->getSource()->getProxy();
    BEGIN_UNDO_EXCLUDE();
    const bool hasKeys = SetWindow(proxy, "KeyWindow", *keys);
    const bool hasQueries = SetWindow(proxy, "QueryWindow", *queries);
    proxy->UpdateVTKObjects();
    END_UNDO_EXCLUDE();
    isChanged = isChanged || hasKeys || hasQueries;
  }
  if (isChanged)
  {
    view->render();
  }
}

}

void pqZoomBehavior::startup()
{
  pqServerManagerModel* model = AttentionAtlas::Model();
  this->connect(model, SIGNAL(viewAdded(pqView*)), SLOT(meet(pqView*)));
  for (pqView* view : model->findItems<pqView*>())
  {
    this->meet(view);
  }
}

void pqZoomBehavior::shutdown()
{
  this->Connector->Disconnect();
  AttentionAtlas::Model()->disconnect(this);
}

void pqZoomBehavior::meet(pqView* view)
{
  auto* rendered = qobject_cast<pqRenderView*>(view);
  vtkRenderWindowInteractor* interactor =
    rendered != nullptr ? rendered->getRenderViewProxy()->GetInteractor() : nullptr;
  if (interactor != nullptr)
  {
    this->Connector->Connect(
      interactor, vtkCommand::EndInteractionEvent, this, SLOT(follow(vtkObject*)));
  }
}

void pqZoomBehavior::follow(vtkObject* interactor)
{
  // After the view has taken note of the end of the interaction.
  if (pqRenderView* view = AttentionAtlas::ViewOf(interactor))
  {
    QTimer::singleShot(0, view, [view] { Follow(view); });
  }
}
