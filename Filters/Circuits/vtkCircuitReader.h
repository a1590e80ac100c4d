#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

/// Reads a circuit that vtkCircuitWriter wrote (Core's Circuit.h), and compares it with another
/// one.
///
/// Output port 0: a vtkPolyData, the graph, as vtkAttributionPatching has it, with a line for each
/// edge and the point array In Circuit (int), without effects of nodes. Output port 1: a vtkTable
/// with a row per node of the circuit: Node, Layer, Head. Output port 2: a vtkTable with a row per
/// edge, by falling magnitude: From, To, Input, From Layer, From Head, To Layer, To Head, Effect.
/// Output port 3: a vtkPolyData with a vertex per node of the model and its Token.
///
/// With CompareWith, graph and tables have the nodes and edges of both circuits, and an array In
/// (string): "both", "file" or "other". All in the first piece.
class ATTENTIONATLASCIRCUITS_EXPORT vtkCircuitReader : public vtkTaskAlgorithm
{
public:
  static vtkCircuitReader* New();
  vtkTypeMacro(vtkCircuitReader, vtkTaskAlgorithm);

  /// The file to read. Default: none.
  vtkSetStdStringFromCharMacro(FileName);
  vtkGetCharFromStdStringMacro(FileName);

  /// The file of another circuit of a model of the same shape. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(CompareWith);
  vtkGetCharFromStdStringMacro(CompareWith);

  /// Whether a file holds a circuit.
  int CanReadFile(const char* fileName);

protected:
  vtkCircuitReader();

  void Execute(AttentionAtlas::Task& task) override;

private:
  std::string FileName;
  std::string CompareWith;
};
