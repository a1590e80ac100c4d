#ifndef vtkAttentionOnlyModelWriter_h
#define vtkAttentionOnlyModelWriter_h

#include "vtkSafetensorsWriter.h"

/**
 * @class vtkAttentionOnlyModelWriter
 * @brief Writes an attention-only transformer to a safetensors file.
 *
 * Input: a model as vtkAttentionOnlyModelReader gives it. The file has the native naming, whatever
 * naming the model was read from, and the model's precision and metadata; reading it back gives an
 * equal model. Bytes go to a temporary file that is renamed at the end. On several ranks, which all
 * hold the same model, rank 0 writes.
 */
class ATTENTIONATLASIO_EXPORT vtkAttentionOnlyModelWriter : public vtkSafetensorsWriter
{
public:
  static vtkAttentionOnlyModelWriter* New();
  vtkTypeMacro(vtkAttentionOnlyModelWriter, vtkSafetensorsWriter);

protected:
  vtkAttentionOnlyModelWriter() = default;
  ~vtkAttentionOnlyModelWriter() override = default;

  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;

private:
  vtkAttentionOnlyModelWriter(const vtkAttentionOnlyModelWriter&) = delete;
  void operator=(const vtkAttentionOnlyModelWriter&) = delete;
};

#endif
