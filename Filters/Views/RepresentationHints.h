#pragma once

class vtkSMProxy;

/// How a representation begins. Sources and filters say it in XML, in the hint AtlasRepresentation,
/// whose elements are applied in their order:
///
/// - ColorArray (`name`, or `suffix`): colours by the first point or cell array of that name
/// - Property (`name`, `values` or `text`): sets a property, if the representation has it
/// - Discs (`array`, `z`, `radius`, all optional): shows points as discs
/// - HiddenSeries (`names`, of columns, with or without the number of a head): a chart does not
/// draw
///   these, unless asked to
/// - FollowArray: see below
///
/// An element with the attribute `port` is for that output port alone.
namespace AttentionAtlas
{

/// Applies the hint of the source of a new representation.
void ApplyHints(vtkSMProxy* representation);

/// Colours a representation whose array is gone by the first point array of its data, if its source
/// has the hint FollowArray: the name of the only array tells what it holds.
void FollowArray(vtkSMProxy* representation);

}
