#pragma once

#include "Circuits/Circuit.h"

#include <cstdint>
#include <string>
#include <vector>

class vtkFieldData;
class vtkPolyData;

namespace AttentionAtlas
{

/// The nodes and edges of a model, or a circuit of it, as graphs and tables.
class CircuitGraph
{
public:
  explicit CircuitGraph(atlas::CircuitShape shape);

  const std::vector<atlas::CircuitNode>& GetNodes() const { return this->Nodes; }

  /// Adds the arrays Node (string), Layer and Head (int, -1 where there is none) of some nodes.
  void AddNodes(const std::vector<std::int32_t>& nodes, vtkFieldData* data) const;

  /// Adds the arrays From, To, Input (string), From Layer, From Head, To Layer, To Head (int) and
  /// Effect (double).
  void AddEdges(const std::vector<atlas::CircuitEdge>& edges, vtkFieldData* data) const;

  /// Makes a point per node, with the arrays of AddNodes and In Circuit (int, 0 or 1), and the
  /// field arrays Architecture, MLPs (string), Layers and Heads (int). Heads are at (head, layer),
  /// as Head Composition has them, and the others around them. An MLP that reads the heads of its
  /// layer is above them, so that lines from them do not cover each other.
  void MakePoints(const std::vector<std::int32_t>& inCircuit, vtkPolyData* output) const;

  /// Makes a line per edge, by rising magnitude, with the arrays of AddEdges, Layer, Head, Head
  /// Name, Opacity and CompositionColor (vtkAttributionPatching.h), the legend and explanations.
  /// `edges`: by falling magnitude; `all`: of how many they are the strongest.
  void MakeLines(std::vector<atlas::CircuitEdge> edges, std::size_t all, vtkPolyData* output) const;

  /// Makes the points vertices with names.
  void MakeLabels(vtkPolyData* output) const;

private:
  atlas::CircuitShape Shape;
  std::vector<atlas::CircuitNode> Nodes;

  std::string EdgeName(const atlas::CircuitEdge& edge) const;
};

/// The circuit of a graph: the points in the circuit, and the lines. Throws atlas::OptionError if
/// it is no such graph, or has other points.
atlas::Circuit ToCircuit(vtkPolyData* graph);

}
