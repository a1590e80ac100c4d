#pragma once

#include "SentenceAttention.h"

#include <array>
#include <cstdint>
#include <vector>

namespace atlas
{

/// How the words of a sequence are laid out.
struct SentenceLayoutOptions
{
  std::int64_t first = 0; ///< the first word that is shown, at least 0. Of two texts: of each, but
                          ///< one that is too short begins with its first word
  std::int64_t count = 0; ///< words that are shown, as far as there are; 0: all from the first
  std::int64_t rowsPerPage = 0; ///< rows of a page, at least 0; 0: one page
  double wordWidth = 0;         ///< of the widest word, in rows
  bool isCausal = false;        ///< whether no query attends to a later key
};

/// Two columns: the words of queryBegin <= i < queryEnd on the left, and of keyBegin <= j < keyEnd
/// on the right.
struct SentencePage
{
  std::int64_t queryBegin = 0;
  std::int64_t queryEnd = 0;
  std::int64_t keyBegin = 0;
  std::int64_t keyEnd = 0;
  double left = 0; ///< x of the queries
  double top = 0;  ///< y of the first row
};

/// Places of words in two columns. The distance of rows is 1, and y runs downward from 0. Lines
/// begin at the right end of a query and end at the left end of a key, so words never lie under
/// lines.
///
/// A text of more rows than a page has is cut into blocks, and each pair of a block of queries and
/// a block of keys has a page: those of a block of queries side by side, and those of the next
/// block below. With a causal mask, pages of later keys are left out.
class SentenceLayout
{
public:
  /// Throws OptionError if an option is out of range, naming it as the filter does: FirstToken,
  /// TokenCount, RowsPerPage.
  SentenceLayout(std::int64_t length, const SentenceLayoutOptions& options)
    : SentenceLayout({ 0, length }, { 0, length }, options)
  {
  }

  /// The same for queries and keys that are parts of a sequence, those of one text or of two.
  SentenceLayout(
    const KeyRange& queries, const KeyRange& keys, const SentenceLayoutOptions& options);

  const std::vector<SentencePage>& Pages() const { return this->Pages_; }

  /// The positions of the words that are shown.
  const KeyRange& Queries() const { return this->Queries_; }
  const KeyRange& Keys() const { return this->Keys_; }

  /// The distance of the two columns: 0.4 of the rows of a page, from 8 to 24.
  double Distance() const { return this->Distance_; }

  /// x of the outer ends of the words of a side, where bars begin.
  double BarsBegin(const SentencePage& page, TokenSide side) const;

  /// Whether the words of a side have their bars on this page, where they have them once.
  bool HasBars(const SentencePage& page, TokenSide side) const;

  /// The longest bar.
  static constexpr double BarLength = 4;

  /// The page on which a query and a key are joined; both must be shown.
  const SentencePage& PageOf(std::int64_t query, std::int64_t key) const;

  /// Where a line begins or ends: (x, y).
  std::array<double, 2> Place(
    const SentencePage& page, TokenSide side, std::int64_t position) const;

  /// The rectangle of all words and bars: least and largest x, least and largest y.
  std::array<double, 4> Bounds() const;

private:
  KeyRange Queries_;
  KeyRange Keys_;
  std::int64_t Rows = 1;
  double Distance_ = 0;
  double WordWidth = 0;
  bool IsCausal = false;
  std::vector<SentencePage> Pages_;
};

}
