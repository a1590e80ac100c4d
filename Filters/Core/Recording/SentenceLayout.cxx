#include "SentenceLayout.h"

#include "Error.h"
#include "Index.h"

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
  if (!isRight)
  {
    throw OptionError(
      std::string(name) + ": expected " + expected + ", found " + std::to_string(found) + ".");
  }
}

}

SentenceLayout::SentenceLayout(std::int64_t length, const SentenceLayoutOptions& options)
  : First_(options.first)
  , WordWidth(options.wordWidth)
  , IsCausal(options.isCausal)
{
  Require(options.first >= 0 && (options.first < length || options.first == 0), "FirstToken",
    "a position from 0 to " + std::to_string(std::max<std::int64_t>(length - 1, 0)), options.first);
  Require(options.count >= 0, "TokenCount", "at least 0", options.count);
  Require(options.rowsPerPage >= 0, "RowsPerPage", "at least 0", options.rowsPerPage);
  const std::int64_t rest = length - options.first;
  this->End_ = options.first + (options.count > 0 ? std::min(options.count, rest) : rest);
  const std::int64_t shown = std::max<std::int64_t>(this->End_ - this->First_, 1);
  this->Rows = options.rowsPerPage > 0 ? std::min(options.rowsPerPage, shown) : shown;
  this->Distance_ = std::clamp(0.4 * static_cast<double>(this->Rows), 8., 24.);

  const double width = this->Distance_ + 2 * this->WordWidth + BarLength + PageGap;
  const double height = static_cast<double>(this->Rows) + PageGap;
  double top = 0;
  for (std::int64_t query = this->First_; query < this->End_; query += this->Rows)
  {
    const std::int64_t endOfKeys = this->IsCausal ? query + 1 : this->End_;
    double left = 0;
    for (std::int64_t key = this->First_; key < endOfKeys; key += this->Rows)
    {
      this->Pages_.push_back({ query, std::min(query + this->Rows, this->End_), key,
        std::min(key + this->Rows, this->End_), left, top });
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

const SentencePage& SentenceLayout::PageOf(std::int64_t query, std::int64_t key) const
{
  const std::int64_t row = (query - this->First_) / this->Rows;
  const std::int64_t column = (key - this->First_) / this->Rows;
  const std::int64_t columns = (this->End_ - this->First_ + this->Rows - 1) / this->Rows;
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
