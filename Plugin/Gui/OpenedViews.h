#pragma once

#include <QString>

#include <array>

class pqRenderView;
class pqView;
class vtkObject;
class vtkSMProxy;
class vtkSMSourceProxy;
class vtkSMViewProxy;

/// What a double click in a view does: finds the place, and shows a new filter beside.
namespace AttentionAtlas
{

/// The render view of an interactor; null if there is none.
pqRenderView* ViewOf(const vtkObject* interactor);

/// Where the line of sight through a pixel meets the plane z = 0.
std::array<double, 2> PlaceInPlane(pqRenderView* view, int x, int y);

/// The type of view in which the first output of a source that is shown belongs, as ParaView takes
/// it from the hint View; RenderView without one; empty for sources that are not ours or not shown.
QString PreferredView(vtkSMProxy* source);

/// Whether a view shows no data, hidden ones neither.
bool IsEmpty(pqView* view);

/// The view for what was opened by a double click in a view: the active one, if it was made for it
/// (pqViewBehavior), or a new render view to the right, which is active from now on.
pqView* ViewForOpened(pqView* view);

/// Shows the outputs of a filter in a view, as Apply does.
void ShowOutputs(vtkSMSourceProxy* filter, vtkSMViewProxy* view);

}
