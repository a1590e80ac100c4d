#include "vtkBigramTable.h"

#include "Core/TablesOracle.h"
#include "DataFormat.h"
#include "Matchers.h"
#include "WordModel.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Without a tokenizer and without tokens: the sample of the oracle.
TEST(BigramTable, ListsTheLargest)
{
  const TablesOracle oracle("gpt2");
  OnModel<vtkBigramTable> bigrams("gpt2");
  for (const bool processes : { true, false })
  {
    bigrams->SetProcessing(processes);
    vtkTable* table = TableOf(bigrams.Get());
    ASSERT_EQ(table->GetNumberOfRows(), 80);
    EXPECT_EQ(AttentionAtlas::FormatOf(table), AttentionAtlas::Formats::BigramTable);
    EXPECT_THAT(ColumnNames(table),
      ElementsAre("Token", "TokenId", "Rank", "Next Token", "Next TokenId", "Logit"));
    EXPECT_THAT(Texts(table->GetFieldData(), "Processing"),
      ElementsAre(processes ? "TransformerLens" : "None"));
    std::vector<std::string> leftOut = { "biases", "division by the norm of the residual stream" };
    if (!processes)
    {
      leftOut.emplace_back("gains of normalizations");
    }
    leftOut.emplace_back("attention and MLPs");
    EXPECT_EQ(Texts(table->GetFieldData(), "Left Out"), leftOut);
    const std::string name = processes ? "bigram.folded.top" : "bigram.raw.top";
    const std::vector<double> expected = oracle.Values(name + ".values");
    const std::vector<double> ids = Column(table, "TokenId");
    const std::vector<double> ranks = Column(table, "Rank");
    const std::vector<double> logits = Column(table, "Logit");
    for (std::size_t row = 0; row < logits.size(); ++row)
    {
      EXPECT_EQ(ranks[row], static_cast<double>(row % 10 + 1));
      EXPECT_EQ(ids[row], oracle.Ids("table.tokens")[row / 10]);
      const auto place = static_cast<std::size_t>(ids[row]) * 10 + row % 10;
      EXPECT_NEAR(logits[row], expected[place], 1e-5 * 4);
    }
  }
}

TEST(BigramTable, TokensHaveTexts)
{
  WordModel model;
  Observed<vtkBigramTable> bigrams;
  bigrams->SetInputConnection(model.Port());
  bigrams->AddToken("w17");
  bigrams->AddToken("\u00B7w3");
  bigrams->AddToken("#9");
  bigrams->SetTop(2);
  vtkTable* table = TableOf(bigrams.Get());
  EXPECT_THAT(Column(table, "TokenId"), ElementsAre(17, 17, 3, 3, 9, 9));
  const std::vector<double> next = Column(table, "Next TokenId");
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    EXPECT_EQ(table->GetValueByName(row, "Next Token").ToString(), WordModel::Text(next[row]));
  }
}

}
