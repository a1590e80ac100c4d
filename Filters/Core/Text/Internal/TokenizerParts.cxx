#include "TokenizerParts.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
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

/// What `add` appends for each character, which is given with its bytes.
template<class Add>
std::string MapCharacters(std::string_view text, const Add& add)
{
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
  {
    const std::size_t begin = i;
    const char32_t c = NextCharacter(text, i);
    add(result, c, text.substr(begin, i - begin));
  }
  return result;
}

std::string Clean(std::string_view text)
{
  return MapCharacters(text,
    [](std::string& result, char32_t c, std::string_view bytes)
    {
      constexpr char32_t replacement = 0xFFFD;
      const bool isBlank = c == '\t' || c == '\n' || c == '\r';
      if (isBlank || (c != replacement && !IsOther(c)))
      {
        result += isBlank || IsWhitespace(c) ? " " : bytes;
      }
    });
}

/// The list of characters is that of the original.
std::string WithoutControls(std::string_view text)
{
  return MapCharacters(text,
    [](std::string& result, char32_t c, std::string_view bytes)
    {
      constexpr std::u32string_view spaces =
        U"\t\n\f\r\u1680\u200B\u200C\u200D\u200E\u200F\u2028\u2029\u2581\uFEFF\uFFFD";
      const bool isSpace = spaces.find(c) != std::u32string_view::npos;
      const bool isControl = (c > 0 && c < U' ') || c == 0x7F || c == 0x8F || c == 0x9F;
      if (isSpace || !isControl)
      {
        result += isSpace ? " " : bytes;
      }
    });
}

std::string SeparateChinese(std::string_view text)
{
  return MapCharacters(text,
    [](std::string& result, char32_t c, std::string_view bytes)
    {
      const std::string_view beside = IsChinese(c) ? " " : "";
      result.append(beside).append(bytes).append(beside);
    });
}

/// The text without the characters of a class.
std::string Without(bool (*isOfClass)(char32_t), std::string_view text)
{
  return MapCharacters(text, [&](std::string& result, char32_t c, std::string_view bytes)
    { result += isOfClass(c) ? "" : bytes; });
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
    ThrowIf<FormatError>(
      more.size() > this->Limit.bytes - std::min(this->Limit.bytes, this->Text.size()),
      this->Limit.source, ": expected a normalized text of at most ", this->Limit.bytes,
      " bytes, found more.");
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
    while (this->Settings.removeExtraSpaces && EndsWith(text, space))
    {
      text.resize(text.size() - space.size());
    }
  }
};

std::string Replace(const CharacterMap& characters, std::string_view text, const TextLimit& limit)
{
  constexpr std::size_t longest = 5; // bytes of a cluster that is replaced as a whole
  GrowingText result(text, limit);
  std::size_t begin = 0;
  for (const std::size_t end : ClusterEnds(text))
  {
    const std::string_view cluster = text.substr(begin, end - begin);
    begin = end;
    const CharacterMap::Match whole =
      cluster.size() > longest ? CharacterMap::Match() : characters.Shortest(cluster);
    if (whole.length > 0)
    {
      result += whole.replacement;
      continue;
    }
    for (std::size_t i = 0; i < cluster.size();)
    {
      const std::size_t here = i;
      NextCharacter(cluster, i);
      const std::string_view character = cluster.substr(here, i - here);
      const CharacterMap::Match match = characters.Shortest(character);
      result += match.length > 0 ? match.replacement : character;
    }
  }
  return std::move(result.Text);
}

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
  std::string operator()(const StripSpaces& strip) const
  {
    return std::string(Stripped(this->text, strip.left, strip.right));
  }
  std::string operator()(const ReplaceClusters& clusters) const
  {
    return Replace(*clusters.characters, this->text, this->limit);
  }
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

/// Splits a piece into smaller ones. Text that is not in the input is stored in `owned`.
struct PreTokenizer
{
  std::string_view piece;
  Pieces& result;
  std::deque<std::string>& owned;
  const char* textBegin; ///< where the user's text begins, or null if it began before
  const TextLimit& limit;

  /// Adds the part of the piece that ends at `end`, and returns that.
  std::size_t Add(std::size_t begin, std::size_t end) const
  {
    this->result.push_back(this->piece.substr(begin, end - begin));
    return end;
  }

  void operator()(const SplitByExpression& split) const
  {
    const std::vector<SplitPart> parts = PartsOf(split, this->piece);
    Pieces words;
    for (std::size_t i = 0; i < parts.size(); ++i)
    {
      const auto [begin, end] = parts[i].span;
      const bool isRemoved = split.behavior == SplitBehavior::Removed && parts[i].isMatch;
      if (!isRemoved && i > 0 && JoinsPrevious(split.behavior, parts[i - 1], parts[i]))
      {
        const std::size_t before = words.back().size();
        words.back() = this->piece.substr(begin - before, before + end - begin);
      }
      else if (!isRemoved)
      {
        words.push_back(this->piece.substr(begin, end - begin));
      }
    }
    std::copy_if(words.begin(), words.end(), std::back_inserter(this->result),
      [](std::string_view word) { return !word.empty(); });
  }

