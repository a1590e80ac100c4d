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

/// A regular expression, from a tokenizer file for example, run by PCRE2 on UTF-8 with Unicode
/// properties.
///
/// Tokenizer files use the syntax of Oniguruma, which is translated to that of PCRE2: \s and \S
/// mean Unicode's White_Space, and a class may contain classes, [ab[cd]], whose members join it.
/// Syntax that cannot be translated (negated classes within a class, intersections of classes, \h,
/// \H) is rejected.
class RegularExpression
{
public:
  /// Throws FormatError if the expression is invalid or not supported; the message starts with
  /// `source`.
  RegularExpression(const std::string& pattern, const std::string& source,
    LetterCase letterCase = LetterCase::Sensitive);

  /// Returns all non-empty matches in order. `text` must be UTF-8. Thread-safe. Throws FormatError
  /// if matching needs too many steps or too much memory.
  std::vector<TextSpan> Matches(std::string_view text) const;

private:
  std::string Pattern;
  std::string Source;
  std::shared_ptr<void> Code;
};

/// Translates a pattern to the syntax of PCRE2, as described above. Throws FormatError.
std::string TranslatePattern(std::string_view pattern, const std::string& source);

}
