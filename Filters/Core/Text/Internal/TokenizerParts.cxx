#include "TokenizerParts.h"

#include "Error.h"
#include "PieceText.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// Longer words are rare and seldom recur.
constexpr std::size_t LongestCachedWord = 64;
constexpr std::size_t MaximumCachedWords = 100'000;

/// A normalized text, in bytes.
constexpr std::size_t LongestText = std::size_t{ 1 } << 30U;

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

/// The list of characters is that of the original.
std::string WithoutControls(std::string_view text)
{
  constexpr std::u32string_view spaces =
    U"\t\n\f\r\u1680\u200B\u200C\u200D\u200E\u200F\u2028\u2029\u2581\uFEFF\uFFFD";
  std::string without;
  without.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const char32_t c = NextCharacter(text, i);
    const bool isSpace = spaces.find(c) != std::u32string_view::npos;
    const bool isControl = (c > 0 && c < U' ') || c == 0x7F || c == 0x8F || c == 0x9F;
    if (isSpace || !isControl)
    {
      Append(without, isSpace ? U' ' : c);
    }
  }
  return without;
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

/// The text without the characters of a class.
std::string Without(bool (*isOfClass)(char32_t), std::string_view text)
{
  std::string without;
  without.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t begin = i;
    if (!isOfClass(NextCharacter(text, i)))
    {
      without += text.substr(begin, i - begin);
    }
  }
  return without;
}

/// A text that grows from another one, within limits: a hostile file may ask for texts without end.
class GrowingText
{
public:
  GrowingText(std::string_view from, const TextLimit& limit)
    : Limit(limit)
  {
    this->Text.reserve(from.size() + from.size() / 4);
  }

  GrowingText& operator+=(std::string_view more)
  {
    if (more.size() > this->Limit.bytes - std::min(this->Limit.bytes, this->Text.size()))
    {
      throw FormatError(this->Limit.source + ": expected a normalized text of at most " +
                        std::to_string(this->Limit.bytes) + " bytes, found more.");
    }
    this->Text += more;
    return *this;
  }

  std::string Text;

private:
  TextLimit Limit;
};

std::string Replace(const ReplaceText& replace, std::string_view text, const TextLimit& limit)
{
  GrowingText result(text, limit);
  std::size_t position = 0;
  const auto add = [&](std::size_t begin, std::size_t end)
  {
    result += text.substr(position, begin - position);
    result += replace.replacement;
    position = end;
  };
  if (replace.expression)
  {
    for (const TextSpan& match : replace.expression->Matches(text))
    {
      add(match.begin, match.end);
    }
  }
  else
  {
    for (std::size_t begin = text.find(replace.text); begin != std::string_view::npos;
      begin = text.find(replace.text, position))
    {
      add(begin, begin + replace.text.size());
    }
  }
  result += text.substr(position);
  return std::move(result.Text);
}

std::string Strip(const StripSpaces& strip, std::string_view text)
{
  std::size_t begin = text.size();
  std::size_t end = 0;
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t here = i;
    if (!IsWhitespace(NextCharacter(text, i)))
    {
      begin = std::min(begin, here);
      end = i;
    }
  }
  begin = strip.left ? begin : 0;
  end = strip.right ? end : text.size();
  return std::string(text.substr(begin, end - std::min(begin, end)));
}

/// SentencePiece's normalization of one text.
class SentencePieceNormalizer
{
public:
  SentencePieceNormalizer(
    const SentencePieceNormalization& settings, std::string_view text, const TextLimit& limit)
    : Settings(settings)
    , Text(text)
    , Result(text, limit)
  {
  }

  std::string Normalize()
  {
    bool dropSpaces = this->Settings.removeExtraSpaces;
    bool hasText = !dropSpaces && !this->Text.empty();
    if (hasText)
    {
      this->AddPrefix();
    }
    for (std::size_t i = 0; i < this->Text.size();)
    {
      std::string_view part = this->Next(i);
      while (dropSpaces && !part.empty() && part.front() == ' ')
      {
        part.remove_prefix(1);
      }
      if (part.empty())
      {
        continue;
      }
      if (!hasText)
      {
        hasText = true;
        this->AddPrefix();
      }
      this->Add(part);
      dropSpaces = this->Settings.removeExtraSpaces && part.back() == ' ';
    }
    this->StripEnd();
    return std::move(this->Result.Text);
  }

private:
  const SentencePieceNormalization& Settings;
  std::string_view Text;
  GrowingText Result;

