#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A part [begin, end) of a text, in bytes.
struct TextSpan
{
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A regular expression as tokenizer files hold it, run by PCRE2 on UTF-8 with Unicode properties.
///
/// Tokenizer files use Oniguruma's syntax, which differs from PCRE2's in what follows, and is
/// translated: \s and \S mean Unicode's White_Space, and a class may hold classes, [ab[cd]], whose
/// members join it. What has no such translation (classes that are excluded from or cut with each
/// other, \h, \H) is refused.
class RegularExpression
{
public:
  /// Throws FormatError if the expression is not understood; the message starts with `source`.
  RegularExpression(const std::string& pattern, const std::string& source);

  /// All matches that are not empty, in order. `text` must be UTF-8. May be called by several
  /// threads at the same time. Throws FormatError if the expression needs too many steps or too
  /// much memory for this text.
  std::vector<TextSpan> Matches(std::string_view text) const;

private:
  std::string Pattern;
  std::string Source;
  std::shared_ptr<void> Code;
};

/// The pattern in PCRE2's syntax, as described above. Throws FormatError.
std::string TranslatePattern(std::string_view pattern, const std::string& source);

}
