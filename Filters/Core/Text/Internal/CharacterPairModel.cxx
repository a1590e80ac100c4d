#include "CharacterPairModel.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "PieceText.h"
#include "Text/UnicodeText.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace atlas
{
namespace
{

/// The character, if the text is one.
std::optional<char32_t> OnlyCharacter(std::string_view text)
{
  if (text.empty() || text.size() > 4)
  {
    return std::nullopt;
  }
  std::size_t next = 0;
  const char32_t c = NextCharacter(text, next);
  return next == text.size() ? std::optional(c) : std::nullopt;
}

/// True if the token is of one word, as NextWord separates them.
bool IsOfOneWord(std::string_view token)
{
  return token.empty() || NextWord(token, 0) == token.size();
}

PieceTrie WholePieces(const std::vector<CharacterPairModel::Piece>& pieces)
{
  std::vector<std::pair<std::string_view, std::int32_t>> wholes;
  for (const CharacterPairModel::Piece& piece : pieces)
  {
    if (piece.whole)
    {
      wholes.emplace_back(piece.text, piece.id);
    }
  }
  return PieceTrie(std::move(wholes));
}

/// The rank of each score: the highest is 0, and equal scores have one rank.
std::vector<float> FallingScores(const std::vector<CharacterPairModel::Piece>& pieces)
{
  std::vector<float> scores;
  scores.reserve(pieces.size());
  for (const CharacterPairModel::Piece& piece : pieces)
  {
    scores.push_back(piece.score);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  return scores;
}

}

CharacterPairModel::CharacterPairModel(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Merge>& merges, const Options& options, const std::string& source)
  : WordModel(std::move(vocabulary))
  , Settings(options)
  , Unknown(this->GetVocabulary(), options.byteFallback, options.unknown, source)
  , Wholes({})
{
  const Vocabulary& tokens = this->GetVocabulary();
  tokens.ForEach(
    [this](std::string_view token, std::int64_t id)
    {
      if (const std::optional<char32_t> character = OnlyCharacter(token))
      {
        this->Characters.emplace(*character, static_cast<std::int32_t>(id));
      }
    });
  this->Separate = !options.wholeWordsFirst && options.continuation.empty() &&
                   options.wordEnd.empty() && tokens.IdOf(SpaceMark).has_value();
  this->Rules.Reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank)
  {
    AddMerge(this->Rules, tokens, merges, rank, source, options.continuation.size());
    this->Separate = this->Separate && IsOfOneWord(merges[rank].first + merges[rank].second);
  }
}

CharacterPairModel::CharacterPairModel(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Piece>& pieces, const Options& options, const std::string& source)
  : WordModel(std::move(vocabulary))
  , Settings(options)
  , Unknown(this->GetVocabulary(), options.byteFallback, options.unknown, source)
  , Wholes(WholePieces(pieces))
{
  std::unordered_map<std::string_view, std::int32_t> symbols;
  symbols.reserve(pieces.size());
  for (const Piece& piece : pieces)
  {
    symbols.emplace(piece.text, piece.id);
    if (const std::optional<char32_t> character = OnlyCharacter(piece.text))
    {
      this->Characters.emplace(*character, piece.id);
    }
  }
  this->Separate =
    symbols.count(SpaceMark) > 0 && std::all_of(pieces.begin(), pieces.end(),
                                      [](const Piece& piece) { return IsOfOneWord(piece.text); });
  // The symbol of a part, which is a piece or else a character.
  const auto symbolOf = [&](std::string_view part) -> std::optional<std::int32_t>
  {
    const auto found = symbols.find(part);
    if (found != symbols.end())
    {
      return found->second;
    }
    const std::optional<char32_t> character = OnlyCharacter(part);
    if (!character)
    {
      return std::nullopt;
    }
    const std::int64_t symbol =
      this->GetVocabulary().Size() + static_cast<std::int64_t>(this->Extras.size());
    ThrowIf<FormatError>(symbol >= std::numeric_limits<std::int32_t>::max(), source,
      ": expected fewer tokens and characters, found 2^31.");
    this->Extras.emplace_back(part);
    this->Characters.emplace(*character, static_cast<std::int32_t>(symbol));
    symbols.emplace(part, static_cast<std::int32_t>(symbol));
    return static_cast<std::int32_t>(symbol);
  };
  const std::vector<float> scores = FallingScores(pieces);
  for (const Piece& piece : pieces)
  {
    const auto rank =
      std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) -
      scores.begin();
    std::size_t middle = 0;
    NextCharacter(piece.text, middle);
    while (middle < piece.text.size())
    {
      const std::optional<std::int32_t> left = symbolOf(piece.text.substr(0, middle));
      const std::optional<std::int32_t> right = symbolOf(piece.text.substr(middle));
      if (left && right)
      {
        this->Rules.Add(*left, *right, static_cast<std::uint32_t>(rank), piece.id);
      }
      NextCharacter(piece.text, middle);
    }
  }
}

