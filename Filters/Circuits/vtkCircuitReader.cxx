#include "vtkCircuitReader.h"

#include "ArrayNames.h"
#include "CircuitGraph.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Task.h"

#include <vtkCellData.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

vtkStandardNewMacro(vtkCircuitReader);

namespace
{

/// Which of two circuits have a node or an edge of one of them.
template<class Item, class Before = std::less<>>
std::string Owner(const atlas::CircuitComparison& parts, std::vector<Item> atlas::Circuit::* list,
  const Item& item, const Before& before = {})
{
  const auto has = [&](const atlas::Circuit& part)
  { return std::binary_search((part.*list).begin(), (part.*list).end(), item, before); };
  return has(parts.both) ? "both" : has(parts.first) ? "file" : "other";
}

}

vtkCircuitReader::vtkCircuitReader()
  : vtkTaskAlgorithm({}, { "vtkPolyData", "vtkTable", "vtkTable", "vtkPolyData" })
{
}

int vtkCircuitReader::CanReadFile(const char* fileName)
{
  try
  {
    atlas::ReadCircuit(fileName);
    return 1;
  }
  catch (const std::exception&)
  {
    return 0;
  }
}

void vtkCircuitReader::Execute(Task& task)
{
  if (this->FileName.empty() || !task.IsFirst())
  {
    return;
  }
  task.Reads(this->FileName.c_str());
  atlas::Circuit circuit = atlas::ReadCircuit(this->FileName);
  atlas::CircuitComparison parts;
  if (!this->CompareWith.empty())
  {
    task.Reads(this->CompareWith.c_str());
    const atlas::Circuit other = atlas::ReadCircuit(this->CompareWith);
    parts = atlas::Compare(circuit, other);
    std::vector<std::int32_t> nodes = circuit.nodes;
    std::vector<atlas::CircuitEdge> edges = circuit.edges; // before equal ones of the other
    nodes.insert(nodes.end(), other.nodes.begin(), other.nodes.end());
    edges.insert(edges.end(), parts.second.edges.begin(), parts.second.edges.end());
    circuit = atlas::MakeCircuit(circuit.shape, std::move(nodes), std::move(edges));
  }
  atlas::SortByMagnitude(circuit.edges);
  auto* graph = task.Output<vtkPolyData>(0);
  auto* nodes = task.Output<vtkTable>(1);
  auto* edges = task.Output<vtkTable>(2);
  auto* labels = task.Output<vtkPolyData>(3);
  const CircuitGraph drawing(circuit.shape);
  drawing.MakePoints(circuit.nodes, graph);
  labels->ShallowCopy(graph);
  drawing.MakeLabels(labels);
  drawing.MakeLines(circuit.edges, circuit.edges.size(), graph);
  drawing.AddNodes(circuit.nodes, nodes->GetRowData());
  drawing.AddEdges(circuit.edges, edges->GetRowData());
  if (!this->CompareWith.empty())
  {
    const auto ofEdge = [&](const atlas::CircuitEdge& edge)
    { return Owner(parts, &atlas::Circuit::edges, edge, atlas::IsBefore); };
    const auto ofNode = [&](std::int32_t node)
    { return Owner(parts, &atlas::Circuit::nodes, node); };
    const std::vector<atlas::CircuitEdge> rising(circuit.edges.rbegin(), circuit.edges.rend());
    ListArrays(rising, graph->GetCellData()).Text(Names::In, ofEdge);
    ListArrays(circuit.edges, edges->GetRowData()).Text(Names::In, ofEdge);
    ListArrays(circuit.nodes, nodes->GetRowData()).Text(Names::In, ofNode);
  }
  const std::array<const char*, 4> formats = { Formats::Circuit, Formats::CircuitNodes,
    Formats::CircuitEdges, Formats::CircuitLabels };
  for (int port = 0; port < 4; ++port)
  {
    SetFormat(task.Output<vtkDataObject>(port), formats.at(port));
  }
}
