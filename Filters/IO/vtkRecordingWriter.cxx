#include "vtkRecordingWriter.h"

#include "Execution.h"
#include "Recording/RecordingFile.h"
#include "RecordingConversion.h"

#include <vtkErrorCode.h>
#include <vtkObjectFactory.h>

using namespace AttentionAtlas;

vtkStandardNewMacro(vtkRecordingWriter);

void vtkRecordingWriter::WriteFile(vtkMultiBlockDataSet* input, const char* fileName)
{
  try
  {
    atlas::WriteRecording(fileName, ToRecording(input),
      [this](double done)
      {
        if (!ReportProgress(this, done))
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
