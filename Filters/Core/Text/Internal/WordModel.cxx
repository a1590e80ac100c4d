#include "WordModel.h"

#include "Error.h"
#include "UnicodeText.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <queue>

namespace atlas
{
namespace
{

/// Up to this many bytes, scanning all pairs for each merge is faster than a heap.
constexpr std::size_t ShortWord = 48;

/// One more than the last character that represents a byte.
constexpr std::size_t ByteLevelEnd = 0x144;
constexpr int NoByte = -1;

std::uint64_t PairKey(std::int32_t left, std::int32_t right)
{
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U |
         static_cast<std::uint32_t>(right);
}

bool IsPrintableByte(unsigned byte)
{
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<char32_t, 256> MakeByteLevelCharacters()
{
  std::array<char32_t, 256> characters = {};
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte)
  {
    characters[byte] = IsPrintableByte(byte) ? char32_t{ byte } : next++;
  }
  return characters;
}

[[noreturn]] void FailMerge(const std::string& source, std::size_t rank,
  const BytePairModel::Merge& merge, const std::string& message)
{
  throw FormatError(source + ": merge " + std::to_string(rank) + " '" + merge.first + " " +
                    merge.second + "'" + message);
}

}

const std::array<char32_t, 256>& ByteLevelCharacters()
{
  static const std::array<char32_t, 256> characters = MakeByteLevelCharacters();
  return characters;
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

BytePairModel::BytePairModel(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Merge>& merges, bool wholeWordsFirst, const std::string& source)
  : WordModel(std::move(vocabulary))
  , WholeWordsFirst(wholeWordsFirst)
  , Source(source)
{
  const Vocabulary& tokens = this->GetVocabulary();
  for (std::size_t byte = 0; byte < this->ByteIds.size(); ++byte)
  {
    std::string token;
    Append(token, ByteLevelCharacters()[byte]);
    this->ByteIds[byte] = static_cast<std::int32_t>(tokens.IdOf(token).value_or(-1));
  }
  this->Merges.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank)
  {
    const std::string& left = merges[rank].first;
    const std::string& right = merges[rank].second;
    const auto idOf = [&](const std::string& token)
    {
      const std::optional<std::int64_t> id = tokens.IdOf(token);
      if (!id)
      {
        FailMerge(source, rank, merges[rank], ": the vocabulary has no token '" + token + "'.");
      }
      return static_cast<std::int32_t>(*id);
    };
    const Result result = { static_cast<std::uint32_t>(rank), idOf(left + right) };
    if (!this->Merges.emplace(PairKey(idOf(left), idOf(right)), result).second)
    {
      FailMerge(source, rank, merges[rank], " is listed twice.");
    }
  }
}

BytePairModel::Result BytePairModel::Find(std::int32_t left, std::int32_t right) const
{
  const auto found = this->Merges.find(PairKey(left, right));
  return found == this->Merges.end() ? Result{ NoRank, -1 } : found->second;
}

void BytePairModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  if (this->WholeWordsFirst)
  {
    std::string token;
    for (const char c : word)
    {
      Append(token, ByteLevelCharacters()[static_cast<unsigned char>(c)]);
    }
    if (const std::optional<std::int64_t> id = this->GetVocabulary().IdOf(token))
    {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  for (const char c : word)
  {
    const auto byte = static_cast<unsigned char>(c);
    symbols.push_back(this->ByteIds[byte]);
    if (symbols.back() < 0)
    {
      std::array<char, 8> text = {};
      std::snprintf(text.data(), text.size(), "0x%02x", static_cast<unsigned>(byte));
      throw FormatError(this->Source + ": the vocabulary has no token for the byte " + text.data() +
                        ", which the text contains.");
    }
  }
  if (symbols.size() <= ShortWord)
  {
    this->MergeShort(symbols);
  }
  else
  {
    this->MergeLong(symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void BytePairModel::MergeShort(std::vector<std::int32_t>& symbols) const
{
  std::array<Result, ShortWord> merges; // merge of each symbol with the next one
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i)
  {
    merges[i] = this->Find(symbols[i], symbols[i + 1]);
  }
  while (count > 1)
  {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
    {
      best = merges[i].rank < merges[best].rank ? i : best;
    }
    if (merges[best].rank == NoRank)
    {
      break;
    }
    symbols[best] = merges[best].id;
    --count;
    for (std::size_t i = best + 1; i < count; ++i)
    {
      symbols[i] = symbols[i + 1];
      merges[i - 1] = merges[i];
    }
    if (best > 0)
    {
      merges[best - 1] = this->Find(symbols[best - 1], symbols[best]);
    }
    if (best + 1 < count)
    {
      merges[best] = this->Find(symbols[best], symbols[best + 1]);
    }
  }
  symbols.resize(count);
}

void BytePairModel::MergeLong(std::vector<std::int32_t>& symbols) const
{
  // A linked list of symbols, indexed by their first byte, and a heap of merges. A merge in the
  // heap is obsolete if one of its symbols has changed since.
  struct Candidate
  {
    std::uint32_t rank;
    std::size_t left;
    std::size_t right;
    std::int32_t leftId;
    std::int32_t rightId;
    std::int32_t id;

    bool operator>(const Candidate& other) const
    {
      return std::pair(this->rank, this->left) > std::pair(other.rank, other.left);
    }
  };
  constexpr std::int32_t gone = -1;
  const std::size_t end = symbols.size();
  std::vector<std::size_t> next(end);
  std::vector<std::size_t> previous(end);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](std::size_t left, std::size_t right)
  {
    const Result result = this->Find(symbols[left], symbols[right]);
    if (result.rank != NoRank)
    {
      candidates.push({ result.rank, left, right, symbols[left], symbols[right], result.id });
    }
  };
  for (std::size_t i = 0; i < end; ++i)
  {
    next[i] = i + 1;
    previous[i] = i == 0 ? end : i - 1;
    if (i + 1 < end)
    {
      offer(i, i + 1);
    }
  }
  while (!candidates.empty())
  {
    const Candidate merge = candidates.top();
    candidates.pop();
    if (symbols[merge.left] != merge.leftId || symbols[merge.right] != merge.rightId ||
        next[merge.left] != merge.right)
    {
      continue;
    }
    symbols[merge.left] = merge.id;
    symbols[merge.right] = gone;
    next[merge.left] = next[merge.right];
    if (next[merge.left] < end)
    {
      previous[next[merge.left]] = merge.left;
      offer(merge.left, next[merge.left]);
    }
    if (previous[merge.left] < end)
    {
      offer(previous[merge.left], merge.left);
    }
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), gone), symbols.end());
}

void BytePairModel::Decode(std::string_view token, std::string& text) const
{
  text += ByteLevelBytes(token);
}

std::string BytePairModel::Label(std::string_view token) const
{
  return ReplaceInvalidUtf8(ByteLevelBytes(token));
}

WordPieceModel::WordPieceModel(
  std::shared_ptr<const Vocabulary> vocabulary, Options options, const std::string& source)
  : WordModel(std::move(vocabulary))
  , Settings(std::move(options))
{
  const std::optional<std::int64_t> unknown = this->GetVocabulary().IdOf(this->Settings.unknown);
  if (!unknown)
  {
    throw FormatError(
      source + ": the vocabulary has no unknown token '" + this->Settings.unknown + "'.");
  }
  this->UnknownId = *unknown;
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
    ids.push_back(id.value_or(this->UnknownId));
  }
  if (!known)
  {
    ids.resize(before);
    ids.push_back(this->UnknownId);
  }
}

