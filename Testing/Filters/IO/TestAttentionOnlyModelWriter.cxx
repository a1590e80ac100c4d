#include "vtkAttentionOnlyModelWriter.h"

#include "Matchers.h"
#include "ModelBlocks.h"
#include "TemporaryDirectory.h"
#include "vtkAttentionOnlyModelReader.h"

#include <vtkErrorCode.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr const char* WrittenFile = "some.safetensors";

vtkSmartPointer<vtkMultiBlockDataSet> Read(const std::filesystem::path& path)
{
  Observed<vtkAttentionOnlyModelReader> reader;
  reader->SetFileName(path.c_str());
  reader->Update();
  return OutputOf<vtkMultiBlockDataSet>(reader.Get());
}

class Writer : public Observed<vtkAttentionOnlyModelWriter>
{
public:
  Writer(vtkDataObject* input, const std::filesystem::path& path)
  {
    Connect(this->Get(), 0, input);
    this->Get()->SetFileName(path.c_str());
  }
};

/// Expects that the model, written and read back, is the same.
void ExpectRoundTrip(vtkMultiBlockDataSet* model)
{
  const TemporaryDirectory folder;
  Writer writer(model, folder / WrittenFile);
  EXPECT_EQ(writer->Write(), 1);
  EXPECT_EQ(writer->GetErrorCode(), static_cast<unsigned long>(vtkErrorCode::NoError));
  EXPECT_THAT(folder.Entries(), ElementsAre(WrittenFile));

  const auto back = Read(folder / WrittenFile);
  ExpectSameBlocks(back, model);
  EXPECT_EQ(Names(back->GetFieldData()), Names(model->GetFieldData()));
  for (const char* size : { "VocabularySize", "Heads", "HeadDimension", "EmbeddingDimension" })
  {
    EXPECT_EQ(Values(back->GetFieldData(), size), Values(model->GetFieldData(), size)) << size;
  }
  for (const std::string name : { "Format", "File Metadata source", "File Metadata note" })
  {
    EXPECT_EQ(Text(back, name), Text(model, name)) << name;
  }
}

TEST(AttentionOnlyModelWriter, KeepsSinglePrecision)
{
  ExpectRoundTrip(Read(ShippedModel()));
}

TEST(AttentionOnlyModelWriter, KeepsDoublePrecisionAndMetadata)
{
  HandModel model;
  model.metadata = { { "source", "a test" }, { "note", "umlaut \xc3\xbc, \"quotes\"\n" } };
  model.nextToken = TokenMatrix{ { 1, 0 }, { 0, 1 } };
  ExpectRoundTrip(DataSetOf(model));
}

TEST(AttentionOnlyModelWriter, KeepsTheAbsenceOfTargets)
{
  ExpectRoundTrip(DataSetOf(HandModel()));
}

using WriterOnOracles = OracleTest;
INSTANTIATE_TEST_SUITE_P(, WriterOnOracles, OracleTest::Models(), OracleTest::Name);

TEST_P(WriterOnOracles, RoundTrip)
{
  ExpectRoundTrip(Read(Oracle::Folder() / (GetParam() + ".safetensors")));
}

TEST(AttentionOnlyModelWriter, ReplacesAFile)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / WrittenFile, std::string(100000, 'x'));
  const auto model = Read(ShippedModel());
  Writer writer(model, folder / WrittenFile);
  EXPECT_EQ(writer->Write(), 1);
  EXPECT_THAT(folder.Entries(), ElementsAre(WrittenFile));
  ExpectSameBlocks(Read(folder / WrittenFile), model);
}

TEST(AttentionOnlyModelWriter, NeedsAFileName)
{
  Writer writer(DataSetOf(HandModel()), "");
  EXPECT_EQ(writer->Write(), 0);
  EXPECT_EQ(writer->GetErrorCode(), static_cast<unsigned long>(vtkErrorCode::NoFileNameError));
  EXPECT_THAT(writer.TakeErrors(),
    ElementsAre(HasSubstr("FileName: expected the name of a file to write, found none.")));
}

TEST(AttentionOnlyModelWriter, NamesAFileThatItCannotWrite)
{
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder / "no such folder" / WrittenFile;
  Writer writer(DataSetOf(HandModel()), path);
  EXPECT_EQ(writer->Write(), 0);
  EXPECT_EQ(writer->GetErrorCode(), static_cast<unsigned long>(vtkErrorCode::CannotOpenFileError));
  EXPECT_THAT(writer.TakeErrors(),
    ElementsAre(HasSubstr(path.string() + ": cannot write file: No such file or directory.")));
}

TEST(AttentionOnlyModelWriter, LeavesNothingBehindWhereItCannotRename)
{
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder / WrittenFile);
  Writer writer(DataSetOf(HandModel()), folder / WrittenFile);
  EXPECT_EQ(writer->Write(), 0);
  EXPECT_EQ(writer.TakeErrors().size(), 1U);
  EXPECT_THAT(folder.Entries(), ElementsAre(WrittenFile));
}

TEST(AttentionOnlyModelWriter, KeepsTheOldFileIfTheInputIsNoModel)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / WrittenFile, "old");
  const auto input = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  input->SetBlock(0, vtkSmartPointer<vtkTable>::New());
  Writer writer(input, folder / WrittenFile);
  EXPECT_EQ(writer->Write(), 0);
  EXPECT_NE(writer->GetErrorCode(), static_cast<unsigned long>(vtkErrorCode::NoError));
  EXPECT_THAT(
    writer.TakeErrors(), ElementsAre(HasSubstr("input model: tensor 'word_embedding' is missing")));
  EXPECT_EQ(ReadBytes(folder / WrittenFile), "old");
}

}
