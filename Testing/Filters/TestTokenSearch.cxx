#include "vtkTokenSearch.h"

#include "Embeddings.h"

#include <vtkTable.h>

#include <cmath>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class Search : public Observed<vtkTokenSearch>
{
public:
  explicit Search(vtkDataObject* data) { Connect(this->Get(), 0, data); }

  vtkPolyData* Output(int port) { return Updated<vtkPolyData>(this->Get(), port); }
  vtkTable* Table() { return Updated<vtkTable>(this->Get(), 2); }
  std::vector<double> Matches(const char* text, int match)
  {
    this->Get()->SetText(text);
    this->Get()->SetMatch(match);
    return Values(this->Output(0)->GetPointData(), "Match");
  }
  std::string Error(const char* text, int match)
  {
    this->Get()->SetText(text);
    this->Get()->SetMatch(match);
    EXPECT_EQ(this->Output(0)->GetNumberOfPoints(), 0);
    return this->TakeError();
  }
};

/// Points of tokens at distances along a line.
vtkSmartPointer<vtkPolyData> TokensAt(
  const std::vector<std::string>& tokens, const std::vector<double>& x)
{
  auto data = PointsAt(x, std::vector<double>(x.size(), 0));
  AddPointArray<vtkStringArray>(data, "Token", tokens);
  return data;
}

TEST(TokenSearch, MarksTokens)
{
  Search search(TokensAt({ "The", " the", "then", "a", " A" }, { 0, 1, 2, 3, 4 }));
  EXPECT_THAT(search.Matches("the", vtkTokenSearch::CONTAINS), ElementsAre(1, 1, 1, 0, 0));
  EXPECT_THAT(search.Matches("the", vtkTokenSearch::WHOLE), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(search.Matches(" the", vtkTokenSearch::WHOLE), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(
    search.Matches("^ ?(a|then)$", vtkTokenSearch::REGULAR_EXPRESSION), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(search.Matches("", vtkTokenSearch::CONTAINS), ElementsAre(0, 0, 0, 0, 0));
  search->SetCaseSensitive(true);
  EXPECT_THAT(search.Matches("the", vtkTokenSearch::CONTAINS), ElementsAre(0, 1, 1, 0, 0));
  EXPECT_THAT(
    search.Matches("^ ?a$", vtkTokenSearch::REGULAR_EXPRESSION), ElementsAre(0, 0, 0, 1, 0));
}

TEST(TokenSearch, FindsIds)
{
  const auto data = PointsAt({ 0, 1, 2, 3 }, { 0, 0, 0, 0 });
  AddPointArray<vtkTypeInt64Array>(data, "TokenId", std::vector<vtkTypeInt64>{ 0, 5, 17, 5 });
  Search search(data);
  EXPECT_THAT(search.Matches("0", vtkTokenSearch::TOKEN_ID), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(search.Matches("5, 0\n99", vtkTokenSearch::TOKEN_ID), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(
    search.Error("5 x", vtkTokenSearch::TOKEN_ID), HasSubstr("Text: line 1: expected integers"));
  EXPECT_THAT(search.Error("5", vtkTokenSearch::WHOLE), HasSubstr("expected an array 'Token'"));
}

TEST(TokenSearch, GivesThePointsThatAreFound)
{
  const auto data = TokensAt({ "x", "y", "x" }, { 0, 1, 5 });
  Search search(data);
  search->SetText("x");
  vtkPolyData* found = search.Output(1);
  ASSERT_EQ(found->GetNumberOfPoints(), 2);
  EXPECT_EQ(found->GetNumberOfVerts(), 2);
  EXPECT_EQ(found->GetPoint(1)[0], 5);
  EXPECT_EQ(Names(found->GetPointData()), (std::set<std::string>{ "Match", "Token" }));
  EXPECT_EQ(search.Output(0)->GetNumberOfVerts(), 3);
  EXPECT_FALSE(data->GetPointData()->HasArray("Match")); // the input is as it was
}

/// Three heads: matches at distance 1, 6 and (only one match) none.
TEST(TokenSearch, SortsHeadsThatGatherTheWordFirst)
{
  const auto data = TokensAt({ "a", "b", "a", "a", "b", "c", "a", "a", "b", "c", "c" },
    { 0, 3, 6, /**/ 2, 0, 9, 3, /**/ 1, 5, 2, 7 });
  AddPointArray<vtkIntArray>(data, "Layer", std::vector<int>{ 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3 });
  AddPointArray<vtkIntArray>(data, "Head", std::vector<int>{ 1, 1, 1, 4, 4, 4, 4, 0, 0, 0, 0 });
  Search search(data);
  search->SetText("A");
  vtkTable* table = search.Table();
  EXPECT_EQ(std::string(table->GetColumnName(0)) + table->GetColumnName(1), "LayerHead");
  EXPECT_THAT(Values(table->GetRowData(), "Layer"), ElementsAre(0, 0, 3));
  EXPECT_THAT(Values(table->GetRowData(), "Head"), ElementsAre(4, 1, 0));
  EXPECT_THAT(Values(table->GetRowData(), "Matches"), ElementsAre(2, 2, 1));
  const std::vector<double> spread = Values(table->GetRowData(), "Spread");
  EXPECT_NEAR(spread[0], 1 / ((2 + 7 + 1 + 9 + 3 + 6) / 6.), 1e-6);
  EXPECT_NEAR(spread[1], 6 / ((3 + 6 + 3) / 3.), 1e-6);
  EXPECT_TRUE(std::isnan(spread[2]));
}

/// More points than are compared one by one: matches on the left half of a line of even steps.
TEST(TokenSearch, MeasuresManyPoints)
{
  constexpr int count = 40000;
  std::vector<std::string> tokens;
  std::vector<double> x;
  for (int i = 0; i < count; ++i)
  {
    tokens.emplace_back(i < count / 2 ? "left" : "right");
    x.push_back(i * 1e-4);
  }
  Search search(TokensAt(tokens, x));
  search->SetText("left");
  EXPECT_THAT(Values(search.Table()->GetRowData(), "Matches"), ElementsAre(count / 2));
  EXPECT_NEAR(Values(search.Table()->GetRowData(), "Spread")[0], 0.5, 1e-3);
  EXPECT_THAT(Values(search.Table()->GetRowData(), "Layer"), ElementsAre(-1));
}

TEST(TokenSearch, SearchesTables)
{
  vtkNew<vtkTable> table;
  vtkNew<vtkStringArray> tokens;
  tokens->SetName("Token");
  for (const char* token : { "one", "two", "One" })
  {
    tokens->InsertNextValue(token);
  }
  table->AddColumn(tokens);
  Search search(table);
  search->SetText("one");
  auto* marked = Updated<vtkTable>(search.Get());
  EXPECT_THAT(Values(marked->GetRowData(), "Match"), ElementsAre(1, 0, 1));
  EXPECT_EQ(vtkTable::SafeDownCast(search->GetOutputDataObject(1))->GetNumberOfRows(), 2);
  EXPECT_THAT(Values(search.Table()->GetRowData(), "Matches"), ElementsAre(2));
  EXPECT_EQ(search.Table()->GetColumnByName("Spread"), nullptr);
}

TEST(TokenSearch, NamesBadExpressions)
{
  Search search(TokensAt({ "a" }, { 0 }));
  EXPECT_THAT(search.Error("(a", vtkTokenSearch::REGULAR_EXPRESSION),
    HasSubstr("Text: cannot understand the regular expression '(a': missing closing parenthesis"));
  EXPECT_THAT(search.Matches("(a", vtkTokenSearch::CONTAINS), ElementsAre(0));
}

}
