#pragma once

class vtkSMProxy;
class vtkSMSessionProxyManager;

/// The lookup tables of our arrays.
namespace AttentionAtlas
{

struct Coloring;

/// Gives the lookup table of the coloured array its first look, unless somebody has fitted or
/// annotated it already: then it is the user's. Classes that it lacks are added to it.
void PrepareTable(const Coloring& coloring, vtkSMSessionProxyManager* manager);

/// Sets whether a representation maps its colour array through its table. ParaView's colour map
/// editor answers that by fitting the table that the representation has at that moment, which still
/// is the one of another array, to the range of the new array; so the table is kept as it was.
void SetMapScalars(vtkSMProxy* representation, bool map);

}
