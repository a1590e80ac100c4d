#include "vtkSMAtlasDiagramViewProxy.h"

#include "vtkDiagramView.h"

#include <vtkCamera.h>
#include <vtkClientServerStream.h>
#include <vtkCommand.h>
#include <vtkObjectFactory.h>
#include <vtkRenderWindow.h>
#include <vtkSMPropertyHelper.h>

#include <algorithm>
#include <cmath>

vtkStandardNewMacro(vtkSMAtlasDiagramViewProxy);

vtkSMAtlasDiagramViewProxy::vtkSMAtlasDiagramViewProxy()
{
  // Before room is made for bars.
  this->AddObserver(vtkCommand::ResetCameraEvent, this, &vtkSMAtlasDiagramViewProxy::FitAgain, 1);
}

vtkSMAtlasDiagramViewProxy::Frame vtkSMAtlasDiagramViewProxy::GetFrame()
{
  vtkCamera* camera = this->GetActiveCamera();
  const double* focus = camera->GetFocalPoint();
  return { focus[0], focus[1], camera->GetParallelScale() };
}

void vtkSMAtlasDiagramViewProxy::SetFit(bool on)
{
  vtkSMPropertyHelper(this, "FitToData").Set(on ? 1 : 0);
  auto* view = vtkDiagramView::SafeDownCast(this->GetClientSideObject());
  if (!on && view != nullptr)
  {
    view->SetMargins(std::nullopt);
  }
}

vtkTypeUInt32 vtkSMAtlasDiagramViewProxy::PreRender(bool interactive)
{
  const vtkTypeUInt32 processes = this->Superclass::PreRender(interactive);
  // A larger picture is rendered tile by tile, with the camera of each.
  const int* tiles = this->GetRenderWindow()->GetTileScale();
  if (this->IsFitting || tiles[0] > 1 || tiles[1] > 1)
  {
    return processes;
  }
  // ParaView itself moves the focal point when it shows flat data for the first time.
  const Frame frame = this->GetFrame();
  if (this->Fitted && (frame[2] != (*this->Fitted)[2] || (interactive && frame != *this->Fitted)))
  {
    this->SetFit(false);
    this->Fitted.reset();
  }
  if (!interactive && vtkSMPropertyHelper(this, "FitToData").GetAsInt() != 0)
  {
    this->Fit();
  }
  return processes;
}

void vtkSMAtlasDiagramViewProxy::Fit()
{
  this->IsFitting = true;
  vtkClientServerStream stream;
  stream << vtkClientServerStream::Invoke << VTKOBJECT(this) << "ResetCamera"
         << vtkClientServerStream::End;
  this->ExecuteStream(stream);
  this->IsFitting = false;
  this->Fitted = this->GetFrame();
}

/// After the camera is reset, not to a part of the data alone.
void vtkSMAtlasDiagramViewProxy::FitAgain()
{
  auto* view = vtkDiagramView::SafeDownCast(this->GetClientSideObject());
  if (this->IsFitting || view == nullptr)
  {
    return;
  }
  const std::array<double, 6> bounds = view->GetShownBounds();
  const Frame frame = this->GetFrame();
  const double near = 1e-6 * std::max(bounds[1] - bounds[0], bounds[3] - bounds[2]);
  const bool isWhole = std::abs(frame[0] - (bounds[0] + bounds[1]) / 2) <= near &&
                       std::abs(frame[1] - (bounds[2] + bounds[3]) / 2) <= near;
  this->Fitted.reset();
  this->SetFit(isWhole);
}
