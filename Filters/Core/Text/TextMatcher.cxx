#include "TextMatcher.h"

#include "Base/Error.h"
#include "Internal/RegularExpression.h"
#include "TokenLabel.h"
#include "UnicodeText.h"

namespace atlas
{
namespace
{

/// The result of a call about an expression, whose errors are those of an option.
template<class Call>
auto AsOption(const Call& call)
{
  try
  {
    return call();
  }
  catch (const FormatError& e)
  {
    throw OptionError(e.what());
  }
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
    const auto letterCase = caseSensitive ? LetterCase::Sensitive : LetterCase::Ignored;
    const auto expression =
      AsOption([&] { return RegularExpression(valid, source, letterCase, Anchors::Perl); });
    this->Test = [expression](const std::string& token)
    { return AsOption([&] { return !expression.Matches(token).empty(); }); };
  }
  else if (match == TextMatch::Contains)
  {
    this->Test = [wanted, prepare](const std::string& token)
    { return prepare(token).find(wanted) != std::string::npos; };
  }
  else
  {
    const bool isTrimmed = Stripped(wanted) == wanted;
    this->Test = [wanted, isTrimmed, prepare](const std::string& token)
    {
      const std::string found = prepare(token);
      return (isTrimmed ? Stripped(found) : found) == wanted;
    };
  }
}

bool TextMatcher::Finds(std::string_view token) const
{
  return this->Test(ReplaceInvalidUtf8(token));
}

}
