#include "vtkRandomPrompts.h"

#include "Execution.h"
#include "Matchers.h"
#include "Text/Prompts.h"
#include "Transformers.h"

#include <vtkMultiBlockDataSetAlgorithm.h>
#include <vtkObjectFactory.h>
#include <vtkTypeInt64Array.h>
#include <vtkVariant.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

std::string Lines(const std::vector<std::vector<std::int64_t>>& sequences)
{
  std::string text;
  for (const std::vector<std::int64_t>& sequence : sequences)
  {
    for (const std::int64_t id : sequence)
    {
      text += std::to_string(id) + " ";
    }
    text += "\n";
  }
  return text;
}

using EveryTransformer = testing::TestWithParam<std::string>;

INSTANTIATE_TEST_SUITE_P(, EveryTransformer,
  testing::Values("attn-only", "attn-only-shortformer", "bert", "bloom", "gpt2", "llama"),
  OracleTest::Name);

TEST_P(EveryTransformer, IsRecordedAsTheOracleHasIt)
{
  const TransformerOracle oracle(GetParam());
  Pipeline pipeline(oracle.Path());
  pipeline.Recorder->SetTokenIds(Lines(oracle.Input().tokens).c_str());
  pipeline.Recorder->SetSegments(Lines(oracle.Input().segments).c_str());
  pipeline.Recorder->SetRecordArrayStatus("HeadOutputs", 1);
  const Recording recording = pipeline.Record();
  ASSERT_EQ(recording.layers.size(), 2U);
  for (const RecordedLayer& layer : recording.layers)
  {
    const std::string name = "layer." + std::to_string(layer.index) + ".";
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      const auto head = static_cast<std::int64_t>(h);
      ExpectRows(oracle, recording, name + "query", head, layer.heads[h].query, 1e-4);
      ExpectRows(oracle, recording, name + "key", head, layer.heads[h].key, 1e-4);
      ExpectRows(oracle, recording, name + "value", head, layer.heads[h].value, 1e-4);
      ExpectRows(oracle, recording, name + "head_output", head, layer.heads[h].output, 1e-4);
    }
  }
}

TEST(TransformerRecorder, RecordsImages)
{
  const TransformerOracle oracle("vit");
  Pipeline pipeline(oracle.Path());
  pipeline.Recorder->AddImage((oracle.Path() / "expected.safetensors").c_str());
  const Recording recording = pipeline.Record();
  EXPECT_EQ(recording.SequenceCount(), 2);
  ExpectRows(oracle, recording, "layer.1.query", 3, recording.layers[1].heads[3].query, 1e-4);
}

/// A recording says that its products were rounded. Choosing floats again gives the bytes of
/// before.
TEST(TransformerRecorder, UsesTheProductsOfTheModel)
{
  const TransformerOracle oracle("gpt2");
  Pipeline pipeline(oracle.Path());
  pipeline.Recorder->SetTokenIds(Lines(oracle.Input().tokens).c_str());
  const Recording exact = pipeline.Record();
  EXPECT_EQ(exact.products, ProductPrecision::Single);
  pipeline.Model->SetProducts(vtkTransformerReader::BFLOAT16);
  const Recording rounded = pipeline.Record();
  EXPECT_EQ(rounded.products, ProductPrecision::Bfloat16);
  const SharedMatrix& query = exact.layers[1].heads[0].query;
  const SharedMatrix& other = rounded.layers[1].heads[0].query;
  double largest = 0;
  double difference = 0;
  for (std::uint64_t i = 0; i < query.Count(); ++i)
  {
    const auto expected = static_cast<double>(query.values.get()[i]);
    largest = std::max(largest, std::abs(expected));
    difference =
      std::max(difference, std::abs(static_cast<double>(other.values.get()[i]) - expected));
  }
  EXPECT_GT(difference, 1e-5 * largest);
  EXPECT_LT(difference, 0.05 * largest);
  pipeline.Model->SetProducts(vtkTransformerReader::SINGLE);
  const Recording again = pipeline.Record();
  EXPECT_TRUE(std::equal(query.values.get(), query.values.get() + query.Count(),
    again.layers[1].heads[0].query.values.get()));
}

