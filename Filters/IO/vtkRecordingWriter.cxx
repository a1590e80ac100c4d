#include "vtkRecordingWriter.h"

#include "Execution.h"
#include "RecordingConversion.h"
#include "RecordingFile.h"

#include <vtkErrorCode.h>
#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkRecordingWriter);

void vtkRecordingWriter::WriteFile(vtkMultiBlockDataSet* input, const char* fileName)
{
  const auto progress = [this](double done) { return AttentionAtlas::ReportProgress(this, done); };
  if (!atlas::WriteRecording(fileName, AttentionAtlas::ToRecording(input), progress))
  {
    this->SetErrorCode(vtkErrorCode::UserError);
  }
}
