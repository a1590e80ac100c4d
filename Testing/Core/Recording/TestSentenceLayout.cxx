#include "Recording/SentenceLayout.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace
{

TEST(SentenceLayout, IsTwoColumns)
{
  const SentenceLayout layout(5, {});
  ASSERT_THAT(layout.Pages(), SizeIs(1));
  const SentencePage& page = layout.Pages()[0];
  EXPECT_EQ(layout.Distance(), 8);
  EXPECT_EQ(layout.Place(page, TokenSide::Query, 0), (std::array{ 0., 0. }));
  EXPECT_EQ(layout.Place(page, TokenSide::Query, 4), (std::array{ 0., -4. }));
  EXPECT_EQ(layout.Place(page, TokenSide::Key, 4), (std::array{ 8., -4. }));
  EXPECT_EQ(SentenceLayout(40, {}).Distance(), 16);
  EXPECT_EQ(SentenceLayout(4000, {}).Distance(), 24);
}

TEST(SentenceLayout, ShowsARange)
{
  SentenceLayoutOptions options;
  options.first = 3;
  options.count = 4;
  const SentenceLayout layout(10, options);
  EXPECT_EQ(layout.Queries().begin, 3);
  EXPECT_EQ(layout.Queries().end, 7);
  EXPECT_EQ(layout.Place(layout.Pages()[0], TokenSide::Query, 3)[1], 0);
  options.count = 40;
  EXPECT_EQ(SentenceLayout(10, options).Keys().end, 10);
  options.count = 0;
  EXPECT_EQ(SentenceLayout(10, options).Keys().end, 10);
}

TEST(SentenceLayout, BarsAreBeyondTheWords)
{
  SentenceLayoutOptions options;
  options.wordWidth = 5;
  const SentenceLayout layout(10, options);
  EXPECT_EQ(layout.BarsBegin(layout.Pages()[0], TokenSide::Query), -5);
  EXPECT_EQ(layout.BarsBegin(layout.Pages()[0], TokenSide::Key), 13);
}

TEST(SentenceLayout, BoundsHaveRoomForWordsAndBars)
{
  SentenceLayoutOptions options;
  options.wordWidth = 5;
  EXPECT_EQ(SentenceLayout(10, options).Bounds(), (std::array{ -9., 17., -9.5, 0.5 }));
  options.rowsPerPage = 6; // four pages of up to 26 x 6, with a gap of 2
  EXPECT_EQ(SentenceLayout(10, options).Bounds(), (std::array{ -9., 41., -13.5, 0.5 }));
}

/// Each pair of tokens is on one page, which has room for its words.
void ExpectPages(std::int64_t length, const SentenceLayoutOptions& options)
{
  const SentenceLayout layout(length, options);
  std::set<std::pair<double, double>> places;
  std::size_t words = 0;
  for (const SentencePage& page : layout.Pages())
  {
    EXPECT_LE(page.queryEnd - page.queryBegin, options.rowsPerPage);
    EXPECT_LE(page.keyEnd - page.keyBegin, options.rowsPerPage);
    for (std::int64_t i = page.queryBegin; i < page.queryEnd; ++i, ++words)
    {
      const auto [x, y] = layout.Place(page, TokenSide::Query, i);
      places.emplace(x, y);
    }
    for (std::int64_t i = page.keyBegin; i < page.keyEnd; ++i, ++words)
    {
      const auto [x, y] = layout.Place(page, TokenSide::Key, i);
      places.emplace(x, y);
    }
  }
  EXPECT_EQ(places.size(), words);
  for (std::int64_t query = layout.Queries().begin; query < layout.Queries().end; ++query)
  {
    const std::int64_t end = options.isCausal ? query + 1 : layout.Queries().end;
    for (std::int64_t key = layout.Keys().begin; key < end; ++key)
    {
      const SentencePage& page = layout.PageOf(query, key);
      EXPECT_TRUE(query >= page.queryBegin && query < page.queryEnd);
      EXPECT_TRUE(key >= page.keyBegin && key < page.keyEnd);
    }
  }
}

TEST(SentenceLayout, BreaksIntoPages)
{
  SentenceLayoutOptions options;
  options.wordWidth = 4;
  for (const bool isCausal : { false, true })
  {
    options.isCausal = isCausal;
    for (const std::int64_t rows : { 1, 3, 5, 10, 99 })
    {
      options.rowsPerPage = rows;
      ExpectPages(10, options);
    }
  }
  options.first = 2;
  options.rowsPerPage = 3;
  ExpectPages(10, options);
  EXPECT_THAT(SentenceLayout(10, options).Pages(), SizeIs(3 + 2 + 1));
  options.isCausal = false;
  EXPECT_THAT(SentenceLayout(10, options).Pages(), SizeIs(3 * 3));
}

/// Queries of one text and keys of another, which come before them in the sequence.
TEST(SentenceLayout, OfTwoTexts)
{
  SentenceLayoutOptions options;
  const KeyRange queries = { 4, 7 };
  const KeyRange keys = { 0, 4 };
  const SentenceLayout layout(queries, keys, options);
  ASSERT_THAT(layout.Pages(), SizeIs(1));
  const SentencePage& page = layout.Pages()[0];
  EXPECT_EQ(layout.Place(page, TokenSide::Query, 5), (std::array{ 0., -1. }));
  EXPECT_EQ(layout.Place(page, TokenSide::Key, 3), (std::array{ 8., -3. }));
  EXPECT_TRUE(layout.HasBars(page, TokenSide::Key));

  options.rowsPerPage = 2; // 2 x 2 pages
  const SentenceLayout paged(queries, keys, options);
  ASSERT_THAT(paged.Pages(), SizeIs(4));
  EXPECT_EQ(&paged.PageOf(6, 1), &paged.Pages()[2]);
  std::vector<bool> bars;
  for (const SentencePage& one : paged.Pages())
  {
    bars.push_back(paged.HasBars(one, TokenSide::Key));
  }
  EXPECT_THAT(bars, ElementsAre(true, true, false, false)); // beside the first queries
  EXPECT_TRUE(paged.HasBars(paged.Pages()[2], TokenSide::Query));

  options.first = 3; // the text of queries has no such word, and begins with its first
  const SentenceLayout part(queries, keys, options);
  EXPECT_EQ(part.Queries().begin, 4);
  EXPECT_EQ(part.Keys().begin, 3);
}

TEST(SentenceLayout, OfNothing)
{
  EXPECT_THAT(SentenceLayout(0, {}).Pages(), IsEmpty());
}

TEST(SentenceLayout, NamesWhatIsWrong)
{
  const auto message = [](std::int64_t first, std::int64_t count, std::int64_t rows)
  {
    return MessageOf<OptionError>(
      [&] { SentenceLayout(10, SentenceLayoutOptions{ first, count, rows, 0, false }); });
  };
  EXPECT_THAT(message(10, 0, 0), HasSubstr("FirstToken: expected a position from 0 to 9"));
  EXPECT_THAT(message(-1, 0, 0), HasSubstr("from 0 to 9, found -1"));
  EXPECT_THAT(message(0, -1, 0), HasSubstr("TokenCount: expected at least 0, found -1"));
  EXPECT_THAT(message(0, 0, -2), HasSubstr("RowsPerPage: expected at least 0, found -2"));
}

}