std::optional<std::int32_t> CharacterPairModel::SymbolOf(
  std::string_view character, bool beginsWord, bool endsWord) const
{
  const std::string_view before = beginsWord ? std::string_view() : this->Settings.continuation;
  const std::string_view behind = endsWord ? this->Settings.wordEnd : std::string_view();
  if (before.empty() && behind.empty())
  {
    std::size_t next = 0;
    const auto found = this->Characters.find(NextCharacter(character, next));
    return found == this->Characters.end() ? std::nullopt : std::optional(found->second);
  }
  const std::optional<std::int64_t> id =
    this->GetVocabulary().IdOf(std::string(before) + std::string(character) + std::string(behind));
  return id ? std::optional(static_cast<std::int32_t>(*id)) : std::nullopt;
}

void CharacterPairModel::AddSymbols(std::string_view word, std::vector<std::int32_t>& symbols) const
{
  std::vector<std::int64_t> unknown;
  for (std::size_t i = 0; i < word.size();)
  {
    const PieceTrie::Match whole = this->Wholes.Longest(word.substr(i));
    if (whole.length > 0)
    {
      symbols.push_back(FrozenSymbol(whole.number));
      i += whole.length;
      continue;
    }
    const std::size_t begin = i;
    NextCharacter(word, i);
    const std::string_view character = word.substr(begin, i - begin);
    if (const auto symbol = this->SymbolOf(character, begin == 0, i == word.size()))
    {
      symbols.push_back(*symbol);
      continue;
    }
    unknown.clear();
    this->Unknown.Add(character, unknown);
    std::transform(unknown.begin(), unknown.end(), std::back_inserter(symbols), FrozenSymbol);
  }
}

void CharacterPairModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  const Vocabulary& tokens = this->GetVocabulary();
  if (this->Settings.wholeWordsFirst)
  {
    if (const std::optional<std::int64_t> id = tokens.IdOf(word))
    {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  this->AddSymbols(word, symbols);
  this->Rules.Apply(symbols);
  const std::int64_t before = ids.size();
  for (const std::int32_t symbol : symbols)
  {
    const std::int64_t id = IdOfSymbol(symbol);
    if (id < tokens.Size())
    {
      ids.push_back(id);
    }
    else
    {
      this->Unknown.Add(this->Extras[id - tokens.Size()], ids);
    }
  }
  if (this->Settings.fuseUnknown && this->Settings.unknown)
  {
    const auto same = [this](std::int64_t a, std::int64_t b)
    { return a == b && a == *this->Settings.unknown; };
    ids.erase(std::unique(ids.begin() + before, ids.end(), same), ids.end());
  }
}

std::string CharacterPairModel::BytesOf(std::string_view token) const
{
  const std::string_view before = this->Settings.continuation;
  const std::string_view behind = this->Settings.wordEnd;
  if (!before.empty() && BeginsWith(token, before))
  {
    token.remove_prefix(before.size());
  }
  const bool endsWord = !behind.empty() && EndsWith(token, behind);
  token.remove_suffix(endsWord ? behind.size() : 0);
  return PieceText(token) + (endsWord ? " " : "");
}

}
