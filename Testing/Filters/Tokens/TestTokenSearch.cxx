#include "vtkTokenSearch.h"

#include "Embeddings.h"

#include "Matchers.h"
using namespace atlas;
using namespace atlas::test;

namespace
{

class Search : public On<vtkTokenSearch>
{
public:
  using On::On;

  std::vector<double> Matches(const char* text, int match)
  {
    this->Get()->SetText(text);
    this->Get()->SetMatch(match);
    return this->Points("Match");
  }
  std::string Error(const char* text, int match)
  {
    this->Get()->SetText(text);
    this->Get()->SetMatch(match);
    return this->On::Error();
  }
};

/// Points of tokens at distances along a line.
vtkSmartPointer<vtkPolyData> TokensAt(
  const std::vector<std::string>& tokens, const std::vector<double>& x)
{
  auto data = PointsAt(x, std::vector<double>(x.size(), 0));
  AddArray<vtkStringArray>(data->GetPointData(), "Token", tokens);
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
  AddArray<vtkTypeInt64Array>(
    data->GetPointData(), "TokenId", std::vector<vtkTypeInt64>{ 0, 5, 17, 5 });
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
  vtkPolyData* found = search.Geometry(1);
  ASSERT_EQ(found->GetNumberOfPoints(), 2);
  EXPECT_EQ(found->GetNumberOfVerts(), 2);
  EXPECT_EQ(found->GetPoint(1)[0], 5);
  EXPECT_EQ(Names(found->GetPointData()), (std::set<std::string>{ "Match", "Token" }));
  EXPECT_EQ(search.Geometry()->GetNumberOfVerts(), 3);
  EXPECT_FALSE(data->GetPointData()->HasArray("Match")); // the input is as it was
}

/// Three heads: matches at distance 1, 6 and (only one match) none.
TEST(TokenSearch, SortsHeadsThatGatherTheWordFirst)
{
  const auto data = TokensAt({ "a", "b", "a", "a", "b", "c", "a", "a", "b", "c", "c" },
    { 0, 3, 6, /**/ 2, 0, 9, 3, /**/ 1, 5, 2, 7 });
  AddArray<vtkIntArray>(
    data->GetPointData(), "Layer", std::vector<int>{ 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3 });
  AddArray<vtkIntArray>(
    data->GetPointData(), "Head", std::vector<int>{ 1, 1, 1, 4, 4, 4, 4, 0, 0, 0, 0 });
  Search search(data);
  search->SetText("A");
  vtkTable* table = search.Table(2);
  EXPECT_EQ(std::string(table->GetColumnName(0)) + table->GetColumnName(1), "LayerHead");
  EXPECT_THAT(search.Column("Layer", 2), ElementsAre(0, 0, 3));
  EXPECT_THAT(search.Column("Head", 2), ElementsAre(4, 1, 0));
  EXPECT_THAT(search.Column("Matches", 2), ElementsAre(2, 2, 1));
  const std::vector<double> spread = search.Column("Spread", 2);
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
  EXPECT_THAT(search.Column("Matches", 2), ElementsAre(count / 2));
  EXPECT_NEAR(search.Column("Spread", 2)[0], 0.5, 1e-3);
  EXPECT_THAT(search.Column("Layer", 2), ElementsAre(-1));
}

TEST(TokenSearch, SearchesTables)
{
  vtkNew<vtkTable> table;
  AddArray<vtkStringArray, std::string>(table->GetRowData(), "Token", { "one", "two", "One" });
  Search search(table);
  search->SetText("one");
  auto* marked = search.Table();
  EXPECT_THAT(Values(marked->GetRowData(), "Match"), ElementsAre(1, 0, 1));
  EXPECT_EQ(OutputOf<vtkTable>(search.Get(), 1)->GetNumberOfRows(), 2);
  EXPECT_THAT(search.Column("Matches", 2), ElementsAre(2));
  EXPECT_EQ(search.Table(2)->GetColumnByName("Spread"), nullptr);
}

TEST(TokenSearch, NamesBadExpressions)
{
  Search search(TokensAt({ "a" }, { 0 }));
  EXPECT_THAT(search.Error("(a", vtkTokenSearch::REGULAR_EXPRESSION),
    HasSubstr("Text: cannot understand the regular expression '(a': missing closing parenthesis"));
  EXPECT_THAT(search.Matches("(a", vtkTokenSearch::CONTAINS), ElementsAre(0));
}

}
