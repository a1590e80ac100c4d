#include "SentenceLayout.h"

#include "Base/Error.h"

#include <algorithm>
#include <string>

namespace atlas
{
namespace
{

/// The space between pages, in rows.
constexpr double PageGap = 2;

void Require(bool isRight, const char* name, const std::string& expected, std::int64_t found)
{
  ThrowIf<OptionError>(!isRight, name, ": expected ", expected, ", found ", found, ".");
}

/// The positions that are shown of these.
KeyRange PartOf(const KeyRange& all, const SentenceLayoutOptions& options)
{
  const std::int64_t length = all.end - all.begin;
  const std::int64_t first = options.first < length ? options.first : 0;
  const std::int64_t rest = length - first;
  const std::int64_t count = options.count > 0 ? std::min(options.count, rest) : rest;
  return { all.begin + first, all.begin + first + count };
}

}

SentenceLayout::SentenceLayout(
  const KeyRange& queries, const KeyRange& keys, const SentenceLayoutOptions& options)
  : WordWidth(options.wordWidth)
  , IsCausal(options.isCausal)
{
  const std::int64_t longest = std::max(queries.end - queries.begin, keys.end - keys.begin);
  Require(options.first >= 0 && (options.first < longest || options.first == 0), "FirstToken",
    "a position from 0 to " + std::to_string(std::max<std::int64_t>(longest - 1, 0)),
    options.first);
  Require(options.count >= 0, "TokenCount", "at least 0", options.count);
  Require(options.rowsPerPage >= 0, "RowsPerPage", "at least 0", options.rowsPerPage);
  this->Queries_ = PartOf(queries, options);
  this->Keys_ = PartOf(keys, options);
  const std::int64_t shown = std::max({ this->Queries_.end - this->Queries_.begin,
    this->Keys_.end - this->Keys_.begin, std::int64_t{ 1 } });
  this->Rows = options.rowsPerPage > 0 ? std::min(options.rowsPerPage, shown) : shown;
  this->Distance_ = std::clamp(0.4 * static_cast<double>(this->Rows), 8., 24.);

  const double width = this->Distance_ + 2 * this->WordWidth + BarLength + PageGap;
  const double height = static_cast<double>(this->Rows) + PageGap;
  double top = 0;
  const KeyRange& all = this->Queries_;
  for (std::int64_t query = all.begin; query < all.end; query += this->Rows)
  {
    const std::int64_t endOfKeys = this->IsCausal ? query + 1 : this->Keys_.end;
    double left = 0;
    for (std::int64_t key = this->Keys_.begin; key < endOfKeys; key += this->Rows)
    {
      this->Pages_.push_back({ query, std::min(query + this->Rows, all.end), key,
        std::min(key + this->Rows, this->Keys_.end), left, top });
      left += width;
    }
    top -= height;
  }
}

double SentenceLayout::BarsBegin(const SentencePage& page, TokenSide side) const
{
  return side == TokenSide::Query ? page.left - this->WordWidth
                                  : page.left + this->Distance_ + this->WordWidth;
}

bool SentenceLayout::HasBars(const SentencePage& page, TokenSide side) const
{
  if (this->Queries_.begin == this->Keys_.begin) // one text: those of a causal mask are there, too
  {
    return page.queryBegin == page.keyBegin;
  }
  return side == TokenSide::Key ? page.queryBegin == this->Queries_.begin
                                : page.keyBegin == this->Keys_.begin;
}

const SentencePage& SentenceLayout::PageOf(std::int64_t query, std::int64_t key) const
{
  const std::int64_t row = (query - this->Queries_.begin) / this->Rows;
  const std::int64_t column = (key - this->Keys_.begin) / this->Rows;
  const std::int64_t columns = (this->Keys_.end - this->Keys_.begin + this->Rows - 1) / this->Rows;
  return this->Pages_[(this->IsCausal ? row * (row + 1) / 2 : row * columns) + column];
}

std::array<double, 2> SentenceLayout::Place(
  const SentencePage& page, TokenSide side, std::int64_t position) const
{
  const bool isQuery = side == TokenSide::Query;
  const std::int64_t row = position - (isQuery ? page.queryBegin : page.keyBegin);
  return { isQuery ? page.left : page.left + this->Distance_, page.top - static_cast<double>(row) };
}

std::array<double, 4> SentenceLayout::Bounds() const
{
  std::array<double, 4> bounds = { 0, 0, 0, 0 };
  for (const SentencePage& page : this->Pages_)
  {
    const auto rows =
      static_cast<double>(std::max(page.queryEnd - page.queryBegin, page.keyEnd - page.keyBegin));
    const double outer = this->WordWidth + BarLength;
    bounds[0] = std::min(bounds[0], page.left - outer);
    bounds[1] = std::max(bounds[1], page.left + this->Distance_ + outer);
    bounds[2] = std::min(bounds[2], page.top - rows + 0.5);
    bounds[3] = std::max(bounds[3], page.top + 0.5);
  }
  return bounds;
}

}