void WordPieceModel::Decode(std::string_view token, std::string& text) const
{
  const std::string_view continuation = this->Settings.continuation;
  if (!continuation.empty() && token.substr(0, continuation.size()) == continuation)
  {
    text += token.substr(continuation.size());
  }
  else
  {
    text += text.empty() ? "" : " ";
    text += token;
  }
}

std::string WordPieceModel::Label(std::string_view token) const
{
  return std::string(token);
}

WordLevelModel::WordLevelModel(
  std::shared_ptr<const Vocabulary> vocabulary, std::string unknown, std::string source)
  : WordModel(std::move(vocabulary))
  , Unknown(std::move(unknown))
  , Source(std::move(source))
{
}

void WordLevelModel::Encode(std::string_view word, std::vector<std::int64_t>& ids) const
{
  std::optional<std::int64_t> id = this->GetVocabulary().IdOf(word);
  id = id ? id : this->GetVocabulary().IdOf(this->Unknown);
  if (!id)
  {
    throw FormatError(this->Source + ": the vocabulary has no word '" +
                      std::string(word.substr(0, 80)) +
                      "', which the text contains, and no token for unknown words.");
  }
  ids.push_back(*id);
}

void WordLevelModel::Decode(std::string_view token, std::string& text) const
{
  text += text.empty() ? "" : " ";
  text += token;
}

std::string WordLevelModel::Label(std::string_view token) const
{
  return std::string(token);
}

}
