#pragma once

class vtkSMProxy;
class vtkSMSessionProxyManager;

/// The lookup tables of our arrays.
namespace AttentionAtlas
{

struct Coloring;

/// Initializes the lookup table of the array that colors a representation, unless it was already
/// rescaled or annotated: then it belongs to the user. Missing classes are added in any case.
/// `first`: whether the representation is new.
void PrepareTable(const Coloring& coloring, bool first, vtkSMProxy* representation);

/// Takes the title and the entries of the array's legend, if it has one, as set here: they follow
/// the data until the user has other ones.
void MeetLegend(const Coloring& coloring, vtkSMProxy* representation);

/// Whether a representation has a table of its own.
bool HasOwnTable(vtkSMProxy* representation);

/// Whether another legend is shown of the array of a representation, which shares its table: that
/// of another source in another view.
bool IsLegendOfOthers(const Coloring& coloring, vtkSMProxy* representation);

/// Fits the table of heat or of signed values to the largest magnitude that representations show
/// with it, unless the user has changed it. Does nothing for other arrays.
void FitScale(const Coloring& coloring, vtkSMSessionProxyManager* manager);

/// Sets whether a representation maps its array through its table, and restores this: in response
/// ParaView's color map editor rescales it to the range of the array, while it still belongs to
/// another one.
void SetMapScalars(vtkSMProxy* representation, bool map);

}
