#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace atlas
{

/// How the tokens of a search are found.
enum class TextMatch
{
  Contains,         ///< the text is a part of the token
  Whole,            ///< the text is the token
  RegularExpression ///< the expression matches a part of the token, which is not empty
};

/// Searches tokens for a text. Without case, texts are compared after FoldCase. A middle dot
/// (U+00B7) at the beginning of a text or token is the space that views show as such. Whole ignores
/// white space at the ends of a token, unless the text has white space at its ends: "the" finds
/// "the" and " the", but " the" only the latter. Expressions have the syntax of PCRE2 and see a
/// token as it is.
class TextMatcher
{
public:
  /// `source` names the text in messages. Invalid UTF-8 is replaced. Throws OptionError if the text
  /// is no valid expression.
  TextMatcher(
    const std::string& text, TextMatch match, bool caseSensitive, const std::string& source);

  /// Whether a token is found; an empty text finds none. Thread-safe. Throws OptionError if an
  /// expression takes too many steps.
  bool Finds(std::string_view token) const;

private:
  std::function<bool(const std::string&)> Test;
};

}
