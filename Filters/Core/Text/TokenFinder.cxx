#include "TokenFinder.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/NumberText.h"
#include "Prompts.h"
#include "ScreenText.h"
#include "TokenLabel.h"
#include "UnicodeText.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

/// Longer entries are cut in messages and in the search for near ones.
constexpr std::size_t LongestShown = 80;
/// How many near tokens a message names.
constexpr std::size_t NearCount = 4;

std::u32string CharactersOf(std::string_view text)
{
  std::u32string characters;
  for (std::size_t position = 0; position < text.size();)
  {
    characters += NextCharacter(text, position);
  }
  return characters;
}

/// What is compared first: without leading spaces and case.
std::u32string Folded(const std::string& text)
{
  return CharactersOf(FoldCase(text.substr(std::min(text.find_first_not_of(' '), text.size()))));
}

}

TokenFinder::TokenFinder(const atlas::Tokenizer* tokenizer, std::int64_t vocabulary)
  : Tokenizer(tokenizer)
  , Vocabulary(vocabulary)
{
  const std::int64_t count =
    tokenizer == nullptr ? 0 : std::min(vocabulary, tokenizer->VocabularySize());
  for (std::int64_t id = 0; id < count; ++id)
  {
    try
    {
      this->Ids.emplace(tokenizer->Label(id), static_cast<std::int32_t>(id));
    }
    catch (const OptionError&)
    {
      continue; // a gap in the vocabulary
    }
  }
}

std::string TokenFinder::Described(std::int32_t id) const
{
  return "'" + TokenLabel(this->Tokenizer->Label(id)) + "' (#" + std::to_string(id) + ")";
}

std::optional<std::int32_t> TokenFinder::FindId(
  std::string_view digits, const std::string& source) const
{
  const std::optional<std::int64_t> id = ToNumber<std::int64_t>(digits);
  if (id && (*id < 0 || *id >= this->Vocabulary))
  {
    throw OptionError(
      source, ": expected an id from 0 to ", this->Vocabulary - 1, ", found ", *id, ".");
  }
  return id ? std::optional(static_cast<std::int32_t>(*id)) : std::nullopt;
}

/// The token with exactly this text.
std::optional<std::int32_t> TokenFinder::FindText(
  const std::string& text, const std::string& source) const
{
  const auto [begin, end] = this->Ids.equal_range(text);
  if (begin == end)
  {
    return std::nullopt;
  }
  if (std::next(begin) != end)
  {
    throw OptionError(source, ": expected a text of one token, found '", TokenLabel(text),
      "', which is that of #", begin->second, ", #", std::next(begin)->second,
      std::next(begin, 2) == end ? "" : " and others", "; give the id.");
  }
  return begin->second;
}

std::optional<std::int32_t> TokenFinder::FindExactly(const std::string& text) const
{
  return this->Ids.count(text) == 1 ? std::optional(this->Ids.find(text)->second) : std::nullopt;
}

/// The token that is displayed or spelled like this.
std::optional<std::int32_t> TokenFinder::FindDisplayed(std::string_view text) const
{
  const std::optional<std::int64_t> spelled = this->Tokenizer->IdOf(text);
  if (spelled && *spelled < this->Vocabulary)
  {
    return static_cast<std::int32_t>(*spelled);
  }
  const auto found = std::find_if(this->Ids.begin(), this->Ids.end(),
    [&](const auto& token) { return ScreenLabel(token.first) == text; });
  return found == this->Ids.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int32_t> TokenFinder::TryFind(
  std::string_view entry, const std::string& source) const
{
  if (entry.size() > 1 && entry[0] == '#')
  {
    if (const auto id = this->FindId(entry.substr(1), source))
    {
      return id;
    }
  }
  if (this->Tokenizer == nullptr)
  {
    return this->FindId(entry, source);
  }
  const std::string text = WithLeadingSpaces(entry);
  for (const std::string& form : { text, std::string(entry), " " + text })
  {
    if (const auto id = this->FindText(form, source))
    {
      return id;
    }
  }
  const auto displayed = this->FindDisplayed(entry);
  return displayed ? displayed : this->FindId(entry, source);
}

std::int32_t TokenFinder::Find(std::string_view entry, const std::string& source) const
{
  const std::optional<std::int32_t> id = this->TryFind(entry, source);
  if (!id)
  {
    this->FailUnknown(entry, source);
  }
  return *id;
}

std::vector<std::int32_t> TokenFinder::FindAll(
  const std::vector<std::string>& entries, const std::string& source) const
{
  std::vector<std::int32_t> ids;
  for (const std::string& entry : entries)
  {
    const std::vector<std::string> lines = SplitLines(entry);
    const bool hasLines = entry.find('\n') != std::string::npos;
    const bool isToken = hasLines && this->TryFind(entry, source);
    for (const std::string& line : isToken ? std::vector{ entry } : lines)
    {
      if (line.empty())
      {
        continue;
      }
      const std::vector<std::string_view> words = WordsOf(line);
      const bool areIds =
        words.size() > 1 &&
        std::all_of(words.begin(), words.end(), [](std::string_view word)
          { return ToNumber<std::int64_t>(word.substr(word[0] == '#' ? 1 : 0)).has_value(); });
      if (!areIds)
      {
        ids.push_back(this->Find(line, source));
        continue;
      }
      for (const std::string_view word : words)
      {
        ids.push_back(*this->FindId(word.substr(word[0] == '#' ? 1 : 0), source));
      }
    }
  }
  return ids;
}

std::vector<std::int32_t> TokenFinder::Nearest(std::string_view text, std::size_t count) const
{
  const std::string wanted = WithLeadingSpaces(ReplaceInvalidUtf8(text.substr(0, LongestShown)));
  const std::u32string folded = Folded(wanted);
  const std::u32string exact = CharactersOf(wanted);
  std::vector<std::tuple<std::size_t, std::size_t, std::int32_t>> near;
  for (const auto& [label, id] : this->Ids)
  {
    if (label.size() <= 2 * LongestShown)
    {
      near.emplace_back(
        EditDistance(folded, Folded(label)), EditDistance(exact, CharactersOf(label)), id);
    }
  }
  count = std::min(count, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  std::vector<std::int32_t> ids(count);
  std::transform(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), ids.begin(),
    [](const auto& token) { return std::get<2>(token); });
  return ids;
}

void TokenFinder::FailUnknown(std::string_view entry, const std::string& source) const
{
  const std::string found =
    TokenLabel(ReplaceInvalidUtf8(std::string(entry.substr(0, LongestShown))));
  ThrowIf<OptionError>(this->Tokenizer == nullptr, source, ": expected an id from 0 to ",
    this->Vocabulary - 1, ", as the model has no tokenizer, found '", found, "'.");
  const std::string near = Joined(
    this->Nearest(entry, NearCount), [this](std::int32_t id) { return this->Described(id); });
  throw OptionError(source, ": expected a token of the vocabulary or #id, found '", found,
    "'; the nearest tokens are ", near, ".");
}

}
