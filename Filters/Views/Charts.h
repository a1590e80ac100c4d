#pragma once

#include <string>
#include <vector>

class vtkSMProxy;

/// Charts.
namespace AttentionAtlas
{

/// Titles the axes of the view that shows a chart by the attributes `bottom` and `left` of the hint
/// Chart of its source, see RepresentationHints.h, or by the column that is along the horizontal
/// one instead, unless they have titles of the user. isNew: whether the view has just begun to show
/// the chart; later a title that the user deletes stays away.
void TitleAxes(vtkSMProxy* representation, bool isNew);

/// Hides the legend of a chart with one series, whose axis names it, until there are more. A legend
/// that the user shows again stays.
void FitLegend(vtkSMProxy* representation);

/// Puts words in place of the numbers of rows, which remain for tables of a server: those of the
/// columns `labels` of the hint Chart, or the layer and head of tables with a row per head; all
/// that fit, or the first of each layer. Along a column with a few whole numbers, only these are
/// there. Lets an axis of points begin and end beside its labels. `labels`: all that there were,
/// and are now. Those of the user are kept.
void LabelChart(vtkSMProxy* representation, std::vector<std::string>& labels);

}
