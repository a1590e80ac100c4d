#include "vtkAttentionOnlyModelReader.h"

#include "Files/Safetensors.h"
#include "Matchers.h"
#include "ModelBlocks.h"
#include "TemporaryDirectory.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr const char* SomeFile = "some.safetensors";

class Reader : public Observed<vtkAttentionOnlyModelReader>
{
public:
  explicit Reader(const std::filesystem::path& path) { this->Get()->SetFileName(path.c_str()); }

  vtkMultiBlockDataSet* Read() { return Updated<vtkMultiBlockDataSet>(this->Get()); }
};

/// The hand model in a file, with more metadata.
class ModelFile
{
public:
  explicit ModelFile(const Metadata& metadata = {})
  {
    HandModel model;
    model.metadata = metadata;
    model.nextToken = TokenMatrix{ { 1, 0 }, { 0, 1 } };
    WriteAttentionOnlyModel(this->Path(), model);
  }
  std::filesystem::path Path() const { return this->Folder / SomeFile; }

private:
  TemporaryDirectory Folder;
};

TEST(AttentionOnlyModelReader, MakesABlockOfEachTensor)
{
  Reader reader(ShippedModel());
  vtkMultiBlockDataSet* model = reader.Read();
  const SafetensorsFile file(ShippedModel());
  ASSERT_EQ(model->GetNumberOfBlocks(), file.GetTensors().size());
  for (const auto& [name, tensor] : file.GetTensors())
  {
    ASSERT_NE(Blocks(model)[name], nullptr) << name;
    vtkTable* table = Blocks(model)[name];
    EXPECT_EQ(table->GetNumberOfColumns(), 1) << name;
    EXPECT_EQ(table->GetNumberOfRows(), tensor.shape[0]) << name;
    EXPECT_EQ(table->GetColumn(0)->GetNumberOfComponents(), tensor.shape[1]) << name;
    EXPECT_EQ(Values(table->GetRowData(), name), tensor.ToDouble()) << name;
  }
}

TEST(AttentionOnlyModelReader, KeepsThePrecision)
{
  Reader single(ShippedModel());
  EXPECT_EQ(Column(single.Read(), "word_embedding")->GetDataType(), VTK_FLOAT);

  const ModelFile file;
  Reader twice(file.Path());
  vtkMultiBlockDataSet* model = twice.Read();
  for (const char* name : { "word_embedding", "position_embedding", "unembedding", "heads.0.query",
         "heads.0.key", "heads.1.value", "heads.1.output" })
  {
    EXPECT_EQ(Column(model, name)->GetDataType(), VTK_DOUBLE) << name;
  }
  vtkDataArray* next = Column(model, "next_token");
  EXPECT_EQ(next->GetDataTypeSize(), 8);
  EXPECT_THAT(
    Values(Blocks(model)["next_token"]->GetRowData(), "next_token"), ElementsAre(1, 0, 0, 1));
}

TEST(AttentionOnlyModelReader, TellsDimensionsAndMetadata)
{
  const ModelFile file(Metadata{ { "source", "a test" }, { "learning rate", "1e-3" } });
  Reader reader(file.Path());
  vtkMultiBlockDataSet* model = reader.Read();
  vtkFieldData* fields = model->GetFieldData();
  EXPECT_THAT(Values(fields, "VocabularySize"), ElementsAre(2));
  EXPECT_THAT(Values(fields, "Heads"), ElementsAre(2));
  EXPECT_THAT(Values(fields, "HeadDimension"), ElementsAre(1));
  EXPECT_THAT(Values(fields, "EmbeddingDimension"), ElementsAre(3));
  EXPECT_EQ(Text(model, "Format"), "attention-atlas.attention-only");
  EXPECT_EQ(Text(model, "File Metadata source"), "a test");
  EXPECT_EQ(Text(model, "File Metadata learning rate"), "1e-3");
}

TEST(AttentionOnlyModelReader, OffersNoTimeWithoutANumber)
{
  for (const char* step : { "", "last", "1 of 2", "nan", "inf" })
  {
    const ModelFile file(Metadata{ { "step", step } });
    Reader reader(file.Path());
    EXPECT_THAT(TimesOf(reader.Get()), ElementsAre()) << step;
    EXPECT_FALSE(reader.Read()->GetInformation()->Has(vtkDataObject::DATA_TIME_STEP())) << step;
  }
}

