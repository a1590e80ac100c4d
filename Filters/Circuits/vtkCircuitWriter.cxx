#include "vtkCircuitWriter.h"

#include "Base/Error.h"
#include "CircuitGraph.h"

#include <vtkInformation.h>
#include <vtkObjectFactory.h>
#include <vtkPolyData.h>

vtkStandardNewMacro(vtkCircuitWriter);

int vtkCircuitWriter::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkPolyData");
  return 1;
}

/// The input is a graph, and no multiblock dataset.
void vtkCircuitWriter::WriteFile(vtkMultiBlockDataSet*, const char* fileName)
{
  auto* graph = vtkPolyData::SafeDownCast(this->GetInput());
  atlas::ThrowIf<atlas::OptionError>(graph == nullptr || graph->GetNumberOfPoints() == 0,
    "input: expected the graph of a circuit, found an empty one.");
  atlas::WriteCircuit(fileName, AttentionAtlas::ToCircuit(graph));
}
