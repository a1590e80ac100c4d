// How filters fail: what they keep, and who reads it.

#include "Recordings.h"
#include "TemporaryDirectory.h"
#include "vtkFilterErrors.h"
#include "vtkHeadScores.h"
#include "vtkRecordingWriter.h"
#include "vtkTransformerReader.h"

#include <vtkErrorCode.h>

using namespace atlas;
using namespace atlas::test;
using testing::StrEq;

namespace
{

/// A recording that no filter takes.
vtkSmartPointer<vtkMultiBlockDataSet> WithoutFormat()
{
  auto data = DataSetOf(SmallRecording());
  data->GetFieldData()->RemoveArray("Format");
  return data;
}

TEST(TaskErrors, AreKeptUntilTheNextSuccess)
{
  Observed<vtkHeadScores> filter;
  EXPECT_THAT(filter->GetLastError(), StrEq(""));
  Connect(filter.Get(), 0, WithoutFormat());
  EXPECT_THAT(filter.Error(), HasSubstr("expected the field array 'Format'"));
  EXPECT_THAT(filter->GetLastError(), HasSubstr("expected the field array 'Format'"));
  EXPECT_EQ(filter->GetErrorCode(), vtkErrorCode::UnknownError);
  const vtkMTimeType time = filter->GetMTime();
  filter->Update();
  EXPECT_THAT(filter->GetLastError(), HasSubstr("expected the field array 'Format'"));
  EXPECT_EQ(filter->GetMTime(), time) << "an error is no change of the filter";
  Connect(filter.Get(), 0, DataSetOf(SmallRecording()));
  filter->Update();
  EXPECT_THAT(filter->GetLastError(), StrEq(""));
  EXPECT_EQ(filter->GetErrorCode(), vtkErrorCode::NoError);
}

TEST(TaskErrors, EndWithACancel)
{
  On<vtkHeadScores> filter(WithoutFormat());
  filter->Update();
  filter.TakeErrors();
  Connect(filter.Get(), 0, DataSetOf(SmallRecording()));
  filter->SetAbortExecute(1);
  filter->Update();
  EXPECT_THAT(filter->GetLastError(), StrEq(""));
  EXPECT_EQ(filter->GetErrorCode(), vtkErrorCode::NoError);
}

TEST(TaskErrors, HaveACodeOfVtk)
{
  const TemporaryDirectory folder;
  Observed<vtkTransformerReader> reader;
  reader->SetFileName((folder / "config.json").c_str());
  reader->Update();
  EXPECT_EQ(reader->GetErrorCode(), vtkErrorCode::CannotOpenFileError);
  WriteBytes(folder / "config.json", "{");
  reader->Update();
  EXPECT_EQ(reader->GetErrorCode(), vtkErrorCode::FileFormatError) << "the new file was read";
  EXPECT_THAT(reader->GetLastError(), HasSubstr("config.json"));
  reader.TakeErrors();
}

TEST(FilterErrors, AreNotDisplayedButKept)
{
  vtkNew<vtkHeadScores> filter;
  Connect(filter, 0, WithoutFormat());
  vtkNew<vtkFilterErrors> errors;
  errors->AddFilter(filter);
  errors->Gather();
  EXPECT_THAT(errors->GetText(), StrEq(""));
  testing::internal::CaptureStderr();
  filter->Update();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  errors->Gather();
  EXPECT_THAT(errors->GetText(), StrEq(filter->GetLastError()));
  filter->Update();
  errors->Gather();
  EXPECT_THAT(errors->GetText(), StrEq(filter->GetLastError())) << "it has not run again";
}

TEST(FilterErrors, AreThoseOfTheFirstFilterThatFailed)
{
  On<vtkHeadScores> works(DataSetOf(SmallRecording()));
  On<vtkHeadScores> fails(WithoutFormat());
  vtkNew<vtkRecordingWriter> writer; // no filter of ours
  writer->SetInputDataObject(DataSetOf(SmallRecording()));
  vtkNew<vtkFilterErrors> errors;
  for (vtkAlgorithm* filter :
    std::initializer_list<vtkAlgorithm*>{ writer, works.Get(), fails.Get() })
  {
    errors->AddFilter(filter);
  }
  works->Update();
  fails->Update();
  errors->Gather();
  EXPECT_THAT(errors->GetText(), HasSubstr("expected the field array 'Format'"));
  writer->Write();
  errors->Gather();
  EXPECT_THAT(
    errors->GetText(), StrEq("FileName: expected the name of a file to write, found none."));
  errors->RemoveAllFilters();
  errors->Gather();
  EXPECT_THAT(errors->GetText(), StrEq(""));
  EXPECT_EQ(writer->HasObserver(vtkCommand::ErrorEvent), 0);
  fails.TakeErrors();
}

}
