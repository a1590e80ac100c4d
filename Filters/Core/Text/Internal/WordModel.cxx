#include "WordModel.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "PieceText.h"
#include "Text/UnicodeText.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace atlas
{
namespace
{

/// One more than the last character that represents a byte.
constexpr std::size_t ByteLevelEnd = 0x144;
constexpr int NoByte = -1;

/// The id of the token for unknown words, of which `word` is one.
std::int64_t UnknownWord(const Vocabulary& vocabulary, const std::string& unknown,
  std::string_view word, const std::string& source)
{
  const std::optional<std::int64_t> id = vocabulary.IdOf(unknown);
  if (!id)
  {
    throw FormatError(source, ": the vocabulary has no word '", word.substr(0, 80),
      "', which the text contains, and no token ",
      unknown.empty() ? "" : "'" + unknown.substr(0, 80) + "' ", "for unknown words.");
  }
  return *id;
}

}

std::string WordModel::Label(std::string_view token) const
{
  return ReplaceInvalidUtf8(this->BytesOf(token));
}

const std::array<char32_t, 256>& ByteLevelCharacters()
{
  static const std::array<char32_t, 256> all = []
  {
    std::array<char32_t, 256> characters = {};
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte)
    {
      const bool isPrintable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      characters[byte] = isPrintable ? byte : next++;
    }
    return characters;
  }();
  return all;
}

std::string ByteLevelBytes(std::string_view token)
{
  static const std::array<int, ByteLevelEnd> bytes = []
  {
    std::array<int, ByteLevelEnd> inverse = {};
    inverse.fill(NoByte);
    for (unsigned byte = 0; byte < 256; ++byte)
    {
      inverse[ByteLevelCharacters()[byte]] = static_cast<int>(byte);
    }
    return inverse;
  }();
  std::string text;
  for (std::size_t i = 0; i < token.size();)
  {
    const char32_t c = NextCharacter(token, i);
    const int byte = c < ByteLevelEnd ? bytes[c] : NoByte;
    if (byte == NoByte)
    {
      return std::string(token);
    }
    text += static_cast<char>(static_cast<unsigned char>(byte));
  }
  return text;
}

std::string ByteLevelToken(std::string_view bytes)
{
  std::string token;
  token.reserve(bytes.size() + bytes.size() / 2);
  for (const char c : bytes)
  {
    Append(token, ByteLevelCharacters()[static_cast<unsigned char>(c)]);
  }
  return token;
}

BytePairModel::BytePairModel(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Merge>& merges, bool wholeWordsFirst, const std::string& source,
  std::string wordEnd, UnknownParts unknown)
  : WordModel(std::move(vocabulary))
  , WholeWordsFirst(wholeWordsFirst)
  , WordEnd(std::move(wordEnd))
  , Unknown(unknown)
  , Source(source)
{
  const Vocabulary& tokens = this->GetVocabulary();
  for (std::size_t byte = 0; byte < this->ByteIds.size(); ++byte)
  {
    std::string token = ByteLevelToken(std::string(1, static_cast<char>(byte)));
    this->ByteIds[byte] = static_cast<std::int32_t>(tokens.IdOf(token).value_or(-1));
    token += this->WordEnd;
    this->LastByteIds[byte] = static_cast<std::int32_t>(tokens.IdOf(token).value_or(-1));
  }
  this->Merges.Reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank)
  {
    AddMerge(this->Merges, tokens, merges, rank, source);
  }
}

void BytePairModel::AddUnknown(unsigned char byte, std::vector<std::int32_t>& symbols) const
{
  if (!this->Unknown.token)
  {
    std::array<char, 8> text = {};
    std::snprintf(text.data(), text.size(), "0x%02x", static_cast<unsigned>(byte));
    throw FormatError(this->Source, ": the vocabulary has no token for the byte ", text.data(),
      ", which the text contains.");
  }
  const std::int32_t symbol = FrozenSymbol(*this->Unknown.token);
  if (!this->Unknown.fuse || symbols.empty() || symbols.back() != symbol)
  {
    symbols.push_back(symbol);
  }
}

void BytePairModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  if (this->WholeWordsFirst)
  {
    if (const std::optional<std::int64_t> id = this->GetVocabulary().IdOf(ByteLevelToken(word)))
    {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i)
  {
    const auto byte = static_cast<unsigned char>(word[i]);
    const bool isLast = i + 1 == word.size();
    const std::int32_t symbol = isLast ? this->LastByteIds[byte] : this->ByteIds[byte];
    if (symbol >= 0)
    {
      symbols.push_back(symbol);
    }
    else
    {
      this->AddUnknown(byte, symbols);
    }
  }
  this->Merges.Apply(symbols);
  std::transform(symbols.begin(), symbols.end(), std::back_inserter(ids), IdOfSymbol);
}

std::string BytePairModel::BytesOf(std::string_view token) const
{
  const std::size_t end = token.size() - std::min(token.size(), this->WordEnd.size());
  if (this->WordEnd.empty() || token.substr(end) != this->WordEnd)
  {
    return ByteLevelBytes(token);
  }
  return ByteLevelBytes(token.substr(0, end)) + " ";
}

UnknownCharacters::UnknownCharacters(const Vocabulary& vocabulary, bool byteFallback,
  const std::optional<std::int64_t>& unknown, std::string source)
  : Unknown(unknown)
  , Source(std::move(source))
{
  for (std::size_t byte = 0; byte < this->ByteIds.size(); ++byte)
  {
    const std::optional<std::int64_t> id =
      vocabulary.IdOf(BytePiece(static_cast<unsigned char>(byte)));
    this->ByteIds[byte] = byteFallback ? static_cast<std::int32_t>(id.value_or(-1)) : -1;
  }
}

void UnknownCharacters::Add(std::string_view text, std::vector<std::int64_t>& ids) const
{
  const auto idOf = [this](char byte) { return this->ByteIds[static_cast<unsigned char>(byte)]; };
  if (std::all_of(text.begin(), text.end(), [&](char byte) { return idOf(byte) >= 0; }))
  {
    std::transform(text.begin(), text.end(), std::back_inserter(ids), idOf);
    return;
  }
  if (!this->Unknown)
  {
    throw FormatError(this->Source, ": the vocabulary has no token for '", text.substr(0, 80),
      "', which the text contains, and no token for unknown characters.");
  }
  ids.push_back(*this->Unknown);
}

WordPieceModel::WordPieceModel(
  std::shared_ptr<const Vocabulary> vocabulary, Options options, std::string source)
  : WordModel(std::move(vocabulary))
  , Settings(std::move(options))
  , Source(std::move(source))
{
}

void WordPieceModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  const std::size_t before = ids.size();
  bool known = CharacterCount(word) <= this->Settings.maximumCharacters;
  std::string candidate;
  for (std::size_t begin = 0; known && begin < word.size();)
  {
    candidate = begin == 0 ? std::string() : this->Settings.continuation;
    const std::size_t prefix = candidate.size();
    candidate += word.substr(begin, this->GetVocabulary().LongestToken());
    std::optional<std::int64_t> id;
    while (candidate.size() > prefix && !(id = this->GetVocabulary().IdOf(candidate)))
    {
      candidate.pop_back(); // cutting within a character costs a look-up, but finds nothing
    }
    known = id.has_value();
    begin += candidate.size() - prefix;
    ids.push_back(id.value_or(-1));
  }
  if (!known)
  {
    ids.resize(before);
    ids.push_back(UnknownWord(this->GetVocabulary(), this->Settings.unknown, word, this->Source));
  }
}

void WordPieceModel::Decode(std::string_view token, std::string& text) const
{
  const std::string_view continuation = this->Settings.continuation;
  if (!continuation.empty() && BeginsWith(token, continuation))
  {
    text += token.substr(continuation.size());
  }
  else
  {
    text += text.empty() ? "" : " ";
    text += token;
  }
}

WordLevelModel::WordLevelModel(std::shared_ptr<const Vocabulary> vocabulary, std::string unknown,
  std::string separator, std::string source)
  : WordModel(std::move(vocabulary))
  , Unknown(std::move(unknown))
  , Separator(std::move(separator))
  , Source(std::move(source))
{
}

void WordLevelModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  const std::optional<std::int64_t> id = this->GetVocabulary().IdOf(word);
  ids.push_back(id ? *id : UnknownWord(this->GetVocabulary(), this->Unknown, word, this->Source));
}

void WordLevelModel::Decode(std::string_view token, std::string& text) const
{
  text += text.empty() ? std::string() : this->Separator;
  text += token;
}

}