TEST(TransformerRecorder, RecordsWhatFiguresNeedByDefault)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  pipeline.Recorder->SetTokenIds("1 2");
  const Recording found = pipeline.Record();
  const RecordedHead& head = found.layers[0].heads[0];
  EXPECT_TRUE(head.query.IsRecorded() && head.value.IsRecorded() && head.output.IsRecorded());
  EXPECT_TRUE(found.residual[0].IsRecorded());
  EXPECT_FALSE(found.logits.IsRecorded());
}

TEST(TransformerRecorder, RecordsWhatIsAskedFor)
{
  const TransformerOracle oracle("bloom");
  Pipeline pipeline(oracle.Path());
  pipeline.Recorder->SetTokenIds(Lines(oracle.Input().tokens).c_str());
  pipeline.Recorder->DisableAllRecord();
  pipeline.Recorder->SetRecordArrayStatus("Residual", 1);
  pipeline.Recorder->SetRecordArrayStatus("Logits", 1);
  const Recording residual = pipeline.Record();
  ASSERT_EQ(residual.residual.size(), 3U);
  ExpectRows(oracle, residual, "hidden.2", 0, residual.residual[2], 5e-4);
  ExpectRows(oracle, residual, "logits", 0, residual.logits, 5e-4);

  pipeline.Recorder->DisableAllRecord();
  pipeline.Recorder->SetRecordArrayStatus("QueriesAndKeys", 1);
  pipeline.Recorder->AddLayer(1);
  const Recording layer = pipeline.Record();
  ASSERT_EQ(layer.layers.size(), 1U);
  EXPECT_EQ(layer.layers[0].index, 1);
  EXPECT_FALSE(layer.layers[0].heads[0].value.IsRecorded());
  pipeline.Recorder->ClearLayers();
  EXPECT_EQ(pipeline.Record().layers.size(), 2U);
}

/// The BERT of the oracle with a vocabulary of a few words.
class BertWithWords
{
public:
  BertWithWords()
  {
    for (const char* name : { "config.json", "model.safetensors" })
    {
      std::filesystem::create_symlink(
        TransformerOracle::Folder("bert") / name, this->Folder / name);
    }
    WriteBytes(this->Folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\n");
  }
  const std::filesystem::path& Path() const { return this->Folder.Path(); }

private:
  TemporaryDirectory Folder;
};

TEST(TransformerRecorder, TokenizesPrompts)
{
  const BertWithWords model;
  Pipeline pipeline(model.Path());
  pipeline.Recorder->SetPrompts("The cat\tsat\ncat\n");
  const Recording recording = pipeline.Record();
  EXPECT_THAT(recording.tokens.text,
    ElementsAre("[CLS]", "the", "cat", "[SEP]", "sat", "[SEP]", "[CLS]", "cat", "[SEP]"));
  EXPECT_THAT(recording.tokens.id, ElementsAre(2, 5, 6, 3, 7, 3, 2, 6, 3));
  EXPECT_THAT(recording.tokens.segment, ElementsAre(0, 0, 0, 0, 1, 1, 0, 0, 0));
  EXPECT_EQ(recording.mask, AttentionMask::Bidirectional);

  pipeline.Recorder->SetPrompts(nullptr);
  WriteBytes(model.Path() / "prompts.txt", "The cat\tsat\r\ncat");
  pipeline.Recorder->SetPromptFile((model.Path() / "prompts.txt").c_str());
  EXPECT_EQ(pipeline.Record().tokens.id, recording.tokens.id);
  pipeline.Recorder->AddSpecialTokensOff();
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(5, 6, 7, 6));
}

TEST(TransformerRecorder, CutsLongSequencesOffAndSaysSo)
{
  const BertWithWords model;
  Pipeline pipeline(model.Path());
  pipeline.Recorder->SetPrompts("the cat sat\nthe");
  pipeline.Recorder->SetMaximumLength(3);
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(2, 5, 6, 2, 5, 3));
  EXPECT_THAT(pipeline.Recorder.TakeWarnings(),
    ElementsAre(HasSubstr("sequence 0 has 5 tokens; the last 2 are left out")));
}

