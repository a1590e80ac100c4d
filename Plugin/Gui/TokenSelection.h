#pragma once

#include <vtkSmartPointer.h>
#include <vtkType.h>

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

/// Whether points or cells can be selected as tokens: their pedigree ids are the array Token Index.
/// vtkDataObject::POINT or CELL; -1 for neither.
int TokenAssociation(vtkPVDataInformation* data);

/// Whether the points, cells or rows are of several heads, by the arrays Layer and Head.
bool ShowsSeveralHeads(vtkPVDataInformation* data);

/// The only value of an array of integers of the points, else of the cells, else of the rows; none
/// if it has several in each, or is not there.
std::optional<int> OnlyValue(vtkPVDataInformation* data, const char* name);

/// The head of all points, else of all cells, as of a line between two heads, else of all rows;
/// none if they are of several or of no head (-1).
std::optional<HeadNumber> OnlyHead(vtkPVDataInformation* data);

/// The selected part of an output, up to date.
vtkSmartPointer<vtkSMSourceProxy> ExtractSelected(
  vtkSMSourceProxy* source, int port, vtkSMSourceProxy* selection);

/// The tokens of some points or cells, in ascending order.
std::vector<vtkIdType> TokensOf(vtkSMSourceProxy* points);

/// A selection of tokens for the points or cells of an output port.
vtkSmartPointer<vtkSMSourceProxy> SelectTokens(
  vtkSMSourceProxy* source, const std::vector<vtkIdType>& tokens, int association);

/// The head of the point at x, y of an image of several heads, whose points are one apart, such as
/// an Attention Matrix; none between panels.
std::optional<HeadNumber> HeadAt(vtkSMSourceProxy* source, int port, double x, double y);

/// What is said of the place of an image, or of selected cells of another output: lines, see
/// vtkPointedText; empty if there is nothing. `selection`: null for an image. `quantities`: the
/// names of arrays, one per line.
std::string PointedText(vtkSMSourceProxy* source, int port, const std::array<double, 2>& place,
  vtkSMSourceProxy* selection, const char* quantities);

/// Whether a selection is one that SelectTokens has made.
bool SelectsTokens(vtkSMSourceProxy* selection);

/// Whether the first output of a source states this format.
bool HasFormat(vtkSMSourceProxy* source, const char* format);

/// The nearest source or filter upstream on first inputs that meets a condition, or the proxy
/// itself; null if there is none.
vtkSMSourceProxy* FindUpstream(
  vtkSMProxy* proxy, const std::function<bool(vtkSMSourceProxy*)>& condition);

/// The nearest one whose output is a recording.
vtkSMSourceProxy* RecordingOf(vtkSMProxy* proxy);

/// The transformers and recordings upstream on all inputs, or the proxy itself. Two filters with a
/// common one show heads of the same model.
std::set<vtkSMProxy*> ModelsOf(vtkSMProxy* proxy);

}
