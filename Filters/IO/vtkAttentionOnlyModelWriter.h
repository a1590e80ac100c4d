#pragma once

#include "vtkSafetensorsWriter.h"

/// Writes an attention-only transformer to a safetensors file. Input: a model as produced by
/// vtkAttentionOnlyModelReader. The file has native names, regardless of the names in the file that
/// the model was read from, and the model's precision and metadata. Reading it back gives an equal
/// model. The bytes go to a temporary file that is renamed at the end. On several ranks, which all
/// hold the same model, rank 0 writes.
class ATTENTIONATLASIO_EXPORT vtkAttentionOnlyModelWriter : public vtkSafetensorsWriter
{
public:
  static vtkAttentionOnlyModelWriter* New();
  vtkTypeMacro(vtkAttentionOnlyModelWriter, vtkSafetensorsWriter);

protected:
  vtkAttentionOnlyModelWriter() = default;

  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;
};
