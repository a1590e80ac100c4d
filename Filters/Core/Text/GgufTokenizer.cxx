#include "GgufTokenizer.h"

#include "Error.h"
#include "TokenTables.h"

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

[[noreturn]] void Fail(const GgufMetadata& metadata, std::string_view name, const std::string& what)
{
  throw FormatError(metadata.GetSource() + ": the metadata '" + Key(name) + "': " + what);
}

/// What is missing in the file when it is made for SentencePiece.
struct Defaults
{
  bool addBegin = false;
  std::int64_t begin = -1; ///< id; -1: none
  std::int64_t end = -1;
};

/// The id of a special token that is added to texts.
std::int64_t SpecialId(
  const GgufMetadata& metadata, std::string_view name, std::int64_t otherwise, std::size_t tokens)
{
  const std::int64_t id = metadata.Integer(Key(name), otherwise);
  if (id < 0 || static_cast<std::uint64_t>(id) >= tokens)
  {
    Fail(metadata, name,
      "expected the id of one of " + std::to_string(tokens) + " tokens, found " +
        (id < 0 ? "none" : std::to_string(id)) + ".");
  }
  return id;
}

void AddTokens(const GgufMetadata& metadata, const Defaults& defaults, TokenTable& table)
{
  const std::vector<std::string_view> tokens = metadata.Texts(Key("tokens"));
  table.tokens.assign(tokens.begin(), tokens.end());
  if (metadata.Has(Key("token_type")))
  {
    for (const std::int64_t type : metadata.Integers(Key("token_type")))
    {
      if (type < 0 || type > std::numeric_limits<std::int32_t>::max())
      {
        Fail(metadata, "token_type",
          "expected types from 1 to 6, found " + std::to_string(type) + ".");
      }
      table.types.push_back(static_cast<std::int32_t>(type));
    }
  }
  if (metadata.Flag(Key("add_bos_token"), defaults.addBegin))
  {
    table.textBegin = { SpecialId(metadata, "bos_token_id", defaults.begin, tokens.size()) };
  }
  if (metadata.Flag(Key("add_eos_token"), false))
  {
    table.textEnd = { SpecialId(metadata, "eos_token_id", defaults.end, tokens.size()) };
  }
}

Tokenizer MakePieces(const GgufMetadata& metadata)
{
  SentencePieceTable table;
  AddTokens(metadata, { true, 1, 2 }, table);
  for (const double score : metadata.Numbers(Key("scores")))
  {
    table.scores.push_back(static_cast<float>(score));
  }
  table.addPrefixSpace = metadata.Flag(Key("add_space_prefix"), true);
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

Tokenizer MakeBytePairs(const GgufMetadata& metadata)
{
  BytePairTable table;
  table.split = metadata.Text(Key("pre"), "default");
  AddTokens(metadata, { table.split == "llama-bpe", -1, -1 }, table);
  const std::vector<std::string_view> merges = metadata.Texts(Key("merges"));
  table.merges.assign(merges.begin(), merges.end());
  return MakeBytePairTokenizer(table, metadata.GetSource());
}

}

Tokenizer MakeGgufTokenizer(const GgufMetadata& metadata)
{
  const std::string model = metadata.Text(Key("model"));
  if (model == "llama")
  {
    return MakePieces(metadata);
  }
  if (model == "gpt2")
  {
    return MakeBytePairs(metadata);
  }
  Fail(metadata, "model",
    "expected a tokenizer of the kind llama or gpt2, found '" + model.substr(0, 80) +
      "', which is not supported; token ids can be given instead of text.");
}

Tokenizer ReadGgufTokenizer(const std::filesystem::path& path)
{
  const GgufFile file(path);
  return ReadIntact(file, [&] { return MakeGgufTokenizer(file.GetMetadata()); });
}

}