TEST(AttentionOnlyModelReader, OffersTheTrainingStepAsTimeUntilTheNextFile)
{
  const ModelFile timed(Metadata{ { "step", "250" } });
  const ModelFile other;
  Reader reader(timed.Path());
  EXPECT_THAT(TimesOf(reader.Get()), ElementsAre(250));
  EXPECT_EQ(reader.Read()->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP()), 250);
  reader->SetFileName(other.Path().c_str());
  EXPECT_THAT(TimesOf(reader.Get()), ElementsAre());
}

TEST(AttentionOnlyModelReader, LooksIntoAFileBeforeItTakesIt)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "damaged.safetensors", "no header");
  WriteSafetensors(folder / "other.safetensors",
    { { "weight", Tensor::FromDouble(DType::F32, { 1 }, { 2 }) } }, {});
  Observed<vtkAttentionOnlyModelReader> reader;
  EXPECT_EQ(reader->CanReadFile(ShippedModel().c_str()), 1);
  EXPECT_EQ(reader->CanReadFile((folder / "damaged.safetensors").c_str()), 1);
  EXPECT_EQ(reader->CanReadFile((folder / "other.safetensors").c_str()), 0);
  WriteBytes(folder / "run.safetensors.index.json", "{}");
  EXPECT_EQ(reader->CanReadFile((folder / "run.safetensors.index.json").c_str()), 0);
}

TEST(AttentionOnlyModelReader, NeedsAFileName)
{
  Reader reader("");
  EXPECT_THAT(
    reader.Error(), HasSubstr("FileName: expected the name of a safetensors file, found none."));
}

/// The state_dict of an oracle model.
std::filesystem::path Published()
{
  return Oracle::Folder() / "trained-n5-h3.state_dict.safetensors";
}

TEST(PublishedModel, EqualsTheNativeOne)
{
  Reader published(Published());
  Reader native(ShippedModel());
  ExpectSameBlocks(published.Read(), native.Read());
  EXPECT_EQ(published->CanReadFile(Published().c_str()), 1);
}

TEST(PublishedModel, SplitsIntoSubHeads)
{
  Reader reader(Published());
  reader->SetSubHeads(3);
  vtkMultiBlockDataSet* model = reader.Read();
  EXPECT_THAT(Values(model->GetFieldData(), "Heads"), ElementsAre(9));
  EXPECT_THAT(Values(model->GetFieldData(), "HeadDimension"), ElementsAre(1));
  const SafetensorsFile file(Published());
  const TensorView& query = file.GetTensors().at("attn_seq.0.1.q_proj_weight");
  const TensorView& output = file.GetTensors().at("attn_seq.0.1.out_proj.weight");
  // Head 5 is the third part of module 1: row 2 of its query, column 2 of its output.
  for (int c = 0; c < 3; ++c)
  {
    const auto i = static_cast<std::uint64_t>(c);
    EXPECT_EQ(Column(model, "heads.5.query")->GetComponent(0, c), query.At(3 * 2 + i));
    EXPECT_EQ(Column(model, "heads.5.output")->GetComponent(c, 0), output.At(3 * i + 2));
  }
}

/// TestSafetensors and TestAttentionOnlyModel of Core have what else may be wrong.
TEST(AttentionOnlyModelReader, RefusesABadFileAndReadsTheNext)
{
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder / SomeFile;
  Reader reader(ShippedModel());
  EXPECT_GT(reader.Read()->GetNumberOfBlocks(), 0U);
  reader->SetFileName(path.c_str());
  EXPECT_EQ(reader.Read()->GetNumberOfBlocks(), 0U);
  EXPECT_EQ(OutputOf<vtkMultiBlockDataSet>(reader.Get())->GetFieldData()->GetNumberOfArrays(), 0);
  EXPECT_THAT(reader.TakeErrors(), ElementsAre(HasSubstr(path.string() + ": cannot open file")));
  reader->SetFileName(ShippedModel().c_str());
  EXPECT_GT(reader.Read()->GetNumberOfBlocks(), 0U);
}

}
