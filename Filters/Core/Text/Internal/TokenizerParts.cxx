#include "TokenizerParts.h"

#include "Error.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// Longer words are rare and seldom recur.
constexpr std::size_t LongestCachedWord = 64;
constexpr std::size_t MaximumCachedWords = 100'000;

using Pieces = std::vector<std::string_view>;

std::string Clean(std::string_view text)
{
  constexpr char32_t replacement = 0xFFFD;
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const char32_t c = NextCharacter(text, i);
    const bool isBlank = c == '\t' || c == '\n' || c == '\r';
    if (isBlank || (c != replacement && !IsOther(c)))
    {
      Append(clean, isBlank || IsWhitespace(c) ? U' ' : c);
    }
  }
  return clean;
}

std::string SeparateChinese(std::string_view text)
{
  std::string separated;
  separated.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t begin = i;
    const bool chinese = IsChinese(NextCharacter(text, i));
    separated += chinese ? " " : "";
    separated += text.substr(begin, i - begin);
    separated += chinese ? " " : "";
  }
  return separated;
}

std::string WithoutMarks(std::string_view text)
{
  std::string without;
  without.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t begin = i;
    if (!IsNonspacingMark(NextCharacter(text, i)))
    {
      without += text.substr(begin, i - begin);
    }
  }
  return without;
}

struct Normalizer
{
  std::string_view text;

  std::string operator()(const BertNormalization& bert) const
  {
    std::string result = bert.cleanText ? Clean(this->text) : std::string(this->text);
    if (!IsAscii(result))
    {
      if (bert.separateChinese)
      {
        result = SeparateChinese(result);
      }
      if (bert.stripAccents)
      {
        result = WithoutMarks(Normalize(NormalizationForm::NFD, result));
      }
    }
    return bert.lowerCase ? ToLower(result) : result;
  }
  std::string operator()(const LowerCase&) const { return ToLower(this->text); }
  std::string operator()(const RemoveMarks&) const { return WithoutMarks(this->text); }
  std::string operator()(NormalizationForm form) const { return Normalize(form, this->text); }
};

/// Splits pieces into smaller ones. Text that is not in the input is stored in `Owned`.
struct PreTokenizer
{
  const Pieces& pieces;
  std::deque<std::string>& owned;

  Pieces operator()(const SplitByExpression& split) const
  {
    Pieces result;
    const auto add = [&](std::string_view piece, bool keep)
    {
      if (keep && !piece.empty())
      {
        result.push_back(piece);
      }
    };
    for (const std::string_view piece : this->pieces)
    {
      std::size_t position = 0;
      for (const TextSpan& match : split.expression.Matches(piece))
      {
        add(piece.substr(position, match.begin - position), split.keepGaps);
        add(piece.substr(match.begin, match.end - match.begin), split.keepMatches);
        position = match.end;
      }
      add(piece.substr(position), split.keepGaps);
    }
    return result;
  }

  Pieces operator()(const SplitLikeBert&) const
  {
    Pieces result;
    for (const std::string_view piece : this->pieces)
    {
      std::size_t word = 0; // where the current word begins
      const auto endWord = [&](std::size_t end)
      {
        if (end > word)
        {
          result.push_back(piece.substr(word, end - word));
        }
      };
      for (std::size_t i = 0; i < piece.size();)
      {
        const std::size_t begin = i;
        const char32_t c = NextCharacter(piece, i);
        const bool punctuation = IsPunctuation(c);
        if (punctuation || IsWhitespace(c))
        {
          endWord(begin);
          word = i;
          if (punctuation)
          {
            result.push_back(piece.substr(begin, i - begin));
          }
        }
      }
      endWord(piece.size());
    }
    return result;
  }

  Pieces operator()(const PrefixSpace&) const
  {
    Pieces result = this->pieces;
    for (std::string_view& piece : result)
    {
      if (piece.front() != ' ')
      {
        piece = this->owned.emplace_back(" " + std::string(piece));
      }
    }
    return result;
  }
};

/// The start of the character before `position`.
std::size_t PreviousCharacter(std::string_view text, std::size_t position)
{
  do
  {
    --position;
  } while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xC0U) == 0x80U);
  return position;
}

bool IsWordCharacterAt(std::string_view text, std::size_t position)
{
  return IsWordCharacter(NextCharacter(text, position));
}

}

std::string Apply(const TextNormalization& normalization, std::string_view text)
{
  return std::visit(Normalizer{ text }, normalization);
}

void AddedTokenFinder::Add(const AddedToken& token)
{
  std::vector<AddedToken>& tokens =
    this->ByFirstByte[static_cast<unsigned char>(token.content.front())];
  const auto place = std::find_if(tokens.begin(), tokens.end(),
    [&](const AddedToken& other) { return other.content.size() < token.content.size(); });
  tokens.insert(place, token);
}

const AddedToken* AddedTokenFinder::MatchAt(std::string_view text, std::size_t position) const
{
  for (const AddedToken& token : this->ByFirstByte[static_cast<unsigned char>(text[position])])
  {
    const std::size_t end = position + token.content.size();
    if (text.substr(position, token.content.size()) != token.content)
    {
      continue;
    }
    const bool besideWord =
      (position > 0 && IsWordCharacterAt(text, PreviousCharacter(text, position))) ||
      (end < text.size() && IsWordCharacterAt(text, end));
    if (!token.singleWord || !besideWord)
    {
      return &token;
    }
  }
  return nullptr;
}

