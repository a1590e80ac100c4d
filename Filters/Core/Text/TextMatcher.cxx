#include "TextMatcher.h"

#include "Error.h"
#include "RegularExpression.h"
#include "TokenLabel.h"
#include "UnicodeText.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The text without white space at its ends.
std::string Trimmed(const std::string& text)
{
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t position = 0; position < text.size();)
  {
    const std::size_t first = position;
    if (!IsWhitespace(NextCharacter(text, position)))
    {
      begin = std::min(begin, first);
      end = position;
    }
  }
  return begin < end ? text.substr(begin, end - begin) : std::string();
}

std::function<bool(const std::string&)> ExpressionTest(
  const std::string& text, bool caseSensitive, const std::string& source)
{
  const auto rethrow = [](const FormatError& e) { throw OptionError(e.what()); };
  try
  {
    const RegularExpression expression(
      text, source, caseSensitive ? LetterCase::Sensitive : LetterCase::Ignored, Anchors::Perl);
    return [expression, rethrow](const std::string& token)
    {
      try
      {
        return !expression.Matches(token).empty();
      }
      catch (const FormatError& e)
      {
        rethrow(e);
      }
      return false;
    };
  }
  catch (const FormatError& e)
  {
    rethrow(e);
  }
  return {};
}

}

TextMatcher::TextMatcher(
  const std::string& text, TextMatch match, bool caseSensitive, const std::string& source)
{
  const auto prepare = [caseSensitive](const std::string& given)
  { return caseSensitive ? WithLeadingSpaces(given) : FoldCase(WithLeadingSpaces(given)); };
  const std::string valid = ReplaceInvalidUtf8(text);
  const std::string wanted = prepare(valid);
  if (text.empty())
  {
    this->Test = [](const std::string&) { return false; };
  }
  else if (match == TextMatch::RegularExpression)
  {
    this->Test = ExpressionTest(valid, caseSensitive, source);
  }
  else if (match == TextMatch::Contains)
  {
    this->Test = [wanted, prepare](const std::string& token)
    { return prepare(token).find(wanted) != std::string::npos; };
  }
  else
  {
    const bool isTrimmed = Trimmed(wanted) == wanted;
    this->Test = [wanted, isTrimmed, prepare](const std::string& token)
    {
      const std::string found = prepare(token);
      return (isTrimmed ? Trimmed(found) : found) == wanted;
    };
  }
}

bool TextMatcher::Finds(std::string_view token) const
{
  return this->Test(ReplaceInvalidUtf8(token));
}

}