TEST(TransformerRecorder, TakesATableOfTokenIds)
{
  Pipeline pipeline(TransformerOracle::Folder("bloom"));
  Observed<vtkRandomPrompts> prompts;
  prompts->SetLength(7);
  prompts->SetCount(2);
  prompts->SetIdRange(3, 50);
  pipeline.Recorder->SetTokensConnection(prompts->GetOutputPort());
  const Recording recording = pipeline.Record();
  EXPECT_THAT(recording.sequenceOffsets, ElementsAre(0, 7, 14));
  EXPECT_EQ(std::vector<double>(recording.tokens.id.begin(), recording.tokens.id.end()),
    Values(OutputOf<vtkTable>(prompts.Get())->GetRowData(), "TokenId"));
}

TEST(TransformerRecorder, IsEmptyWithoutSequences)
{
  Pipeline pipeline(TransformerOracle::Folder("bloom"));
  EXPECT_EQ(pipeline.Update()->GetNumberOfBlocks(), 0U);
}

TEST(TransformerRecorder, StopsWhenAsked)
{
  Pipeline pipeline(TransformerOracle::Folder("bloom"));
  pipeline.Recorder->SetTokenIds("1 2 3");
  pipeline.Recorder->SetKeptRecordings(0);
  vtkTransformerRecorder* recorder = pipeline.Recorder.Get();
  for (vtkAlgorithm* asked : { vtkAlgorithm::SafeDownCast(recorder),
         vtkAlgorithm::SafeDownCast(pipeline.Model.Get()) }) // or a filter before it
  {
    recorder->Modified();
    {
      const Reports reports(recorder, [asked] { asked->SetAbortExecute(1); });
      EXPECT_EQ(pipeline.Update()->GetNumberOfBlocks(), 0U);
    }
    AttentionAtlas::WithdrawCancel(asked);
    EXPECT_EQ(pipeline.Record().tokens.Count(), 3); // though nothing has changed
  }
}

/// Passes a model on, unless it is canceled, as filters of VTK do.
class PassModel : public vtkMultiBlockDataSetAlgorithm
{
public:
  static PassModel* New();
  vtkTypeMacro(PassModel, vtkMultiBlockDataSetAlgorithm);

protected:
  int RequestData(vtkInformation*, vtkInformationVector** in, vtkInformationVector* out) override
  {
    if (!this->CheckAbort())
    {
      vtkMultiBlockDataSet::GetData(out)->ShallowCopy(vtkMultiBlockDataSet::GetData(in[0]));
    }
    return 1;
  }
};
vtkStandardNewMacro(PassModel);

TEST(TransformerRecorder, IsCanceledWithItsInput)
{
  Pipeline pipeline(TransformerOracle::Folder("bloom"));
  pipeline.Recorder->SetTokenIds("1 2 3");
  vtkNew<PassModel> before;
  before->SetInputConnection(pipeline.Model->GetOutputPort());
  pipeline.Recorder->SetInputConnection(before->GetOutputPort());
  before->SetAbortExecuteAndUpdateTime();
  EXPECT_EQ(pipeline.Update()->GetNumberOfBlocks(), 0U);
  EXPECT_EQ(pipeline.Recorder->GetOutputInformation(0)->Get(vtkAlgorithm::ABORTED()), 1);
  before->SetAbortExecute(0);
  EXPECT_EQ(pipeline.Record().tokens.Count(), 3);
}