  void operator()(const SplitLikeBert&) const
  {
    std::size_t word = 0; // where the current word begins
    for (std::size_t i = 0; i < this->piece.size();)
    {
      const std::size_t begin = i;
      const char32_t c = NextCharacter(this->piece, i);
      const bool isPunctuation = IsPunctuation(c);
      if (isPunctuation || IsWhitespace(c))
      {
        if (begin > word)
        {
          this->Add(word, begin);
        }
        word = isPunctuation ? this->Add(begin, i) : i;
      }
    }
    if (word < this->piece.size())
    {
      this->Add(word, this->piece.size());
    }
  }

  void operator()(const PrefixSpace&) const
  {
    this->result.push_back(this->piece.front() == ' '
                             ? this->piece
                             : this->owned.emplace_back(" " + std::string(this->piece)));
  }

  void operator()(const ByteLevelText& bytes) const
  {
    this->result.push_back(this->owned.emplace_back(
      bytes.inverse ? ByteLevelBytes(this->piece) : ByteLevelToken(this->piece)));
  }

  void operator()(const Metaspace& metaspace) const
  {
    std::string& text = this->owned.emplace_back(
      Replace({ std::nullopt, " ", std::string(SpaceMark) }, this->piece, this->limit));
    const bool isMarked =
      metaspace.prefix == PrefixMark::Always ||
      (metaspace.prefix == PrefixMark::First && this->textBegin == this->piece.data());
    if (isMarked && !BeginsWith(text, SpaceMark))
    {
      text.insert(0, SpaceMark);
    }
    const std::string_view whole = text;
    for (std::size_t begin = 0; begin < whole.size();)
    {
      const std::size_t mark =
        metaspace.split ? whole.find(SpaceMark, begin + 1) : std::string_view::npos;
      const std::size_t end = std::min(mark, whole.size());
      this->result.push_back(whole.substr(begin, end - begin));
      begin = end;
    }
  }

  void operator()(const SplitWords&) const
  {
    for (std::size_t begin = 0; begin < this->piece.size();)
    {
      begin = this->Add(begin, NextWord(this->piece, begin));
    }
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

/// True if a word character is next to a part of a text.
bool IsBesideWord(std::string_view text, const TextSpan& part)
{
  const auto isWordAt = [text](std::size_t position)
  { return IsWordCharacter(NextCharacter(text, position)); };
  return (part.begin > 0 && isWordAt(PreviousCharacter(text, part.begin))) ||
         (part.end < text.size() && isWordAt(part.end));
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
  const std::int32_t type = hasTypes ? 1 : 0;
  const TemplatePart last = { -1, { end }, type };
  if (!hasTypes)
  {
    this->pair.push_back(last);
  }
  this->pair.push_back({ 1, {}, type });
  this->pair.push_back(last);
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
  const std::string name = this->source + ": added token '" + token.content.substr(0, 80) + "': ";
  ThrowIf<FormatError>(token.content.empty(), name, "expected a text, found none.");
  RequireFreeId(name, token.content, token.id, this->IdOf(token.content), this->TokenOf(token.id));
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

bool TokenizerParts::DropsFirst(std::string_view text) const
{
  const bool matters = std::any_of(this->preTokenizations.begin(), this->preTokenizations.end(),
    [](const PreTokenization& step)
    {
      const auto* metaspace = std::get_if<Metaspace>(&step);
      return metaspace != nullptr && metaspace->prefix == PrefixMark::First;
    });
  if (!matters || text.empty())
  {
    return false;
  }
  // A step drops a character if others begin in the same way without it.
  constexpr const char* other = "x";
  std::size_t end = 0;
  NextCharacter(text, end);
  std::string first(text.substr(0, end));
  const TextLimit limit = { LongestText, this->source };
  for (const TextNormalization& step : this->normalizations)
  {
    const std::string changed = Apply(step, first + other, limit);
    if (changed == Apply(step, other, limit))
    {
      return true;
    }
    first = Apply(step, first, limit);
  }
  return false;
}

void TokenizerParts::Encode(std::string_view text, std::vector<std::int64_t>& ids) const
{
  // A second thread that runs at the same time uses its own cache and gets the same result.
  std::unordered_map<std::string, std::vector<std::int64_t>> own;
  const std::unique_lock<std::mutex> lock(this->cache.mutex, std::try_to_lock);
  auto& words = lock.owns_lock() ? this->cache.words : own;
  const auto add = [&ids](const std::optional<std::int64_t>& token)
  { ids.insert(ids.end(), token ? 1 : 0, token.value_or(0)); };
  for (const AddedTokenFinder::Piece& given : this->givenTokens.Split(text))
  {
    const std::string normalized = this->Normalize(given.text);
    const bool beginsText = given.text.data() == text.data() && !this->DropsFirst(given.text);
    for (const AddedTokenFinder::Piece& piece : this->normalizedTokens.Split(normalized))
    {
      const bool isFirst = beginsText && piece.text.data() == normalized.data();
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
    Pieces parts;
    for (const std::string_view piece : pieces)
    {
      std::visit(PreTokenizer{ piece, parts, owned, isFirst ? text.data() : nullptr, limit },
        preTokenization);
    }
    pieces = std::move(parts);
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
    const std::ptrdiff_t before = ids.size();
    this->model->Encode(piece, ids);
    if (words.size() < MaximumCachedWords)
    {
      words.emplace(std::move(word), std::vector(ids.begin() + before, ids.end()));
    }
  }
}

}
