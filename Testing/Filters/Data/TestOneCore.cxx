// All users of Core in a process share one state: a file mapped by one is known to the others.

#include "vtkAttentionMap.h"
#include "vtkRecordingReader.h"

#include "Files/MappedFile.h"
#include "Recording/RecordingFile.h"
#include "Recordings.h"
#include "TemporaryDirectory.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

class OneCore : public testing::Test
{
protected:
  OneCore()
  {
    WriteRecording(this->Path, SmallRecording());
    this->Reader.Get()->SetFileName(this->Path.c_str());
    this->Reader.Get()->Update();
    this->Read = AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(this->Reader.Get()));
    // The file shrinks to its header: the matrices that the reader mapped are gone.
    std::filesystem::resize_file(this->Path, 64);
  }

  TemporaryDirectory Directory;
  std::filesystem::path Path = this->Directory.Path() / "run.safetensors";
  Observed<vtkRecordingReader> Reader;
  Recording Read;
};

TEST_F(OneCore, AFileThatTheReaderMappedIsKnownToTheProgram)
{
  const float* query = this->Read.layers.front().heads.front().query.values.get();
  EXPECT_THROW(RequireIntact(query), FileError);
}

TEST_F(OneCore, AndToAFilterOfAnotherModule)
{
  Observed<vtkAttentionMap> map;
  map.Get()->SetInputData(OutputOf<vtkMultiBlockDataSet>(this->Reader.Get()));
  map.Get()->Update();
  EXPECT_THAT(map.TakeErrors(), testing::ElementsAre(testing::HasSubstr(this->Path.string())));
}

}
