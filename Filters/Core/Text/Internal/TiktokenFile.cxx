#include "TiktokenFile.h"

#include "Base/Error.h"
#include "Base/NumberText.h"
#include "ByteLevelSplits.h"
#include "CharacterMap.h"
#include "Text/UnicodeText.h"
#include "TokenizerParts.h"
#include "WordModel.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::size_t LlamaRanks = 128'000;

/// Ranks by token.
using Ranks = std::unordered_map<std::string_view, std::size_t>;

/// The two tokens that a token is merged of: what byte pair encoding leaves of its bytes with the
/// tokens of lower ranks. Others are only found as whole words.
std::optional<Merge> PartsOf(const std::string& token, std::size_t rank, const Ranks& ranks)
{
  std::vector<std::size_t> begins; // of parts, and the end
  for (std::size_t i = 0; i <= token.size(); ++i)
  {
    begins.push_back(i);
  }
  const auto part = [&](std::size_t i, std::size_t count)
  { return std::string_view(token).substr(begins[i], begins[i + count] - begins[i]); };
  while (begins.size() > 3)
  {
    std::size_t lowest = rank;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 2 < begins.size(); ++i)
    {
      const auto found = ranks.find(part(i, 2));
      if (found != ranks.end() && found->second < lowest)
      {
        lowest = found->second;
        place = i;
      }
    }
    if (lowest == rank)
    {
      return {};
    }
    begins.erase(begins.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  return Merge{ ByteLevelToken(part(0, 1)), ByteLevelToken(part(1, 1)) };
}

/// The special tokens of Llama 3, in order of their ids.
std::vector<std::string> LlamaTokens()
{
  std::vector<std::string> tokens = { "<|begin_of_text|>", "<|end_of_text|>" };
  int reserved = 0;
  const auto reserve = [&](int end)
  {
    for (; reserved < end; ++reserved)
    {
      tokens.push_back("<|reserved_special_token_" + std::to_string(reserved) + "|>");
    }
  };
  reserve(4);
  tokens.insert(tokens.end(), { "<|start_header_id|>", "<|end_header_id|>" });
  reserve(5);
  tokens.emplace_back("<|eot_id|>");
  reserve(251);
  return tokens;
}

}

bool LooksLikeTiktoken(std::string_view text)
{
  constexpr std::size_t longest = 1000; // of a line
  const std::string_view line = text.substr(0, std::min(text.find('\n'), longest));
  const std::size_t space = line.find(' ');
  return space != std::string_view::npos && space > 0 &&
         DecodeBase64(line.substr(0, space)).has_value() &&
         ToNumber<std::size_t>(line.substr(space + 1)).has_value();
}

std::vector<std::string> ParseTiktokenRanks(std::string_view text, const std::string& source)
{
  std::vector<std::string> ranks;
  for (std::size_t begin = 0; begin < text.size();)
  {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    line.remove_suffix(!line.empty() && line.back() == '\r' ? 1 : 0);
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::optional<std::string> token = DecodeBase64(line.substr(0, space));
    const std::optional<std::size_t> rank =
      ToNumber<std::size_t>(line.substr(std::min(space + 1, line.size())));
    if (!token || token->empty() || !rank || *rank != ranks.size())
    {
      throw FormatError(source, ": line ", ranks.size() + 1,
        ": expected a token in Base64, a space and its rank, ", ranks.size(),
        ", as in a file of tiktoken.");
    }
    ranks.push_back(*token);
  }
  return ranks;
}

Tokenizer MakeTiktokenTokenizer(const std::vector<std::string>& ranks,
  const std::vector<std::string>& special, const std::string& source)
{
  const auto vocabulary = std::make_shared<Vocabulary>();
  Ranks known;
  std::vector<Merge> merges;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
  {
    vocabulary->Add(ByteLevelToken(ranks[rank]), static_cast<std::int64_t>(rank), source);
    known.emplace(ranks[rank], rank);
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
  {
    std::optional<Merge> merge =
      ranks[rank].size() > 1 ? PartsOf(ranks[rank], rank, known) : std::nullopt;
    if (merge)
    {
      merges.push_back(std::move(*merge));
    }
  }
  const auto parts =
    MakeByteLevelParts(vocabulary, merges, MakeByteLevelSplit("llama3", source), source);
  parts->source = source;
  std::int64_t id = ranks.size();
  const std::int64_t first = id;
  for (const std::string& token : special)
  {
    parts->Add({ token, id++ });
  }
  if (!special.empty())
  {
    parts->Enclose({ first }, {});
  }
  return Tokenizer(parts);
}

Tokenizer ParseTiktokenModel(std::string_view text, const std::string& source)
{
  const std::vector<std::string> ranks = ParseTiktokenRanks(text, source);
  ThrowIf<FormatError>(ranks.size() != LlamaRanks, source, ": expected the ", LlamaRanks,
    " ranks of Llama 3, found a file of tiktoken with ", ranks.size(),
    "; its tokenizer.json, which says more, is read.");
  return MakeTiktokenTokenizer(ranks, LlamaTokens(), source);
}

}
