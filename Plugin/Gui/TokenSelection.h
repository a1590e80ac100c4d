#pragma once

#include <vtkSmartPointer.h>

#include <optional>

class vtkPVDataInformation;
class vtkSMProxy;
class vtkSMSourceProxy;

/// What the selected points of a view are: a head, and tokens. The points are on the server; only
/// what is returned is sent.
namespace AttentionAtlas
{

/// The index of a layer in its model, and of a head in this layer.
struct HeadNumber
{
  int layer = 0;
  int head = 0;
};

/// Whether points can be selected as tokens: their pedigree ids are the array Token Index.
bool ShowsTokens(vtkPVDataInformation* data);

/// Whether the points or cells are of several heads, by the arrays Layer and Head.
bool ShowsSeveralHeads(vtkPVDataInformation* data);

/// The head of all points or cells; none if they are of several.
std::optional<HeadNumber> OnlyHead(vtkPVDataInformation* data);

/// The selected part of an output, up to date.
vtkSmartPointer<vtkSMSourceProxy> ExtractSelected(
  vtkSMSourceProxy* source, int port, vtkSMSourceProxy* selection);

/// A selection, as of an output port, of the tokens of some points in all heads. Null if there are
/// none, or more than `limit`.
vtkSmartPointer<vtkSMSourceProxy> SelectTokensOf(vtkSMSourceProxy* points, vtkIdType limit);

/// Whether a selection is one that SelectTokensOf has made.
bool SelectsTokens(vtkSMSourceProxy* selection);

/// The nearest source or filter upstream whose output is a recording, or the proxy itself; null if
/// there is none.
vtkSMSourceProxy* RecordingOf(vtkSMProxy* proxy);

}