  std::string_view Space() const { return this->Settings.escapeSpaces ? SpaceMark : " "; }

  /// What the text at `position` becomes; advances `position` past it.
  std::string_view Next(std::size_t& position) const
  {
    const std::string_view rest = this->Text.substr(position);
    const std::size_t whole =
      this->Settings.wholes == nullptr ? 0 : this->Settings.wholes->Longest(rest).length;
    if (whole > 0)
    {
      position += whole;
      return rest.substr(0, whole);
    }
    if (this->Settings.characters != nullptr)
    {
      const CharacterMap::Match match = this->Settings.characters->Longest(rest);
      if (match.length > 0)
      {
        position += match.length;
        return match.replacement;
      }
    }
    const std::size_t begin = position;
    NextCharacter(this->Text, position);
    return this->Text.substr(begin, position - begin);
  }

  void AddPrefix()
  {
    if (this->Settings.addPrefixSpace)
    {
      this->Result += this->Space();
    }
  }

  void Add(std::string_view part)
  {
    for (std::size_t space = part.find(' '); space != std::string_view::npos;
      space = part.find(' '))
    {
      this->Result += part.substr(0, space);
      this->Result += this->Space();
      part.remove_prefix(space + 1);
    }
    this->Result += part;
  }

  void StripEnd()
  {
    std::string& text = this->Result.Text;
    const std::string_view space = this->Space();
    while (this->Settings.removeExtraSpaces && text.size() >= space.size() &&
           std::string_view(text).substr(text.size() - space.size()) == space)
    {
      text.resize(text.size() - space.size());
    }
  }
};

struct Normalizer
{
  std::string_view text;
  const TextLimit& limit;

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
        result = Without(IsNonspacingMark, Normalize(NormalizationForm::NFD, result));
      }
    }
    return bert.lowerCase ? ToLower(result) : result;
  }
  std::string operator()(const LowerCase&) const { return ToLower(this->text); }
  std::string operator()(const RemoveMarks&) const { return Without(IsMark, this->text); }
  std::string operator()(NormalizationForm form) const { return Normalize(form, this->text); }
  std::string operator()(const ByteLevelText&) const { return ByteLevelToken(this->text); }
  std::string operator()(const CleanControls&) const { return WithoutControls(this->text); }
  std::string operator()(const PrependText& prepend) const
  {
    GrowingText result(this->text, this->limit);
    result += this->text.empty() ? std::string_view() : prepend.text;
    result += this->text;
    return std::move(result.Text);
  }
  std::string operator()(const ReplaceText& replace) const
  {
    return Replace(replace, this->text, this->limit);
  }
  std::string operator()(const StripSpaces& strip) const { return Strip(strip, this->text); }
  std::string operator()(const SentencePieceNormalization& settings) const
  {
    return SentencePieceNormalizer(settings, this->text, this->limit).Normalize();
  }
};

/// A part of a piece, which an expression matches or not.
struct SplitPart
{
  TextSpan span;
  bool isMatch;
};

std::vector<SplitPart> PartsOf(const SplitByExpression& split, std::string_view piece)
{
  std::vector<SplitPart> parts;
  std::size_t position = 0;
  const auto add = [&](std::size_t end, bool isMatch)
  {
    parts.push_back({ { position, end }, isMatch != split.invert });
    position = end;
  };
  const auto addOthers = [&](std::size_t end)
  {
    if (end > position)
    {
      add(end, false);
    }
  };
  for (const TextSpan& match : split.expression.Matches(piece, EmptyMatches::Kept))
  {
    addOthers(match.begin);
    add(match.end, true);
  }
  addOthers(piece.size());
  return parts;
}

