#pragma once

#include <cstddef>

class vtkSMProxy;
class vtkSMViewProxy;

/// The color bars and legends of our arrays, and the room that they need in a render view.
namespace AttentionAtlas
{

/// Whether the user has chosen in ParaView's settings to show color bars by hand. Then we show no
/// bars, no axes, and no titles and words in charts.
bool AreBarsByHand();

/// Shows the bar or legend of the array that colors a representation, which a view begins to show,
/// unless bars are shown by hand, no legend explains the colors, such as those of a picture, or the
/// user has hidden it while another representation in the view uses it.
void ShowBar(vtkSMProxy* representation, vtkSMViewProxy* view);

/// Hides the legend of a representation whose data has none any more, unless other data in the view
/// has it. Returns whether it was shown and is now hidden.
bool HideLegend(vtkSMProxy* representation, vtkSMViewProxy* view);

/// Shows a legend again that HideLegend hid, or as ShowBar the first one of data that had none.
void ShowLegend(vtkSMProxy* representation, vtkSMViewProxy* view, bool wasHidden);

/// Completes a new bar: a title in words with the unit, short numbers at its ends. Colors that no
/// legend explains get no bar.
void CompleteBar(vtkSMProxy* bar);

/// Gives the texts of a bar, or those of the axes of a representation, the color that is legible in
/// a view whose background is not that of the color palette.
void SetInk(vtkSMProxy* proxy, vtkSMViewProxy* view);

/// Gives the texts of a bar of our data, and of any in a diagram, the size of other texts there,
/// and a legend of our data with a color like the background a gray ground.
void FitBar(vtkSMProxy* bar, vtkSMViewProxy* view);

/// Fits the legends of a table whose entries have changed, of which it had so many before: their
/// ground, and their length unless the user has set it.
void FitBars(vtkSMProxy* table, std::size_t before);

/// How much of the width of a view the bars in its upper right corner take, in points. 0: none.
double RoomBesideTitle(vtkSMViewProxy* view);

/// After a view has reset its camera: moves and zooms it so that our data lie beside their color
/// bars and axis labels, and not below them. Does nothing in views without these.
void MakeRoom(vtkSMViewProxy* view);

}
