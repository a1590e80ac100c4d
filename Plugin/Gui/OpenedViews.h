#pragma once

#include <array>

class pqRenderView;
class pqView;
class vtkObject;
class vtkSMSourceProxy;
class vtkSMViewProxy;

/// What a double click in a view does: finds the place, and shows a new filter beside.
namespace AttentionAtlas
{

/// The render view of an interactor; null if there is none.
pqRenderView* ViewOf(const vtkObject* interactor);

/// Where the line of sight through a pixel meets the plane z = 0.
std::array<double, 2> PlaceInPlane(pqRenderView* view, int x, int y);

/// A new render view to the right of one, which is active from now on.
pqView* SplitView(pqView* view);

/// Shows the outputs of a filter in a view, as Apply does.
void ShowOutputs(vtkSMSourceProxy* filter, vtkSMViewProxy* view);

}
