#ifndef vtkRecordingWriter_h
#define vtkRecordingWriter_h

#include "AttentionAtlasIOModule.h"

#include <vtkWriter.h>

/**
 * @class vtkRecordingWriter
 * @brief Writes a recording to a safetensors file.
 *
 * Input: a recording as vtkRecordingReader and vtkTransformerRecorder give it. The file has native
 * names, whatever names the recording was read from; vtkRecordingReader reads it back to the byte.
 * Bytes go to a temporary file that is renamed at the end. On several ranks, which all hold the
 * same recording, rank 0 writes.
 */
class ATTENTIONATLASIO_EXPORT vtkRecordingWriter : public vtkWriter
{
public:
  static vtkRecordingWriter* New();
  vtkTypeMacro(vtkRecordingWriter, vtkWriter);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  ///@{
  /**
   * The file to write. Default: none.
   */
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);
  ///@}

protected:
  vtkRecordingWriter() = default;
  ~vtkRecordingWriter() override;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  void WriteData() override;

private:
  vtkRecordingWriter(const vtkRecordingWriter&) = delete;
  void operator=(const vtkRecordingWriter&) = delete;

  char* FileName = nullptr;
};

#endif
