#include "vtkScoreBreakdown.h"

#include "Analysis/ScoreBreakdown.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

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
  vtkTable* table = breakdown.Table();
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
  EXPECT_EQ(breakdown.Table()->GetNumberOfRows(), 16);
  breakdown->SetTop(0);
  breakdown->SetQuery(5);
  EXPECT_EQ(breakdown.Table()->GetNumberOfRows(), 6);
  EXPECT_THAT(breakdown.Column("Query"), Each(5));
}

TEST(ScoreBreakdown, HasAMeanFreeRowPerKey)
{
  const FocusOracle oracle("bloom");
  Breakdown breakdown(oracle.GetRecording(), "bloom");
  breakdown->SetHead(3);
  vtkTable* keys = breakdown.Table(1);
  EXPECT_THAT(ColumnNames(keys),
    ElementsAre("Layer", "Head", "Sequence", "Position", "Token Index", "Token", "ALiBi", "Bias"));
  const std::vector<double> alibi = oracle.Values("figure3.alibi");
  ExpectClose("figure3.alibi", Column(keys, "ALiBi"),
    std::vector<double>(alibi.begin() + 48, alibi.end()), FocusTolerance);
  const std::vector<double> bias = oracle.Values("figure3.bias"); // [2, 2, 4, 16]
  ExpectClose("figure3.bias", Column(keys, "Bias"),
    std::vector<double>(bias.begin() + 48, bias.begin() + 64), FocusTolerance);
}

TEST(ScoreBreakdown, OfASingleToken)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  TransformerInput input;
  input.tokens = { { 5 } };
  Breakdown breakdown(RecordTransformer(model, input, RecordOptions()), "gpt2");
  EXPECT_THAT(breakdown.Column("Key"), ElementsAre(0));
  EXPECT_THAT(breakdown.Column("Bias", 1), ElementsAre(0));
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
