#include "GgufTokenizer.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Internal/PieceText.h"
#include "TokenTables.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{
namespace
{

std::string Key(std::string_view name)
{
  return "tokenizer.ggml." + std::string(name);
}

template<class... Parts>
void FailIf(
  bool condition, const GgufMetadata& metadata, std::string_view name, const Parts&... message)
{
  ThrowIf<FormatError>(
    condition, metadata.GetSource(), ": the metadata '", Key(name), "': ", message...);
}

/// What is added to texts, where the file does not say.
struct Defaults
{
  bool addBegin = false;
  bool addEnd = false;
  std::int64_t begin = -1; ///< id; -1: none
  std::int64_t end = -1;
};

/// Splits of Llama 3, Tekken and Chameleon, which add a token before texts.
constexpr std::array<std::string_view, 11> BeginningSplits = { "chameleon", "falcon-h1", "falcon3",
  "jina-v5-nano", "lfm2", "llama-bpe", "llama-v3", "llama3", "midm-2.0", "pixtral", "tekken" };

/// Splits of byte pairs on characters.
constexpr std::array<std::string_view, 3> CharacterSplits = { "gemma4", "granite-embed-multi-311m",
  "sarvam-moe" };

template<class Names>
bool IsOneOf(const Names& names, std::string_view name)
{
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The id of a special token, or the first of others that are there; or `otherwise`.
std::int64_t SpecialId(const GgufMetadata& metadata, const std::vector<std::string_view>& names,
  std::int64_t otherwise, std::size_t tokens)
{
  std::int64_t id = otherwise;
  const auto found = std::find_if(
    names.begin(), names.end(), [&](std::string_view name) { return metadata.Has(Key(name)); });
  if (found != names.end())
  {
    id = metadata.Integer(Key(*found));
  }
  FailIf(id < 0 || static_cast<std::uint64_t>(id) >= tokens, metadata,
    found != names.end() ? *found : names.front(), "expected the id of one of ", tokens,
    " tokens, found ", found == names.end() ? "none" : std::to_string(id), ".");
  return id;
}

void AddTokens(const GgufMetadata& metadata, TokenTable& table)
{
  const std::vector<std::string_view> tokens = metadata.Texts(Key("tokens"));
  table.tokens.assign(tokens.begin(), tokens.end());
  if (!metadata.Has(Key("token_type")))
  {
    return;
  }
  for (const std::int64_t type : metadata.Integers(Key("token_type")))
  {
    FailIf(type < 0 || type > std::numeric_limits<std::int32_t>::max(), metadata, "token_type",
      "expected types from 1 to 6, found ", type, ".");
    table.types.push_back(static_cast<std::int32_t>(type));
  }
  FailIf(table.types.size() != tokens.size(), metadata, "token_type", "expected the types of ",
    tokens.size(), " tokens, found ", table.types.size(), ".");
}

/// Adds what is added to texts.
void AddFrame(const GgufMetadata& metadata, const Defaults& defaults, TokenTable& table)
{
  const std::size_t tokens = table.tokens.size();
  if (metadata.Flag(Key("add_bos_token"), defaults.addBegin))
  {
    table.textBegin = { SpecialId(metadata, { "bos_token_id" }, defaults.begin, tokens) };
  }
  if (metadata.Flag(Key("add_eos_token"), defaults.addEnd))
  {
    table.textEnd = { SpecialId(metadata, { "eos_token_id" }, defaults.end, tokens) };
  }
}

Tokenizer MakePieces(const GgufMetadata& metadata, bool isUnigram)
{
  SentencePieceTable table;
  table.kind = isUnigram ? SentencePieceKind::Unigram : SentencePieceKind::BytePairs;
  table.singlePrecision = false; // as llama.cpp
  table.spellsControls = true;
  AddTokens(metadata, table);
  AddFrame(
    metadata, isUnigram ? Defaults{ false, true, -1, 1 } : Defaults{ true, false, 1, 2 }, table);
  for (const double score : metadata.Numbers(Key("scores")))
  {
    table.scores.push_back(static_cast<float>(score));
  }
  table.addPrefixSpace = metadata.Flag(Key("add_space_prefix"), !isUnigram);
  table.removeExtraSpaces = metadata.Flag(Key("remove_extra_whitespaces"), false);
  if (metadata.Has(Key("precompiled_charsmap")))
  {
    for (const std::int64_t byte : metadata.Integers(Key("precompiled_charsmap")))
    {
      table.characterMap += static_cast<char>(static_cast<unsigned char>(byte & 0xFF));
    }
  }
  return MakeSentencePieceTokenizer(table, metadata.GetSource());
}

Tokenizer MakeBytePairs(const GgufMetadata& metadata, const std::string& split)
{
  const bool hasCharacters = IsOneOf(CharacterSplits, split);
  BytePairTable table;
  table.split = split;
  AddTokens(metadata, table);
  AddFrame(metadata, { hasCharacters || IsOneOf(BeginningSplits, split) }, table);
  const std::vector<std::string_view> merges = metadata.Texts(Key("merges"));
  table.merges.assign(merges.begin(), merges.end());
  return hasCharacters ? MakeCharacterPairTokenizer(table, metadata.GetSource())
                       : MakeBytePairTokenizer(table, metadata.GetSource());
}

/// Makes tokens those of BERT's vocabularies: words without U+2581, and continuations with ##.
/// Special tokens stay as they are; old files do not tell them by their types.
void UnmarkWords(WordPieceTable& table)
{
  constexpr auto control = static_cast<std::int32_t>(TokenType::Control);
  for (std::size_t i = 0; i < table.tokens.size(); ++i)
  {
    std::string& token = table.tokens[i];
    const bool isBracketed = token.size() > 2 && token.front() == '[' && token.back() == ']';
    if (BeginsWith(token, SpaceMark))
    {
      token.erase(0, SpaceMark.size());
    }
    else if (isBracketed || table.types[i] == control)
    {
      table.types[i] = control;
    }
    else
    {
      token.insert(0, "##");
    }
  }
}

Tokenizer MakeWordPieces(const GgufMetadata& metadata)
{
  WordPieceTable table;
  AddTokens(metadata, table);
  const std::size_t count = table.tokens.size();
  table.unknown = SpecialId(metadata, { "unknown_token_id" }, 100, count);
  table.textBegin = { SpecialId(metadata, { "cls_token_id", "bos_token_id" }, 101, count) };
  table.textEnd = { SpecialId(
    metadata, { "seperator_token_id", "separator_token_id", "eos_token_id" }, 102, count) };
  if (table.types.empty())
  {
    table.types.assign(count, static_cast<std::int32_t>(TokenType::Normal));
  }
  for (const std::int64_t id : { table.unknown, table.textBegin.front(), table.textEnd.front() })
  {
    table.types[id] = static_cast<std::int32_t>(TokenType::Control);
  }
  UnmarkWords(table);
  table.lowerCase = metadata.Flag(Key("normalizer.lowercase"), true);
  table.stripAccents = metadata.Flag(Key("normalizer.strip_accents"), table.lowerCase);
  return MakeWordPieceTokenizer(table, metadata.GetSource());
}

}

Tokenizer MakeGgufTokenizer(const GgufMetadata& metadata)
{
  const std::string model = metadata.Text(Key("model"));
  if (model == "llama" || model == "t5")
  {
    return MakePieces(metadata, model == "t5");
  }
  if (model == "gpt2" || model == "gemma4")
  {
    return MakeBytePairs(metadata, model == "gpt2" ? metadata.Text(Key("pre"), "default") : model);
  }
  FailIf(model != "bert", metadata, "model",
    "expected a tokenizer of the kind llama, t5, gpt2, gemma4 or bert, found '",
    model.substr(0, 80), "', which is not supported; token ids can be given instead of text.");
  return MakeWordPieces(metadata);
}

Tokenizer ReadGgufTokenizer(const std::filesystem::path& path)
{
  const GgufFile file(path);
  return ReadIntact(file, [&] { return MakeGgufTokenizer(file.GetMetadata()); });
}

}
