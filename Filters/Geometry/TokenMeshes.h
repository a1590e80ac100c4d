#pragma once

#include "Geometry/PlaceBinding.h"

#include <vtkDataSet.h>
#include <vtkSmartPointer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

class vtkDataObject;
class vtkDataSetAttributes;
class vtkFieldData;
class vtkInformationVector;

/// Datasets and composite datasets whose points or cells are tokens.
namespace AttentionAtlas
{

class RankGroup;

/// One mesh of an input, and its copy in the output.
struct TokenMesh
{
  vtkSmartPointer<vtkDataSet> input;
  vtkDataSet* output = nullptr; ///< shares the arrays of the input
  std::string name;             ///< for messages
};

/// Makes the output a shallow copy of the input, a dataset or a composite of them. Returns its
/// meshes in their order; on several ranks, a mesh of which another rank has the places is empty.
/// Throws atlas::OptionError for a composite of other data, such as tables.
std::vector<TokenMesh> CopyMeshes(vtkDataObject* input, vtkDataObject* output);

/// Announces the time steps of the first input and of another one together: those of the first
/// alone would keep an output while the other changes.
void AddTimes(vtkInformationVector** inputs, int other, vtkInformationVector* outputs);

/// The point or cell data of a mesh. `association`: vtkDataObject::POINT or CELL.
vtkDataSetAttributes* AttributesOf(vtkDataSet* mesh, int association);

/// The number of points or cells.
std::int64_t CountPlaces(vtkDataSet* mesh, int association);

/// "point" or "cell".
std::string PlaceName(int association);

/// The positions of the points of a mesh, or of the centers of its cells: the means of their
/// points.
atlas::PositionOf PositionsOf(vtkDataSet* mesh, int association, const atlas::Progress& progress);

/// Of each place 1 if another piece has it, too, or it is hidden; empty if none is.
std::vector<std::uint8_t> GhostsOf(vtkDataSet* mesh, int association);

/// How the places of a mesh are bound to tokens, as the field data of a bound mesh states it.
struct Binding
{
  int association = 0;
  std::string tokens;  ///< name of the array of tokens; empty for dense slices
  std::string weights; ///< name of the array of weights; empty without slices
  std::int64_t firstToken = 0;
  std::int64_t tokensPerStep = 0; ///< 0: not in time
  std::int64_t step = 0;

  std::string Text() const;
  bool operator==(const Binding& other) const { return this->Text() == other.Text(); }
};

void WriteBinding(const Binding& binding, vtkFieldData* fields);

/// The binding of a mesh; none if it is not bound.
std::optional<Binding> ReadBinding(vtkFieldData* fields);

/// The binding of all meshes with places, on all ranks; none if there are no places. Throws
/// atlas::OptionError for meshes that are not bound, or not in the same way.
std::optional<Binding> FindBinding(const std::vector<TokenMesh>& meshes, const RankGroup& ranks);

/// The places of a bound mesh, with the memory of its arrays. Throws atlas::OptionError if these
/// are missing or of another shape.
atlas::BoundPlaces PlacesOf(const TokenMesh& mesh, const Binding& binding);

}
