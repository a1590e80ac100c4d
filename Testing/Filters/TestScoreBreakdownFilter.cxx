#include "vtkScoreBreakdown.h"

#include "Recordings.h"
#include "ScoreBreakdown.h"
#include "Tables.h"

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;
using testing::ElementsAre;

namespace
{

using Breakdown = OnRecordingAndModel<vtkScoreBreakdown>;

TEST(ScoreBreakdown, SumsUpForEachQuery)
{
  const FocusOracle oracle("bloom");
  Breakdown breakdown(oracle.GetRecording(), "bloom");
  breakdown->SetLayer(1);
  breakdown->SetHead(2);
  breakdown->SetSequence(1);
  vtkTable* table = TableOf(breakdown.Get());
  EXPECT_THAT(
    ColumnNames(table), ElementsAre("Layer", "Head", "Sequence", "Query", "Key", "Rank", "Score",
                          "ALiBi", "Bias", "Attention", "Token Index", "Token", "Key Token"));
  ASSERT_EQ(table->GetNumberOfRows(), 16 * 17 / 2);
  const std::vector<double> score = Column(table, "Score");
  const std::vector<double> alibi = Column(table, "ALiBi");
  const std::vector<double> bias = Column(table, "Bias");
  const std::vector<double> attention = Column(table, "Attention");
  for (std::size_t i = 0; i < score.size(); ++i)
  {
    EXPECT_NEAR(score[i], alibi[i] + bias[i] + attention[i], 1e-5);
  }
  EXPECT_THAT(Column(table, "Layer"), Each(1));
  EXPECT_EQ(Column(table, "Token Index")[1], 17); // query 1 of sequence 1
  EXPECT_EQ(Column(table, "Rank")[2], 1);
  breakdown->SetTop(1);
  EXPECT_EQ(TableOf(breakdown.Get())->GetNumberOfRows(), 16);
  breakdown->SetTop(0);
  breakdown->SetQuery(5);
  EXPECT_EQ(TableOf(breakdown.Get())->GetNumberOfRows(), 6);
  EXPECT_THAT(Column(TableOf(breakdown.Get()), "Query"), Each(5));
}

TEST(ScoreBreakdown, HasAMeanFreeRowPerKey)
{
  const FocusOracle oracle("bloom");
  Breakdown breakdown(oracle.GetRecording(), "bloom");
  breakdown->SetHead(3);
  vtkTable* keys = TableOf(breakdown.Get(), 1);
  EXPECT_THAT(ColumnNames(keys),
    ElementsAre("Layer", "Head", "Sequence", "Position", "Token Index", "Token", "ALiBi", "Bias"));
  const std::vector<double> alibi = oracle.Values("figure3.alibi");
  ExpectClose("figure3.alibi", Column(keys, "ALiBi"),
    std::vector<double>(alibi.begin() + 48, alibi.end()), FocusTolerance);
  const std::vector<double> bias = oracle.Values("figure3.bias"); // [2, 2, 4, 16]
  ExpectClose("figure3.bias", Column(keys, "Bias"),
    std::vector<double>(bias.begin() + 48, bias.begin() + 64), FocusTolerance);
}

TEST(ScoreBreakdown, HasOnlyThePartsOfTheModel)
{
  const FocusOracle gpt2("gpt2");
  Breakdown biased(gpt2.GetRecording(), "gpt2");
  EXPECT_EQ(TableOf(biased.Get())->GetColumnByName("ALiBi"), nullptr);
  EXPECT_EQ(TableOf(biased.Get(), 1)->GetColumnByName("ALiBi"), nullptr);
  EXPECT_NE(TableOf(biased.Get())->GetColumnByName("Bias"), nullptr);
  const Transformer model = Transformer::Read(TransformerOracle::Folder("llama"));
  TransformerInput input;
  input.tokens = { { 5, 6 } };
  Breakdown plain(RecordTransformer(model, input, RecordOptions()), "llama");
  EXPECT_EQ(TableOf(plain.Get())->GetColumnByName("Bias"), nullptr);
  EXPECT_EQ(Column(TableOf(plain.Get()), "Score"), Column(TableOf(plain.Get()), "Attention"));
}

TEST(ScoreBreakdown, OfASingleToken)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  TransformerInput input;
  input.tokens = { { 5 } };
  Breakdown breakdown(RecordTransformer(model, input, RecordOptions()), "gpt2");
  EXPECT_THAT(Column(TableOf(breakdown.Get()), "Key"), ElementsAre(0));
  EXPECT_THAT(Column(TableOf(breakdown.Get(), 1), "Bias"), ElementsAre(0));
}

TEST(ScoreBreakdown, KnowsTheRangesOfItsInput)
{
  const FocusOracle oracle("gpt2");
  Breakdown breakdown(oracle.GetRecording(), "gpt2");
  breakdown->UpdateInformation();
  EXPECT_EQ(breakdown->GetSequenceRange()[1], 1);
  EXPECT_EQ(breakdown->GetLayerRange()[1], 1);
  EXPECT_EQ(breakdown->GetHeadRange()[1], 3);
}

}
