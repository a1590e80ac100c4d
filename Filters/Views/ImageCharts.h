#pragma once

class vtkSMProxy;

/// ParaView's Image Chart View, which shows an image between axes; ParaView 5.11 has none.
namespace AttentionAtlas
{

/// Whether a representation is one of an Image Chart View. It maps all arrays through tables, and
/// so cannot show colors as they are.
bool IsImageChart(vtkSMProxy* representation);

/// Completes the view that shows an image of this plugin. The axes of a torus are titled theta_1
/// and theta_2. Those of an attention map are Key and Query, with its tokens as labels; a server's
/// tokens have numbers. The legend is hidden if it would show classes, which it draws in one color.
/// Titles of the user are kept, and the labels beside them.
void CompleteImageChart(vtkSMProxy* representation);

}
