#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkSafetensorsWriter.h>

/// Writes statistics of a corpus to a safetensors file, from which a run can go on. Input: a
/// vtkTable, as produced by vtkCorpusStatistics. On several ranks the first one writes.
class ATTENTIONATLASCORPUS_EXPORT vtkCorpusWriter : public vtkSafetensorsWriter
{
public:
  static vtkCorpusWriter* New();
  vtkTypeMacro(vtkCorpusWriter, vtkSafetensorsWriter);

protected:
  vtkCorpusWriter() = default;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;
};
