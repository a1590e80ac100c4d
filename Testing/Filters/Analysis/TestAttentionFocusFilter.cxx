#include "vtkAttentionFocus.h"

#include "Matchers.h"
#include "Recording/RecordingFile.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Focus = On<vtkAttentionFocus>;

using FocusFilterOfModel = OfFocus;

/// Expects figures 4 to 6: means per head, and the heads of each layer by falling mean.
void ExpectFigures(const Recording& recording, const TensorViews& oracle, const std::string& prefix)
{
  Focus focus(DataSetOf(recording));
  const std::map<std::string, std::pair<int, std::string>> figures = {
    { "figure4", { vtkAttentionFocus::STRONGEST_IS_SELF, "Strongest Is Self" } },
    { "figure5", { vtkAttentionFocus::STRONGEST_IS_FIRST, "Strongest Is First" } },
    { "figure6", { vtkAttentionFocus::CONCENTRATION, "Concentration" } },
  };
  for (const auto& [figure, measure] : figures)
  {
    focus->SetMeasure(measure.first);
    for (const bool excludes : { false, true })
    {
      focus->SetExcludeFirst(excludes);
      const std::string name = prefix + figure + (excludes ? ".excluding_first" : "");
      ExpectClose(
        name, Column(focus.Table(), measure.second), oracle.at(name).ToDouble(), FocusTolerance);
      vtkTable* sorted = focus.Table(1);
      ExpectClose(name + ".sorted", Column(sorted, "Value"), oracle.at(name + ".sorted").ToDouble(),
        FocusTolerance);
      const std::vector<std::int64_t> heads = oracle.at(name + ".sorted_heads").ToInteger();
      EXPECT_EQ(Column(sorted, "Head"), std::vector<double>(heads.begin(), heads.end())) << name;
      const std::vector<double> ranks = Column(sorted, "Rank");
      const std::vector<double> layers = Column(sorted, "Layer");
      const std::size_t perLayer = recording.layers[0].heads.size();
      for (std::size_t i = 0; i < heads.size(); ++i)
      {
        EXPECT_EQ(ranks[i], i % perLayer);
        EXPECT_EQ(layers[i], i / perLayer);
      }
    }
  }
}

TEST_P(FocusFilterOfModel, AveragesAndSortsHeadsAsTheOracle)
{
  ExpectFigures(this->Oracle.GetRecording(), this->Oracle.Tensors(), "");
}

/// Stored attention of the real GPT-2 on three prompts.
TEST(AttentionFocus, OfTheRealGpt2IsSortedAsByTheOracle)
{
  const std::filesystem::path folder = ATLAS_ORACLE_DIR;
  const SafetensorsFile expected(folder / "analysis" / "gpt2-real.focus.safetensors");
  for (const std::string prompt : { "prompt0", "prompt1", "prompt2" })
  {
    const RecordingContent content = ReadRecording(folder / "gpt2" / (prompt + ".safetensors"));
    ExpectFigures(content.recording, expected.GetTensors(), prompt + ".");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FocusFilterOfModel, OfFocus::Models(), OfFocus::Name);

TEST(AttentionFocus, HasARowPerHead)
{
  Focus focus(DataSetOf(SmallRecording()));
  vtkTable* table = focus.Table();
  EXPECT_THAT(
    ColumnNames(table), ElementsAre("Layer", "Head", "Self Weight", "First Weight", "Strongest Key",
                          "Strongest Is Self", "Strongest Is First", "Concentration", "Entropy",
                          "Sink Rate", "First Cosine", "Query Norm", "First Key Norm"));
  EXPECT_THAT(Column(table, "Layer"), ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(Column(table, "Head"), ElementsAre(0, 1, 0, 1));
}

TEST(AttentionFocus, HasARowPerQuery)
{
  Focus focus(DataSetOf(SmallRecording()));
  const std::vector<double> means = focus.Column("First Weight");
  focus->SetPer(vtkAttentionFocus::QUERY);
  vtkTable* table = focus.Table();
  ASSERT_EQ(table->GetNumberOfRows(), 20);
  const std::vector<double> index = Column(table, "Token Index");
  EXPECT_EQ(std::vector<double>(index.begin(), index.begin() + 6),
    (std::vector<double>{ 0, 1, 2, 3, 4, 0 }));
  EXPECT_EQ(table->GetRowData()->GetPedigreeIds()->GetName(), std::string("Token Index"));
  EXPECT_EQ(Column(table, "Sequence")[3], 1);
  EXPECT_EQ(Column(table, "Position")[4], 1);
  EXPECT_EQ(table->GetValueByName(2, "Token").ToString(), " c");
  const std::vector<double> weights = Column(table, "First Weight");
  double sum = 0;
  for (std::size_t i = 10; i < 15; ++i) // of the third head
  {
    sum += weights[i];
  }
  EXPECT_NEAR(sum / 5, means[2], 1e-7);
  focus->SetExcludeFirst(true);
  EXPECT_EQ(focus.Table()->GetNumberOfRows(), 12);
  EXPECT_THAT(focus.Column("Position"), Each(Not(0)));
}

TEST(AttentionFocus, CountsSinksAboveTheThreshold)
{
  Focus focus(DataSetOf(SmallRecording()));
  focus->SetPer(vtkAttentionFocus::QUERY);
  const std::vector<double> first = focus.Column("First Weight");
  focus->SetSinkThreshold(first[1]);
  EXPECT_EQ(focus.Column("Sink Rate")[1], 0); // it is not above itself
  focus->SetSinkThreshold(first[1] - 1e-6);
  EXPECT_EQ(focus.Column("Sink Rate")[1], 1);
}

TEST(AttentionFocus, OfStoredAttentionHasNoVectors)
{
  Recording recording = SmallRecording();
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head = {};
      head.weights = { SharedMatrix::Zero(3, 3), SharedMatrix::Zero(2, 2) };
      for (const SharedMatrix& weights : head.weights)
      {
        for (std::int64_t i = 0; i < weights.rows; ++i)
        {
          weights.Row(i)[i] = 1;
        }
      }
    }
  }
  Focus focus(DataSetOf(recording));
  vtkTable* table = focus.Table();
  EXPECT_THAT(ColumnNames(table), SizeIs(10));
  EXPECT_THAT(Column(table, "Strongest Is Self"), Each(1));
  EXPECT_THAT(Column(table, "Strongest Is First"), Each(0.4));
}

TEST(AttentionFocus, OfASingleTokenIsItself)
{
  Recording recording = SmallRecording();
  recording.sequenceOffsets = { 0, 1, 2, 3, 4, 5 };
  recording.tokens.sequence = { 0, 1, 2, 3, 4 };
  recording.tokens.position = { 0, 0, 0, 0, 0 };
  Focus focus(DataSetOf(recording));
  EXPECT_THAT(focus.Column("Concentration"), Each(1));
  EXPECT_THAT(focus.Column("Entropy"), Each(0));
}

}
