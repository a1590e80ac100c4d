#pragma once

#include "vtkSafetensorsWriter.h"

/// Writes a recording to a safetensors file. Input: a recording as produced by vtkRecordingReader
/// and vtkTransformerRecorder. The file has native names, regardless of the names in the file that
/// the recording was read from; vtkRecordingReader reads it back byte for byte. The bytes go to a
/// temporary file that is renamed at the end. On several ranks, which all hold the same recording,
/// rank 0 writes.
class ATTENTIONATLASIO_EXPORT vtkRecordingWriter : public vtkSafetensorsWriter
{
public:
  static vtkRecordingWriter* New();
  vtkTypeMacro(vtkRecordingWriter, vtkSafetensorsWriter);

protected:
  vtkRecordingWriter() = default;

  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;
};
