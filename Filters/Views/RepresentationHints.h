#pragma once

class vtkSMProxy;

/// The initial appearance of a representation. Sources and filters define it in XML by the hint
/// AtlasRepresentation, whose elements are applied in order:
///
/// - ColorArray (`name`, or `suffix`): colors by the first point or cell array of that name
/// - Property (`name`, `values` or `text`): sets a property, if the representation has it
/// - Discs (`array`, `z`, `radius`, all optional): shows points as discs
/// - HiddenSeries, ShownSeries (`names` of columns, with or without a head number, separated by
///   semicolons): series that a chart hides at first, or the only ones that it shows; these get the
///   colors of classes; with `zeros` of 0 those that are 0 everywhere are hidden, too
/// - Axes (`x`, `y`): flat data have labelled axes with these titles
/// - Chart (`bottom`, `left`, `by`, `labels`, `at`): titles of the axes of the chart, unless it has
///   some: a title each, or one for each value from 0 of the property `by`, separated by
///   semicolons; and the columns with the words of its rows, separated likewise and joined by
///   points, which stand at the values of the column `at`, or at the numbers of the rows; see
///   Charts.h
/// - FollowArray: see below
/// - Title: a render view that begins to show the data has a title, as diagrams and charts always
///   have
/// - Explanation (`text`): what a diagram says of the picture below its title
///
/// An element with the attribute `port` applies only to that output port.
namespace AttentionAtlas
{

/// Applies the hint of the source of a new representation.
void ApplyHints(vtkSMProxy* representation);

/// Changes Surface to Opaque Surface if several ranks render: for arrays whose values are colors.
void UseOpaqueSurface(vtkSMProxy* representation);

/// Colors a representation by another array, on points or on cells as the previous one, or by the
/// same in another table, and replaces the legend of that.
void Recolor(vtkSMProxy* representation, const char* array);

/// If the array of a representation no longer exists and its source has the hint FollowArray, as
/// those whose array is named after its content, colors it by one that does, on points or cells as
/// it was: the first of `names` of the hint, separated by semicolons, or the first array.
void FollowArray(vtkSMProxy* representation);

}
