#include "vtkRecordingWriter.h"

#include "RecordingConversion.h"
#include "RecordingFile.h"

#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkRecordingWriter);

void vtkRecordingWriter::WriteFile(vtkMultiBlockDataSet* input, const char* fileName)
{
  atlas::WriteRecording(fileName, AttentionAtlas::ToRecording(input));
}
