#include "vtkSkipTrigrams.h"

#include "Core/TablesOracle.h"
#include "Matchers.h"
#include "WordModel.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

TEST(SkipTrigrams, AreThoseOfTheOracle)
{
  const TablesOracle oracle("llama");
  OnModel<vtkSkipTrigrams> trigrams("llama");
  trigrams->SetLayer(1);
  trigrams->SetHead(3);
  vtkTable* table = TableOf(trigrams.Get());
  EXPECT_EQ(trigrams->GetLayerRange()[1], 1);
  EXPECT_EQ(trigrams->GetHeadRange()[1], 3);
  ASSERT_EQ(table->GetNumberOfRows(), 50);
  EXPECT_THAT(ColumnNames(table),
    ElementsAre("Rank", "Source", "Destination", "Output", "Score", "QK", "OV", "Source TokenId",
      "Destination TokenId", "Output TokenId", "Layer", "Head"));
  const std::vector<std::int32_t> ids = oracle.Ids("skip.ids");
  const std::vector<double> scores = oracle.Values("skip.score");
  const std::vector<double> found = Column(table, "Score");
  for (std::size_t row = 0; row < 50; ++row)
  {
    const std::size_t place = 7 * 50 + row;
    EXPECT_EQ(Column(table, "Source TokenId")[row], ids[3 * place]);
    EXPECT_EQ(Column(table, "Destination TokenId")[row], ids[3 * place + 1]);
    EXPECT_EQ(Column(table, "Output TokenId")[row], ids[3 * place + 2]);
    EXPECT_NEAR(found[row], scores[place], 1e-5 * scores[place]);
  }
  EXPECT_THAT(Column(table, "Layer"), Each(1));
  EXPECT_THAT(Texts(table->GetFieldData(), "Left Out"), Contains(HasSubstr("rotary")));
  EXPECT_THAT(Texts(table->GetFieldData(), "Sources"),
    ElementsAre("all " + std::to_string(oracle.GetModel().GetConfig().vocabulary) + " tokens"));
}

TEST(SkipTrigrams, SayWhichSourcesTheyAreOf)
{
  WordModel model;
  Observed<vtkSkipTrigrams> trigrams;
  trigrams->SetInputConnection(model.Port());
  trigrams->SetSourceLimit(0);
  trigrams->SetTop(2000);
  const auto sources = [&] { return Texts(TableOf(trigrams.Get())->GetFieldData(), "Sources"); };
  EXPECT_THAT(sources(), ElementsAre("all 211 tokens"));
  trigrams->SetSourceLimit(3);
  EXPECT_THAT(sources(), ElementsAre("the 3 of 211 tokens with the longest keys and values"));
  std::set<double> found;
  for (const double source : Column(TableOf(trigrams.Get()), "Source TokenId"))
  {
    found.insert(source);
  }
  EXPECT_LE(found.size(), 3U);
  trigrams->AddToken("w20");
  EXPECT_THAT(sources(), ElementsAre("the given token"));
  trigrams->AddToken("w21");
  EXPECT_THAT(sources(), ElementsAre("the 2 given tokens"));
}

TEST(SkipTrigrams, OfSourcesByText)
{
  WordModel model;
  Observed<vtkSkipTrigrams> trigrams;
  trigrams->SetInputConnection(model.Port());
  trigrams->AddToken("w20");
  trigrams->SetTop(4);
  vtkTable* table = TableOf(trigrams.Get());
  EXPECT_THAT(Column(table, "Source TokenId"), ElementsAre(20, 20, 20, 20));
  EXPECT_EQ(table->GetValueByName(0, "Source").ToString(), " w20");
  EXPECT_EQ(table->GetValueByName(0, "Output").ToString(),
    WordModel::Text(Column(table, "Output TokenId")[0]));
}

TEST(SkipTrigrams, TellWhatIsWrong)
{
  OnModel<vtkSkipTrigrams> trigrams("gpt2");
  trigrams->SetLayer(5);
  EXPECT_THAT(trigrams.Error(), HasSubstr("Layer: expected a number from 0 to 1, found 5."));
}

}
