#pragma once

#include <string>
#include <vector>

class vtkSMProxy;

/// Charts, and ParaView's Image Chart View, which shows an image between axes; ParaView 5.11 has
/// none of the latter.
namespace AttentionAtlas
{

/// Titles the axes of the view that shows a chart by the attributes `bottom` and `left` of the hint
/// Chart of its source, see RepresentationHints.h, unless they have titles of the user. isNew:
/// whether the view has just begun to show it; later a title that the user deletes stays away.
void TitleChart(vtkSMProxy* representation, bool isNew);

/// Puts the words of the columns `labels` of the hint Chart in place of numbers: all that fit, or
/// the first of each layer; and lets an axis of points begin and end beside them. `labels`: all
/// that there were before, and are now. Labels and ranges of the user are kept. A server's columns
/// do not reach the client, and so its rows keep their numbers.
void LabelChart(vtkSMProxy* representation, std::vector<std::string>& labels);

/// Whether a representation is one of an Image Chart View. It maps all arrays through tables, and
/// so cannot show colors as they are.
bool IsImageChart(vtkSMProxy* representation);

/// Completes the view that shows an image of this plugin. The axes of a torus are titled theta_1
/// and theta_2. Those of an attention map are Key and Query, with its tokens as labels; a server's
/// tokens have numbers. The legend is hidden if it would show classes, which it draws in one color.
/// Titles of the user are kept, and the labels beside them.
void CompleteImageChart(vtkSMProxy* representation);

}
