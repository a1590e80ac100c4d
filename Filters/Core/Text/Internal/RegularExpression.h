#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A byte range [begin, end) of a text.
struct TextSpan
{
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Whether letters that differ only in case are equal to an expression.
enum class LetterCase
{
  Sensitive,
  Ignored
};

/// Where ^ and $ match.
enum class Anchors
{
  Lines, ///< at the ends of each line, as in tokenizer.json
  Text,  ///< at the ends of the text, as in tiktoken
  Perl   ///< at the ends of the text; $ also before a line end there
};

/// Whether matches without a character count.
enum class EmptyMatches
{
  LeftOut, ///< a longer match is looked for instead
  Kept     ///< as in Oniguruma
};

/// A regular expression, run by PCRE2 on UTF-8 with Unicode properties. The syntax is that of
/// Oniguruma, as in tokenizer files, which is translated: \s and \w, their negations and classes
/// such as [:punct:] have Oniguruma's characters (\w: letters, marks, digits and connectors).
/// \p{...} takes long names of categories (\p{Letter}), and the name of a script means the
/// characters of that script alone (\p{Han}). A class may contain classes, [ab[^cd]], and
/// intersections, [a-z&&[^aeiou]]. \h and \H are rejected.
class RegularExpression
{
public:
  /// Throws FormatError if the expression is invalid or not supported; the message starts with
  /// `source`.
  RegularExpression(const std::string& pattern, const std::string& source,
    LetterCase letterCase = LetterCase::Sensitive, Anchors anchors = Anchors::Lines);

  /// Returns all matches in order. Empty ones are left out unless they are wanted; then there is
  /// none directly behind another match. `text` must be UTF-8. Thread-safe. Throws FormatError if
  /// matching needs too many steps or too much memory.
  std::vector<TextSpan> Matches(
    std::string_view text, EmptyMatches empty = EmptyMatches::LeftOut) const;

private:
  std::string Pattern;
  std::string Source;
  std::shared_ptr<void> Code;
};

/// Translates a pattern to the syntax of PCRE2, as described above. Throws FormatError.
std::string TranslatePattern(std::string_view pattern, const std::string& source);

}
