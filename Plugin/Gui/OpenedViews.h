#pragma once

#include <vtkSmartPointer.h>

#include <QList>
#include <QString>

#include <array>

class pqDataRepresentation;
class pqOutputPort;
class pqRenderView;
class pqServer;
class pqServerManagerModel;
class pqView;
class vtkObject;
class vtkSMDomain;
class vtkSMProxy;
class vtkSMSourceProxy;
class vtkSMViewProxy;

/// What a double click in a view does: finds the place, and shows a new filter beside.
namespace AttentionAtlas
{

pqServerManagerModel* Model();

/// The data that a view has, and those that it shows.
QList<pqDataRepresentation*> DataIn(pqView* view);
QList<pqDataRepresentation*> VisibleDataIn(pqView* view);

/// What is in front in a region of a view (left, bottom, right, top) by its points or cells, and a
/// selection of these; null if there is nothing. Selects nothing.
struct InFront
{
  pqDataRepresentation* shown = nullptr;
  vtkSmartPointer<vtkSMSourceProxy> selection;

  InFront(pqRenderView* view, std::array<int, 4> region, bool byPoints);
};

/// The render view of an interactor; null if there is none.
pqRenderView* ViewOf(const vtkObject* interactor);

/// Where the line of sight through a pixel meets the plane z = 0.
std::array<double, 2> PlaceInPlane(pqRenderView* view, int x, int y);

/// The type of view in which the first output of a source that is shown belongs, as ParaView takes
/// it from the hint View; RenderView without one; empty for sources that are not ours or not shown.
QString PreferredView(vtkSMProxy* source);

/// The domain that refuses an output as the input of a filter; null if the filter can take it.
vtkSMDomain* RefusingDomain(vtkSMProxy* filter, pqOutputPort* port);

/// Whether a view shows no data, hidden ones neither.
bool IsEmpty(pqView* view);

/// A view of a type in the active layout, the active one before others, or null; one in which there
/// is nothing.
pqView* FindView(const QString& type);
pqView* FindEmptyView(const QString& type);

/// A new view, in the active cell of the layout if that is empty, or beside it.
pqView* CreateView(const QString& type, pqServer* server);

/// A new view in the place of an empty render view, or beside the others; it cannot be undone.
pqView* CreateOwnView(const QString& type, pqServer* server);

/// The view for what was opened by a double click in a view: the active one, if it was made for it
/// (pqViewBehavior), or a new render view to the right, which is active from now on.
pqView* ViewForOpened(pqView* view);

/// Shows the outputs of a filter in a view, as Apply does.
void ShowOutputs(vtkSMSourceProxy* filter, vtkSMViewProxy* view);

}
