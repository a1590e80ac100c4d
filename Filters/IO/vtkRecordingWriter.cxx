#include "vtkRecordingWriter.h"

#include "Execution.h"
#include "RecordingConversion.h"
#include "RecordingFile.h"

#include <vtkErrorCode.h>
#include <vtkObjectFactory.h>

vtkStandardNewMacro(vtkRecordingWriter);

void vtkRecordingWriter::WriteFile(vtkMultiBlockDataSet* input, const char* fileName)
{
  try
  {
    atlas::WriteRecording(fileName, AttentionAtlas::ToRecording(input),
      [this](double done)
      {
        if (!AttentionAtlas::ReportProgress(this, done))
        {
          throw atlas::Canceled();
        }
      });
  }
  catch (const atlas::Canceled&)
  {
    this->SetErrorCode(vtkErrorCode::UserError);
  }
}
