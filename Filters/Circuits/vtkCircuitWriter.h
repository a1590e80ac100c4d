#pragma once

#include "AttentionAtlasCircuitsModule.h"

#include <vtkSafetensorsWriter.h>

/// Writes a circuit to a file of text in JSON (Core's Circuit.h). Input: the graph of
/// vtkAttributionPatching or vtkCircuitReader, a vtkPolyData, whose lines are the edges, and whose
/// points in the circuit are the nodes. On several ranks the first one writes.
class ATTENTIONATLASCIRCUITS_EXPORT vtkCircuitWriter : public vtkSafetensorsWriter
{
public:
  static vtkCircuitWriter* New();
  vtkTypeMacro(vtkCircuitWriter, vtkSafetensorsWriter);

protected:
  vtkCircuitWriter() = default;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;
};