TEST(TransformerRecorder, ReadsACorrectedFileAtTheNextUpdate)
{
  const TemporaryDirectory folder;
  const std::filesystem::path bloom = TransformerOracle::Folder("bloom");
  WriteBytes(folder / "config.json", ReadBytes(bloom / "config.json"));
  Pipeline pipeline(folder / ".");
  pipeline.Recorder->SetTokenIds("1 2 3");
  EXPECT_EQ(pipeline.Update()->GetNumberOfBlocks(), 0U);
  EXPECT_THAT(pipeline.Model.TakeErrors(), ElementsAre(HasSubstr("model.safetensors")));
  std::filesystem::create_symlink(bloom / "model.safetensors", folder / "model.safetensors");
  EXPECT_EQ(pipeline.Record().tokens.Count(), 3);

  const BertWithWords model;
  Pipeline words(model.Path());
  const std::string prompts = folder / "prompts.txt";
  words.Recorder->SetPromptFile(prompts.c_str());
  EXPECT_THAT(words.Recorder.Error(), HasSubstr("prompts.txt"));
  words.Update();
  EXPECT_THAT(words.Recorder.TakeErrors(), IsEmpty()) << "nothing has changed";
  WriteBytes(prompts, "a");
  EXPECT_EQ(words.Record().SequenceCount(), 1);
}

TEST(TransformerRecorder, APromptMayHaveLineBreaks)
{
  const BertWithWords model;
  Pipeline pipeline(model.Path());
  vtkTransformerRecorder* recorder = pipeline.Recorder.Get();
  recorder->SetPrompts("the cat\nsat");
  EXPECT_EQ(pipeline.Record().SequenceCount(), 2) << "as before there was a format";
  recorder->SetPromptFormat(vtkTransformerRecorder::ONE_TEXT);
  EXPECT_EQ(pipeline.Record().SequenceCount(), 1);
  recorder->SetPromptFormat(vtkTransformerRecorder::JSON_LINES);
  recorder->SetPrompts("\"the cat\\nsat\"\n{\"text\": \"sat\", \"id\": 1}");
  EXPECT_EQ(pipeline.Record().SequenceCount(), 2);
  EXPECT_THAT(pipeline.Recorder.TakeWarnings(), ElementsAre(HasSubstr("not its \"id\"")));
}

TEST(TransformerRecorder, RefusesBadInput)
{
  const BertWithWords model;
  Pipeline pipeline(model.Path());
  vtkTransformerRecorder* recorder = pipeline.Recorder.Get();
  const auto message = [&] { return pipeline.Recorder.Error(); };
  recorder->SetTokenIds("1 2");
  recorder->SetSegments("0");
  EXPECT_THAT(message(), HasSubstr("sequence 0"));
  recorder->SetSegments(nullptr);
  recorder->SetRecordArrayStatus("Logits", 1);
  EXPECT_THAT(message(), HasSubstr("no unembedding"));
  recorder->SetRecordArrayStatus("Logits", 0);
  recorder->SetTokenIds(nullptr);
  recorder->SetPrompts("cat\n\xff");
  EXPECT_THAT(message(), AllOf(HasSubstr("Prompts, prompt 2: "), HasSubstr("UTF-8")));
  recorder->SetPrompts(nullptr);
  recorder->SetPromptFile("/no such file");
  EXPECT_THAT(message(), HasSubstr("/no such file: cannot open file"));
  recorder->SetPromptFile(nullptr);
  recorder->SetTokenIds("1 2");
  EXPECT_EQ(pipeline.Record().tokens.Count(), 2);
}

TEST(TransformerRecorder, ReaderTellsOfTheModel)
{
  TransformerReader reader;
  reader->SetFileName((TransformerOracle::Folder("llama") / "config.json").c_str());
  vtkMultiBlockDataSet* model = Updated<vtkMultiBlockDataSet>(reader.Get());
  ASSERT_EQ(model->GetNumberOfBlocks(), 1U);
  const SafetensorsFile file(TransformerOracle::Folder("llama") / "model.safetensors");
  auto* table = vtkTable::SafeDownCast(model->GetBlock(0));
  ASSERT_EQ(table->GetNumberOfRows(), static_cast<vtkIdType>(file.GetTensors().size()));
  const auto& [name, view] = *file.GetTensors().begin();
  EXPECT_EQ(table->GetValueByName(0, "Name").ToString(), name);
  EXPECT_EQ(table->GetValueByName(0, "Shape").ToString(), ToString(view.shape));
  EXPECT_EQ(table->GetValueByName(0, "Type").ToString(), "F32");
  EXPECT_THAT(Values(model->GetFieldData(), "KeyHeads"), ElementsAre(2));
  EXPECT_THAT(Values(model->GetFieldData(), "Layers"), ElementsAre(2));
  EXPECT_THAT(Values(model->GetFieldData(), "Processable"), ElementsAre(1));
  EXPECT_THAT(Values(model->GetFieldData(), "Image Size"), ElementsAre(0, 0, 0));
}