/// True if the part belongs to the same word as the one before it.
bool JoinsPrevious(SplitBehavior behavior, const SplitPart& previous, const SplitPart& part)
{
  switch (behavior)
  {
    case SplitBehavior::MergedWithPrevious:
      return part.isMatch && !previous.isMatch;
    case SplitBehavior::MergedWithNext:
      return previous.isMatch && !part.isMatch;
    case SplitBehavior::Contiguous:
      return part.isMatch == previous.isMatch;
    default:
      return false;
  }
}

/// Splits pieces into smaller ones. Text that is not in the input is stored in `Owned`.
struct PreTokenizer
{
  const Pieces& pieces;
  std::deque<std::string>& owned;
  const char* textBegin; ///< where the user's text begins, or null if it began before
  const TextLimit& limit;

  Pieces operator()(const SplitByExpression& split) const
  {
    Pieces result;
    for (const std::string_view piece : this->pieces)
    {
      const std::vector<SplitPart> parts = PartsOf(split, piece);
      for (std::size_t i = 0; i < parts.size(); ++i)
      {
        const auto [begin, end] = parts[i].span;
        if (split.behavior == SplitBehavior::Removed && parts[i].isMatch)
        {
          continue;
        }
        if (i > 0 && JoinsPrevious(split.behavior, parts[i - 1], parts[i]))
        {
          const std::size_t before = result.back().size();
          result.back() = piece.substr(begin - before, before + end - begin);
          continue;
        }
        result.push_back(piece.substr(begin, end - begin));
      }
    }
    result.erase(std::remove_if(result.begin(), result.end(),
                   [](std::string_view piece) { return piece.empty(); }),
      result.end());
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

  Pieces operator()(const ByteLevelText& bytes) const
  {
    Pieces result = this->pieces;
    for (std::string_view& piece : result)
    {
      piece =
        this->owned.emplace_back(bytes.inverse ? ByteLevelBytes(piece) : ByteLevelToken(piece));
    }
    return result;
  }

  Pieces operator()(const Metaspace& metaspace) const
  {
    Pieces result;
    for (const std::string_view piece : this->pieces)
    {
      const bool isFirst = this->textBegin == piece.data();
      std::string& text = this->owned.emplace_back(
        Replace({ std::nullopt, " ", std::string(SpaceMark) }, piece, this->limit));
      const bool hasMark = std::string_view(text).substr(0, SpaceMark.size()) == SpaceMark;
      if (!hasMark && (metaspace.prefix == PrefixMark::Always ||
                        (metaspace.prefix == PrefixMark::First && isFirst)))
      {
        text.insert(0, SpaceMark);
      }
      const std::string_view whole = text;
      std::size_t begin = 0;
      while (begin < whole.size())
      {
        const std::size_t mark =
          metaspace.split ? whole.find(SpaceMark, begin + 1) : std::string_view::npos;
        const std::size_t end = std::min(mark, whole.size());
        result.push_back(whole.substr(begin, end - begin));
        begin = end;
      }
    }
    return result;
  }

  Pieces operator()(const SplitWords&) const
  {
    Pieces result;
    for (const std::string_view piece : this->pieces)
    {
      for (std::size_t begin = 0; begin < piece.size();)
      {
        const std::size_t end = NextWord(piece, begin);
        result.push_back(piece.substr(begin, end - begin));
        begin = end;
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

/// True if a word character is next to a part of a text.
bool IsBesideWord(std::string_view text, const TextSpan& part)
{
  return (part.begin > 0 && IsWordCharacterAt(text, PreviousCharacter(text, part.begin))) ||
         (part.end < text.size() && IsWordCharacterAt(text, part.end));
}

/// Where the white space before a position begins, but not before `first`.
std::size_t SpacesBefore(std::string_view text, std::size_t position, std::size_t first)
{
  while (position > first)
  {
    const std::size_t begin = PreviousCharacter(text, position);
    std::size_t next = begin;
    if (!IsWhitespace(NextCharacter(text, next)))
    {
      break;
    }
    position = begin;
  }
  return position;
}

/// Where the white space from a position on ends.
std::size_t SpacesAfter(std::string_view text, std::size_t position)
{
  for (std::size_t next = position; next < text.size(); position = next)
  {
    if (!IsWhitespace(NextCharacter(text, next)))
    {
      break;
    }
  }
  return position;
}

}

std::string Apply(
  const TextNormalization& normalization, std::string_view text, const TextLimit& limit)
{
  return std::visit(Normalizer{ text, limit }, normalization);
}

void AddedTokenFinder::Add(const AddedToken& token)
{
  this->Tokens.insert_or_assign(token.content, token);
  std::vector<std::size_t>& lengths =
    this->LengthsByFirst[static_cast<unsigned char>(token.content.front())];
  const auto place =
    std::lower_bound(lengths.begin(), lengths.end(), token.content.size(), std::greater<>());
  if (place == lengths.end() || *place != token.content.size())
  {
    lengths.insert(place, token.content.size());
  }
}

const AddedToken* AddedTokenFinder::LongestAt(std::string_view text, std::size_t position) const
{
  for (const std::size_t length : this->LengthsByFirst[static_cast<unsigned char>(text[position])])
  {
    const auto found = this->Tokens.find(text.substr(position, length));
    if (found != this->Tokens.end())
    {
      return &found->second;
    }
  }
  return nullptr;
}

std::vector<AddedTokenFinder::Piece> AddedTokenFinder::Split(std::string_view text) const
{
  std::vector<Piece> pieces;
  std::size_t done = 0; // the end of the last token and of the white space that belongs to it
  for (std::size_t i = 0; i < text.size();)
  {
    const AddedToken* token = this->LongestAt(text, i);
    if (token == nullptr)
    {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    i += token->content.size();
    if (token->singleWord && IsBesideWord(text, { begin, i }))
    {
      continue;
    }
    const std::size_t left = token->stripLeft ? SpacesBefore(text, begin, done) : begin;
    // White space that the token before took may hold this one all the same.
    pieces.push_back({ text.substr(done, std::max(left, done) - done), token->id });
    done = token->stripRight ? SpacesAfter(text, i) : i;
  }
  pieces.push_back({ text.substr(done), std::nullopt });
  return pieces;
}

void TokenizerParts::Frame(std::int64_t begin, std::int64_t end, bool hasTypes)
{
  this->single = { { -1, { begin }, 0 }, { 0, {}, 0 }, { -1, { end }, 0 } };
  this->pair = this->single;
  if (hasTypes)
  {
    this->pair.insert(this->pair.end(), { { 1, {}, 1 }, { -1, { end }, 1 } });
  }
  else
  {
    this->pair.insert(this->pair.end(), { { -1, { end }, 0 }, { 1, {}, 0 }, { -1, { end }, 0 } });
  }
}

void TokenizerParts::Enclose(
  const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end)
{
  const auto enclosed = [&](int sequence) -> Template
  { return { { -1, begin, sequence }, { sequence, {}, sequence }, { -1, end, sequence } }; };
  this->single = enclosed(0);
  this->pair = this->single;
  const Template second = enclosed(1);
  this->pair.insert(this->pair.end(), second.begin(), second.end());
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
  // No language's text becomes 64 times as long.
  const TextLimit limit = { std::min(64 * text.size() + 4096, LongestText), this->source };
  std::string normalized(text);
  for (const TextNormalization& normalization : this->normalizations)
  {
    normalized = Apply(normalization, normalized, limit);
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
      const bool isFirst =
        given.text.data() == text.data() && piece.text.data() == normalized.data();
      this->EncodeNormalized(piece.text, isFirst, ids, words);
      add(piece.token);
    }
    add(given.token);
  }
}

void TokenizerParts::EncodeNormalized(std::string_view text, bool isFirst,
  std::vector<std::int64_t>& ids,
  std::unordered_map<std::string, std::vector<std::int64_t>>& words) const
{
  if (text.empty())
  {
    return;
  }
  std::deque<std::string> owned;
  const TextLimit limit = { LongestText, this->source };
  Pieces pieces = { text };
  for (const PreTokenization& preTokenization : this->preTokenizations)
  {
    pieces = std::visit(
      PreTokenizer{ pieces, owned, isFirst ? text.data() : nullptr, limit }, preTokenization);
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
