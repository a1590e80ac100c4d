#include "Matchers.h"
#include "vtkRecordingReader.h"
#include "vtkRecordingWriter.h"

#include "Recording/RecordingFile.h"
#include "Recordings.h"
#include "TemporaryDirectory.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

std::filesystem::path ShippedRecording()
{
  return std::filesystem::path(ATLAS_DATA_DIR) / "recordings" /
         "gpt2-data-visualization.safetensors";
}

/// A reader of one file.
class FileReader : public Warned<vtkRecordingReader>
{
public:
  explicit FileReader(const std::filesystem::path& path) { this->Get()->SetFileName(path.c_str()); }

  vtkMultiBlockDataSet* Read() { return Updated<vtkMultiBlockDataSet>(this->Get()); }
};

/// A layer of two heads as TransformerLens saves it, 2 tokens, and an array that nothing uses.
Tensors Activations()
{
  Tensors tensors;
  for (const char* name : { "blocks.0.attn.hook_q", "blocks.0.attn.hook_k" })
  {
    tensors[name] =
      Tensor::FromDouble(DType::F32, { 2, 2, 3 }, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 });
  }
  tensors["blocks.0.mlp.hook_pre"] = Tensor::FromDouble(DType::F32, { 2, 1 }, { 1, 2 });
  return tensors;
}

TEST(RecordingReader, ReadsTheShippedRecording)
{
  FileReader reader(ShippedRecording());
  const Recording recording = AttentionAtlas::ToRecording(reader.Read());
  EXPECT_EQ(recording.layers.size(), 12U);
  EXPECT_EQ(recording.layers[11].heads.size(), 12U);
  EXPECT_THAT(
    recording.tokens.text, ElementsAre("Data", " visualization", " em", "powers", " users", " to"));
  ExpectEqual(recording, ReadRecording(ShippedRecording()).recording);
}

TEST(RecordingReader, NamesUnusedArraysInWarnings)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "a.safetensors", Activations(), {});
  FileReader reader(folder / "a.safetensors");
  EXPECT_GT(reader.Read()->GetNumberOfBlocks(), 0U);
  EXPECT_THAT(reader.TakeWarnings(), ElementsAre(HasSubstr("blocks.0.mlp.hook_pre")));
}

TEST(RecordingReader, PassesItsOptionsOn)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "a.safetensors", Activations(), {});
  WriteBytes(folder / "b.txt", "one\ntwo\n");
  FileReader reader(folder / "a.safetensors");
  reader->SetTokensFile((folder / "b.txt").c_str());
  reader->SetArchitecture("mine");
  reader->SetMask(vtkRecordingReader::BIDIRECTIONAL);
  reader->SetScoreScale(3);
  reader->SetWeightProcessing(vtkRecordingReader::UNPROCESSED);
  const Recording recording = AttentionAtlas::ToRecording(reader.Read());
  EXPECT_THAT(recording.tokens.text, ElementsAre("one", "two"));
  EXPECT_EQ(recording.architecture, "mine");
  EXPECT_EQ(recording.mask, AttentionMask::Bidirectional);
  EXPECT_EQ(recording.layers[0].scoreScale, 3);
  EXPECT_EQ(recording.processing, WeightProcessing::Unprocessed);
  reader->SetMask(vtkRecordingReader::CAUSAL);
  reader->SetWeightProcessing(vtkRecordingReader::PROCESSED);
  EXPECT_EQ(AttentionAtlas::ToRecording(reader.Read()).mask, AttentionMask::Causal);
}

TEST(RecordingReader, KnowsItsFiles)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "a.safetensors", Activations(), {});
  WriteBytes(folder / "damaged.safetensors", "x");
  std::string map;
  for (const auto& [name, tensor] : Activations())
  {
    map += (map.empty() ? "\"" : ", \"") + name + "\": \"a.safetensors\"";
  }
  WriteBytes(folder / "a.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  WriteBytes(folder / "damaged.json", "{}");
  FileReader reader(ShippedRecording());
  EXPECT_EQ(reader->CanReadFile((folder / "a.safetensors.index.json").c_str()), 1);
  EXPECT_EQ(reader->CanReadFile((folder / "damaged.json").c_str()), 0);
  EXPECT_EQ(reader->CanReadFile(ShippedRecording().c_str()), 1);
  EXPECT_EQ(reader->CanReadFile((folder / "a.safetensors").c_str()), 1);
  EXPECT_EQ(reader->CanReadFile((folder / "damaged.safetensors").c_str()), 1);
  EXPECT_EQ(reader->CanReadFile(ShippedModel().c_str()), 0);
}

TEST(RecordingReader, NeedsAFileName)
{
  FileReader none("");
  EXPECT_THAT(none.Error(), HasSubstr("FileName: expected"));
}

void Write(Observed<vtkRecordingWriter>& writer, vtkMultiBlockDataSet* data,
  const std::filesystem::path& path)
{
  Connect(writer.Get(), 0, data);
  writer->SetFileName(path.c_str());
  writer->Write();
}

TEST(RecordingWriter, WritesWhatTheReaderReads)
{
  const TemporaryDirectory folder;
  Observed<vtkRecordingWriter> writer;
  Write(writer, DataSetOf(SmallRecording()), folder / "a.safetensors");
  FileReader reader(folder / "a.safetensors");
  ExpectEqual(AttentionAtlas::ToRecording(reader.Read()), SmallRecording());
  EXPECT_EQ(folder.Entries().size(), 1U);
}

TEST(RecordingWriter, RefusesWhatItCannotWrite)
{
  const TemporaryDirectory folder;
  Observed<vtkRecordingWriter> writer;
  Write(writer, DataSetOf(SmallRecording()), "");
  EXPECT_THAT(writer.TakeErrors(), ElementsAre(HasSubstr("FileName: expected")));
  Write(writer, DataSetOf(SmallRecording()), folder / "none/a.safetensors");
  EXPECT_THAT(writer.TakeErrors(), ElementsAre(HasSubstr("cannot write file")));
  Write(writer, vtkSmartPointer<vtkMultiBlockDataSet>::New(), folder / "a.safetensors");
  EXPECT_THAT(writer.TakeErrors(), ElementsAre(HasSubstr("input recording: expected the field")));
  EXPECT_TRUE(folder.Entries().empty());
}

}
