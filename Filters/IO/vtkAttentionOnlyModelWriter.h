#ifndef vtkAttentionOnlyModelWriter_h
#define vtkAttentionOnlyModelWriter_h

#include "AttentionAtlasIOModule.h"

#include <vtkWriter.h>

/**
 * @class vtkAttentionOnlyModelWriter
 * @brief Writes an attention-only transformer to a safetensors file.
 *
 * Input: a model as vtkAttentionOnlyModelReader gives it. The file has the native naming, whatever
 * naming the model was read from, and the model's precision and metadata; reading it back gives an
 * equal model. Bytes go to a temporary file that is renamed at the end. On several ranks, which all
 * hold the same model, rank 0 writes.
 */
class ATTENTIONATLASIO_EXPORT vtkAttentionOnlyModelWriter : public vtkWriter
{
public:
  static vtkAttentionOnlyModelWriter* New();
  vtkTypeMacro(vtkAttentionOnlyModelWriter, vtkWriter);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  ///@{
  /**
   * The file to write. Default: none.
   */
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);
  ///@}

protected:
  vtkAttentionOnlyModelWriter() = default;
  ~vtkAttentionOnlyModelWriter() override;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  void WriteData() override;

private:
  vtkAttentionOnlyModelWriter(const vtkAttentionOnlyModelWriter&) = delete;
  void operator=(const vtkAttentionOnlyModelWriter&) = delete;

  char* FileName = nullptr;
};

#endif