TEST(TransformerRecorder, ReaderMayBeToldTheArchitecture)
{
  TransformerReader reader;
  EXPECT_STREQ(reader->GetArchitecture(), "Auto");
  const std::string path = TransformerOracle::Folder("bloom") / "config.json";
  reader->SetFileName(path.c_str());
  reader->SetArchitecture("bert");
  EXPECT_THAT(reader.Error(), HasSubstr("missing"));
  for (const char* automatic : { "Auto", "", static_cast<const char*>(nullptr) })
  {
    reader->SetArchitecture(automatic);
    EXPECT_EQ(Updated<vtkMultiBlockDataSet>(reader.Get())->GetNumberOfBlocks(), 1U);
  }
  EXPECT_EQ(reader->CanReadFile(path.c_str()), 1);
  EXPECT_EQ(
    reader->CanReadFile((TransformerOracle::Folder("bloom") / "model.safetensors").c_str()), 1);
  EXPECT_EQ(reader->CanReadFile(ShippedModel().c_str()), 0);
}

class Prompts : public On<vtkRandomPrompts>
{
public:
  std::vector<double> Ids() { return this->Column("TokenId"); }
};

TEST(RandomPrompts, RepeatsABlock)
{
  Prompts prompts;
  prompts->SetKind(vtkRandomPrompts::REPEATED_BLOCK);
  prompts->SetLength(10);
  prompts->SetBlock(4);
  prompts->SetCount(2);
  const std::vector<double> ids = prompts.Ids();
  ASSERT_EQ(ids.size(), 20U);
  for (std::size_t i = 4; i < 10; ++i)
  {
    EXPECT_EQ(ids[i], ids[i - 4]);
    EXPECT_EQ(ids[10 + i], ids[10 + i - 4]);
  }
  EXPECT_GT(std::set<double>(ids.begin(), ids.end()).size(), 6U);
  vtkDataSetAttributes* rows = OutputOf<vtkTable>(prompts.Get())->GetRowData();
  EXPECT_EQ(Values(rows, "Sequence")[9], 0);
  EXPECT_EQ(Values(rows, "Sequence")[10], 1);
  EXPECT_EQ(Values(rows, "Position")[10], 0);
}

TEST(RandomPrompts, RepeatsOneToken)
{
  Prompts prompts;
  prompts->SetKind(vtkRandomPrompts::ONE_TOKEN);
  prompts->SetLength(5);
  const std::vector<double> ids = prompts.Ids();
  EXPECT_EQ(ids, std::vector<double>(5, ids.at(0)));
}

TEST(RandomPrompts, DrawsUniformlyFromTheRange)
{
  Prompts prompts;
  prompts->SetLength(6000);
  prompts->SetIdRange(10, 15);
  std::vector<int> counts(6);
  for (const double id : prompts.Ids())
  {
    ++counts.at(static_cast<std::size_t>(id) - 10);
  }
  for (const int count : counts)
  {
    EXPECT_NEAR(count, 1000, 5 * 29); // five standard deviations
  }
}

TEST(RandomPrompts, FollowsTheSeed)
{
  Prompts prompts;
  const std::vector<double> first = prompts.Ids();
  prompts->SetSeed(1);
  EXPECT_NE(prompts.Ids(), first);
  prompts->SetSeed(0);
  prompts->SetCount(3);
  const std::vector<double> more = prompts.Ids();
  EXPECT_EQ(std::vector<double>(more.begin(), more.begin() + 64), first);
}

}
