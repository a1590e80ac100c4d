#include "vtkScoreAttribution.h"

#include "Core/LogitsOracle.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Attribution = OnRecordingAndModel<vtkScoreAttribution>;

double Sum(const std::vector<double>& values)
{
  return std::accumulate(values.begin(), values.end(), 0.);
}

/// TestScoreAttribution of Core has other models.
TEST(ScoreAttribution, PairsAddUpToTheScore)
{
  const LogitsOracle oracle("gpt2");
  const Recording& recording = oracle.GetRecording();
  Attribution attribution(recording, "gpt2");
  for (const auto& [layer, head, query, key] :
    { std::array{ 0, 1, 7, 2 }, std::array{ 1, 0, 9, 9 }, std::array{ 1, 3, -1, -1 } })
  {
    attribution->SetLayer(layer);
    attribution->SetHead(head);
    attribution->SetQuery(query);
    attribution->SetKey(key);
    vtkImageData* image = attribution.Image();
    vtkFieldData* fields = image->GetFieldData();
    const auto length = recording.SequenceLength(0);
    const int at = query == -1 ? static_cast<int>(length) - 1 : query;
    std::vector<float> scores(length);
    EvaluateAttention(
      recording, 0, layer, head, AttentionQuantity::Scores, at, at + 1, scores.data());
    EXPECT_THAT(Values(fields, "Query"), ElementsAre(at));
    const auto found = static_cast<std::size_t>(Values(fields, "Key")[0]);
    if (key == -1)
    {
      EXPECT_EQ(scores[found], *std::max_element(scores.begin(), scores.begin() + at + 1));
    }
    const auto expected = static_cast<double>(scores[found]);
    const double sum = Sum(Values(image->GetPointData(), "ScoreContribution"));
    EXPECT_NEAR(sum, expected, 1e-5 * std::max(1., std::abs(expected)));
    EXPECT_NEAR(Values(fields, "Score")[0], expected, 1e-5);
    EXPECT_NEAR(Values(fields, "Sum")[0], sum, 1e-9);
    EXPECT_NEAR(Values(fields, "Miss")[0], sum - Values(fields, "Score")[0], 1e-9);
  }
}

TEST(ScoreAttribution, NamesRowsColumnsAndPairs)
{
  const LogitsOracle oracle("bloom");
  Attribution attribution(oracle.GetRecording(), "bloom");
  attribution->SetLayer(1);
  attribution->SetTop(3);
  vtkImageData* image = attribution.Image();
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"),
    ElementsAre(
      "embed", "head 0.0", "head 0.1", "head 0.2", "head 0.3", "bias 0", "mlp 0", "b_Q", "ALiBi"));
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"),
    ElementsAre(
      "embed", "head 0.0", "head 0.1", "head 0.2", "head 0.3", "bias 0", "mlp 0", "b_K", "ALiBi"));
  EXPECT_EQ(image->GetPointData()->GetScalars()->GetName(), std::string("ScoreContribution"));
  vtkTable* pairs = TableOf(attribution.Get(), 1);
  EXPECT_THAT(
    ColumnNames(pairs), ElementsAre("Rank", "Query Component", "Key Component", "ScoreContribution",
                          "Query Layer", "Query Head", "Key Layer", "Key Head"));
  EXPECT_THAT(Column(pairs, "Rank"), ElementsAre(1, 2, 3));
  std::vector<double> values = Values(image->GetPointData(), "ScoreContribution");
  std::sort(
    values.begin(), values.end(), [](double a, double b) { return std::abs(a) > std::abs(b); });
  EXPECT_THAT(Column(pairs, "ScoreContribution"), ElementsAre(values[0], values[1], values[2]));

  attribution->SetGrouping(vtkScoreAttribution::LAYERS);
  image = attribution.Image();
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"),
    ElementsAre("embed", "attn 0", "mlp 0", "b_Q", "ALiBi"));
  EXPECT_NEAR(Sum(Values(image->GetPointData(), "ScoreContribution")), Sum(values), 1e-9);
}

TEST(ScoreAttribution, KnowsTheRangesOfItsInput)
{
  const LogitsOracle oracle("gpt2");
  Attribution attribution(oracle.GetRecording(), "gpt2");
  attribution->UpdateInformation();
  EXPECT_EQ(attribution->GetSequenceRange()[1], 1);
  EXPECT_EQ(attribution->GetLayerRange()[1], 1);
  EXPECT_EQ(attribution->GetHeadRange()[1], 3);
  EXPECT_EQ(attribution->GetPositionRange()[0], -1);
  EXPECT_EQ(attribution->GetPositionRange()[1], 16);
}

}