std::vector<AddedTokenFinder::Piece> AddedTokenFinder::Split(std::string_view text) const
{
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();)
  {
    const AddedToken* token = this->MatchAt(text, i);
    if (token == nullptr)
    {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (token->stripLeft && end > begin)
    {
      std::size_t previous = PreviousCharacter(text, end);
      const std::size_t start = previous;
      if (!IsWhitespace(NextCharacter(text, previous)))
      {
        break;
      }
      end = start;
    }
    pieces.push_back({ text.substr(begin, end - begin), token->id });
    begin = i + token->content.size();
    while (token->stripRight && begin < text.size())
    {
      std::size_t next = begin;
      if (!IsWhitespace(NextCharacter(text, next)))
      {
        break;
      }
      begin = next;
    }
    i = begin;
  }
  pieces.push_back({ text.substr(begin), std::nullopt });
  return pieces;
}

void TokenizerParts::Add(const AddedToken& token)
{
  const auto fail = [&](const std::string& message)
  {
    throw FormatError(
      this->source + ": added token '" + token.content.substr(0, 80) + "': " + message);
  };
  if (token.content.empty())
  {
    fail("expected a text, found none.");
  }
  if (token.id < 0 || token.id > Vocabulary::MaximumId)
  {
    fail("expected an id from 0 to " + std::to_string(Vocabulary::MaximumId) + ", found " +
         std::to_string(token.id) + ".");
  }
  const std::optional<std::int64_t> known = this->IdOf(token.content);
  if (known && *known != token.id)
  {
    fail("expected one id, found " + std::to_string(*known) + " and " + std::to_string(token.id) +
         ".");
  }
  const std::string* other = this->TokenOf(token.id);
  if (other != nullptr && *other != token.content)
  {
    fail("the id " + std::to_string(token.id) + " belongs to token '" + other->substr(0, 80) +
         "' already.");
  }
  this->addedTexts.emplace(token.id, token.content);
  this->addedIds.emplace(token.content, token.id);
  this->AddedEnd = std::max(this->AddedEnd, token.id + 1);
  if (!token.normalized)
  {
    this->givenTokens.Add(token);
    return;
  }
  AddedToken normalized = token;
  normalized.content = this->Normalize(token.content);
  if (!normalized.content.empty())
  {
    this->normalizedTokens.Add(normalized);
  }
}

const std::string* TokenizerParts::TokenOf(std::int64_t id) const
{
  const auto added = this->addedTexts.find(id);
  return added != this->addedTexts.end() ? &added->second
                                         : this->model->GetVocabulary().TokenOf(id);
}

std::optional<std::int64_t> TokenizerParts::IdOf(std::string_view token) const
{
  const auto added = this->addedIds.find(std::string(token));
  return added != this->addedIds.end() ? std::optional(added->second)
                                       : this->model->GetVocabulary().IdOf(token);
}

std::int64_t TokenizerParts::Size() const
{
  return std::max(this->AddedEnd, this->model->GetVocabulary().Size());
}

std::string TokenizerParts::Normalize(std::string_view text) const
{
  std::string normalized(text);
  for (const TextNormalization& normalization : this->normalizations)
  {
    normalized = Apply(normalization, normalized);
  }
  return normalized;
}

void TokenizerParts::Encode(std::string_view text, std::vector<std::int64_t>& ids) const
{
  // A second thread that runs at the same time uses its own cache and gets the same result.
  std::unordered_map<std::string, std::vector<std::int64_t>> own;
  const std::unique_lock<std::mutex> lock(this->cache.mutex, std::try_to_lock);
  auto& words = lock.owns_lock() ? this->cache.words : own;
  const auto add = [&ids](const std::optional<std::int64_t>& token)
  {
    if (token)
    {
      ids.push_back(*token);
    }
  };
  for (const AddedTokenFinder::Piece& given : this->givenTokens.Split(text))
  {
    const std::string normalized = this->Normalize(given.text);
    for (const AddedTokenFinder::Piece& piece : this->normalizedTokens.Split(normalized))
    {
      this->EncodeNormalized(piece.text, ids, words);
      add(piece.token);
    }
    add(given.token);
  }
}

void TokenizerParts::EncodeNormalized(std::string_view text, std::vector<std::int64_t>& ids,
  std::unordered_map<std::string, std::vector<std::int64_t>>& words) const
{
  if (text.empty())
  {
    return;
  }
  std::deque<std::string> owned;
  Pieces pieces = { text };
  for (const PreTokenization& preTokenization : this->preTokenizations)
  {
    pieces = std::visit(PreTokenizer{ pieces, owned }, preTokenization);
  }
  for (const std::string_view piece : pieces)
  {
    if (piece.size() > LongestCachedWord)
    {
      this->model->Encode(piece, ids);
      continue;
    }
    std::string word(piece);
    const auto found = words.find(word);
    if (found != words.end())
    {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      continue;
    }
    const std::size_t before = ids.size();
    this->model->Encode(piece, ids);
    if (words.size() < MaximumCachedWords)
    {
      words.emplace(std::move(word),
        std::vector<std::int64_t>(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
    }
  }
}

}
