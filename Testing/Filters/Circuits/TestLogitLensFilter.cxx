#include "vtkLogitLens.h"

#include "Core/LogitsOracle.h"
#include "Matchers.h"
#include "Tables.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Lens = OnRecordingAndModel<vtkLogitLens>;

TEST(LogitLens, HasAWordPerLayerAndPosition)
{
  const LogitsOracle oracle("gpt2");
  Lens lens(oracle.GetRecording(), "gpt2");
  vtkImageData* image = lens.Image();
  EXPECT_THAT(SizeOf(image), ElementsAre(17, 3));
  const std::vector<double> logits = oracle.Values("lens.logits"); // [3, 1, 17, 211]
  const std::vector<double> ids = Values(image->GetPointData(), "TokenId");
  const std::vector<double> found = Values(image->GetPointData(), "Logit");
  const std::vector<double> probability = Values(image->GetPointData(), "Probability");
  const std::vector<double> layer = Values(image->GetPointData(), "Layer");
  const std::vector<double> rank = Values(image->GetPointData(), "Next Rank");
  const std::vector<double> next = Values(image->GetPointData(), "Next Probability");
  for (std::size_t i = 0; i < ids.size(); ++i) // from the bottom: layer 0
  {
    const auto row = logits.begin() + static_cast<long>(211 * i);
    EXPECT_EQ(layer[i], static_cast<double>(i / 17));
    EXPECT_EQ(ids[i], std::max_element(row, row + 211) - row);
    EXPECT_NEAR(found[i], *std::max_element(row, row + 211), 1e-5);
    double sum = 0;
    for (auto logit = row; logit != row + 211; ++logit)
    {
      sum += std::exp(*logit);
    }
    EXPECT_NEAR(probability[i], std::exp(found[i]) / sum, 1e-5);
    if (i % 17 == 16)
    {
      EXPECT_EQ(rank[i], -1);
      EXPECT_EQ(next[i], -1);
      continue;
    }
    const double logit = row[oracle.GetRecording().tokens.id[i % 17 + 1]];
    EXPECT_NEAR(next[i], std::exp(logit) / sum, 1e-5);
    EXPECT_EQ(rank[i],
      1 + std::count_if(row, row + 211, [logit](double other) { return other > logit + 1e-5; }));
  }
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"), ElementsAre("2", "1", "0"));
  EXPECT_EQ(Texts(image->GetFieldData(), "Key Token").size(), 17U);
}

TEST(LogitLens, ListsTheBestTokens)
{
  const LogitsOracle oracle("attn-only");
  Lens lens(oracle.GetRecording(), "attn-only");
  lens->SetSequence(1);
  lens->SetTop(3);
  vtkTable* table = TableOf(lens.Get(), 1);
  EXPECT_THAT(ColumnNames(table), ElementsAre("Layer", "Sequence", "Position", "Token Index",
                                    "Token", "TokenId", "Logit", "Probability", "Rank"));
  ASSERT_EQ(table->GetNumberOfRows(), 3 * 20 * 3);
  const std::vector<double> logit = Column(table, "Logit");
  const std::vector<double> rank = Column(table, "Rank");
  for (std::size_t i = 0; i < logit.size(); ++i)
  {
    EXPECT_EQ(rank[i], static_cast<double>(i % 3 + 1));
    EXPECT_TRUE(i % 3 == 0 || logit[i] <= logit[i - 1]);
  }
  EXPECT_EQ(Column(table, "Layer")[60], 1);
  EXPECT_EQ(Column(table, "Token Index")[3], 21);
}

TEST(LogitLens, WritesWordsInTheirCells)
{
  const LogitsOracle oracle("gpt2");
  Lens lens(oracle.GetRecording(), "gpt2");
  vtkImageData* image = lens.Image();
  vtkPolyData* labels = lens.Geometry(2);
  ASSERT_EQ(labels->GetNumberOfPoints(), image->GetNumberOfPoints());
  const std::vector<std::string> words = Texts(labels->GetPointData(), "Token");
  const std::vector<std::string> cells = Texts(image->GetPointData(), "Token");
  for (vtkIdType i = 0; i < labels->GetNumberOfPoints(); ++i)
  {
    std::array<double, 3> at;
    labels->GetPoint(i, at.data());
    at = { at[0] + 0.48 * image->GetSpacing()[0], at[1], 0 };
    const vtkIdType point = image->FindPoint(at.data());
    EXPECT_EQ(words[i], cells[point]);
  }
}

}
