#include "vtkLogitAttribution.h"

#include "Core/LogitsOracle.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Attribution = OnRecordingAndModel<vtkLogitAttribution>;

TEST(LogitAttribution, HasARowPerPositionAndComponent)
{
  const LogitsOracle oracle("gpt2");
  Attribution attribution(oracle.GetRecording(), "gpt2");
  attribution->SetSequence(1);
  vtkTable* table = TableOf(attribution.Get());
  EXPECT_THAT(ColumnNames(table), ElementsAre("Component", "Layer", "Head", "Sequence", "Position",
                                    "Token Index", "Token", "TokenId", "Target", "Contribution"));
  ASSERT_EQ(table->GetNumberOfRows(), 16 * 15);                     // 14 components and b_U
  const std::vector<double> expected = oracle.Values("dla.values"); // [2, 16, 14]
  const std::vector<double> all = Column(table, "Contribution");
  std::vector<double> found;
  for (std::size_t i = 0; i < all.size(); ++i)
  {
    if (i % 15 != 14)
    {
      found.push_back(all[i]);
    }
  }
  ExpectClose("dla.values", found, std::vector<double>(expected.begin() + 16 * 14, expected.end()),
    LogitsTolerance);
  EXPECT_EQ(table->GetValueByName(3, "Component").ToString(), "head 0.1");
  EXPECT_EQ(Column(table, "Layer")[3], 0);
  EXPECT_EQ(Column(table, "Head")[3], 1);
  EXPECT_EQ(Column(table, "Layer")[14], -1);
  EXPECT_EQ(table->GetValueByName(14, "Component").ToString(), "b_U");
  EXPECT_EQ(Column(table, "Position")[15], 1);
  EXPECT_EQ(Column(table, "Token Index")[15], 18);
  EXPECT_EQ(Column(table, "TokenId")[15], oracle.Integers("dla.target")[17]);

  const std::vector<double> logit = oracle.Values("dla.logit");
  const std::vector<double> expectedLogit(logit.begin() + 16, logit.end());
  ExpectClose("Sum", attribution.Field("Sum"), expectedLogit, LogitsTolerance);
  ExpectClose("Logit", attribution.Field("Logit"), expectedLogit, LogitsTolerance);
  for (const double miss : attribution.Field("Miss"))
  {
    EXPECT_NEAR(miss, 0, 1e-5 * LargestMagnitude(expectedLogit));
  }
}

TEST(LogitAttribution, ShowsComponentsDownward)
{
  const LogitsOracle oracle("gpt2");
  Attribution attribution(oracle.GetRecording(), "gpt2");
  vtkImageData* image = attribution.Image(1);
  vtkTable* table = TableOf(attribution.Get());
  EXPECT_THAT(SizeOf(image), ElementsAre(16, 15));
  const std::vector<double> rows = Column(table, "Contribution");
  const std::vector<double> points = Values(image->GetPointData(), "Contribution");
  for (std::size_t position = 0; position < 16; ++position)
  {
    for (std::size_t c = 0; c < 15; ++c)
    {
      EXPECT_EQ(points[(14 - c) * 16 + position], rows[position * 15 + c]);
    }
  }
  EXPECT_EQ(image->GetPointData()->GetScalars()->GetName(), std::string("Contribution"));
  EXPECT_EQ(Texts(image->GetFieldData(), "Query Token").front(), "embed");
  EXPECT_EQ(Texts(image->GetFieldData(), "Key Token").size(), 16U);
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Title"), ElementsAre("Component"));

  attribution->SetGrouping(vtkLogitAttribution::LAYERS);
  image = attribution.Image(1);
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"),
    ElementsAre("embed", "pos", "attn 0", "mlp 0", "attn 1", "mlp 1", "b_U"));
  EXPECT_EQ(image->GetDimensions()[1], 7);
  double sum = 0;
  for (std::size_t c = 2; c < 7; ++c) // heads and bias of layer 0
  {
    sum += rows[c];
  }
  EXPECT_NEAR(Values(image->GetPointData(), "Contribution")[4 * 16], sum, 1e-12);
}

TEST(LogitAttribution, OfChosenTokens)
{
  const LogitsOracle oracle("gpt2");
  const Recording& recording = oracle.GetRecording();
  Attribution attribution(recording, "gpt2");
  attribution->SetPosition(16);
  attribution->SetTarget(vtkLogitAttribution::TOKEN);
  attribution->SetTargetToken("#7");
  EXPECT_EQ(TableOf(attribution.Get())->GetNumberOfRows(), 15);
  EXPECT_THAT(attribution.Column("TokenId"), Each(7));
  EXPECT_EQ(attribution.Image(1)->GetDimensions()[0], 1);
  attribution->SetAgainst("3");
  const float* logits = recording.logits.Row(16);
  EXPECT_NEAR(attribution.Field("Sum")[0],
    static_cast<double>(logits[7]) - static_cast<double>(logits[3]), 1e-5);
  EXPECT_THAT(attribution.Field("Against TokenId"), ElementsAre(3));
  attribution->SetTarget(vtkLogitAttribution::PREDICTED);
  attribution->SetAgainst("");
  EXPECT_THAT(attribution.Column("TokenId"),
    Each(std::max_element(logits, logits + recording.logits.columns) - logits));
  attribution->SetPosition(-1);
  EXPECT_EQ(TableOf(attribution.Get())->GetNumberOfRows(), 17 * 15);
}

TEST(LogitAttribution, OfStoredWeights)
{
  const LogitsOracle oracle("gpt2");
  Attribution attribution(oracle.GetRecording(), "gpt2");
  attribution->SetProcessing(vtkLogitAttribution::NONE);
  attribution->SetPosition(4);
  const std::int64_t next = oracle.GetRecording().tokens.id[5];
  EXPECT_NEAR(attribution.Field("Sum")[0],
    static_cast<double>(oracle.GetRecording().logits.Row(4)[next]), 1e-5);
  EXPECT_THAT(attribution.FieldTexts("Processing"), ElementsAre("None"));
}

TEST(LogitAttribution, KnowsTheRangesOfItsInput)
{
  const LogitsOracle oracle("gpt2");
  Attribution attribution(oracle.GetRecording(), "gpt2");
  attribution->UpdateInformation();
  EXPECT_EQ(attribution->GetSequenceRange()[1], 1);
  EXPECT_EQ(attribution->GetPositionRange()[0], -1);
  EXPECT_EQ(attribution->GetPositionRange()[1], 15); // the last has no next token
  attribution->SetTarget(vtkLogitAttribution::PREDICTED);
  attribution->UpdateInformation();
  EXPECT_EQ(attribution->GetPositionRange()[1], 16);
}

}
