#ifndef vtkRecordingWriter_h
#define vtkRecordingWriter_h

#include "vtkSafetensorsWriter.h"

/**
 * @class vtkRecordingWriter
 * @brief Writes a recording to a safetensors file.
 *
 * Input: a recording as vtkRecordingReader and vtkTransformerRecorder give it. The file has native
 * names, whatever names the recording was read from; vtkRecordingReader reads it back to the byte.
 * Bytes go to a temporary file that is renamed at the end. On several ranks, which all hold the
 * same recording, rank 0 writes.
 */
class ATTENTIONATLASIO_EXPORT vtkRecordingWriter : public vtkSafetensorsWriter
{
public:
  static vtkRecordingWriter* New();
  vtkTypeMacro(vtkRecordingWriter, vtkSafetensorsWriter);

protected:
  vtkRecordingWriter() = default;
  ~vtkRecordingWriter() override = default;

  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;

private:
  vtkRecordingWriter(const vtkRecordingWriter&) = delete;
  void operator=(const vtkRecordingWriter&) = delete;
};

#endif
