#include "MarianTokenizer.h"

#include "Error.h"
#include "JsonText.h"
#include "MappedFile.h"
#include "SentencePieceFile.h"
#include "SentencePieceParts.h"
#include "TokenizerJson.h"
#include "Vocabulary.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

/// Whether a token is the code of a language.
bool IsLanguage(std::string_view token)
{
  constexpr std::size_t marks = 4;
  return token.size() > marks && token.substr(0, 2) == ">>" &&
         token.substr(token.size() - 2) == "<<";
}

std::int64_t RequireToken(
  const Vocabulary& vocabulary, const std::string& token, const std::string& source)
{
  const std::optional<std::int64_t> id = vocabulary.IdOf(token);
  if (!id)
  {
    throw FormatError(source + ": expected a token '" + token + "', found none.");
  }
  return *id;
}

/// A model whose pieces have the ids of a vocabulary. Tokens of the other language are there, but
/// texts are not split into them.
SentencePieceTable WithIdsOf(
  const Vocabulary& vocabulary, SentencePieceTable model, const std::string& source)
{
  std::map<std::string_view, std::size_t> pieces;
  for (std::size_t i = 0; i < model.tokens.size(); ++i)
  {
    pieces.emplace(model.tokens[i], i);
  }
  SentencePieceTable table = model;
  table.tokens.clear();
  table.scores.clear();
  table.types.clear();
  for (std::int64_t id = 0; id < vocabulary.Size(); ++id)
  {
    const std::string* token = vocabulary.TokenOf(id);
    if (token == nullptr)
    {
      throw FormatError(source + ": expected a token of each id below " +
                        std::to_string(vocabulary.Size()) + ", found none of " +
                        std::to_string(id) + ".");
    }
    const auto found = pieces.find(*token);
    const bool isSpecial = *token == "<unk>" || *token == "</s>" || *token == "<pad>";
    auto type = static_cast<std::int32_t>(TokenType::Unused);
    if (isSpecial)
    {
      type = static_cast<std::int32_t>(*token == "<unk>" ? TokenType::Unknown : TokenType::Control);
    }
    else if (found != pieces.end())
    {
      type = model.types.empty() ? static_cast<std::int32_t>(TokenType::Normal)
                                 : model.types[found->second];
    }
    table.tokens.push_back(*token);
    table.types.push_back(type);
    table.scores.push_back(found == pieces.end() ? 0 : model.scores[found->second]);
    if (IsLanguage(*token))
    {
      table.addedTokens.emplace_back(*token, id);
    }
  }
  return table;
}

}

Tokenizer ReadMarianTokenizer(
  const std::filesystem::path& folder, const char* model, const char* vocabularyFile)
{
  const std::string vocabularySource = (folder / vocabularyFile).string();
  const std::string modelSource = (folder / model).string();
  const nlohmann::json value = ParseJson(ReadFile(vocabularySource), vocabularySource);
  const std::shared_ptr<Vocabulary> vocabulary =
    ParseVocabulary(JsonNode(value, "the vocabulary", vocabularySource));
  RequireToken(*vocabulary, "<unk>", vocabularySource);
  SentencePieceTable table = WithIdsOf(
    *vocabulary, ParseSentencePieceModel(ReadFile(modelSource), modelSource), vocabularySource);
  table.textEnd = { RequireToken(*vocabulary, "</s>", vocabularySource) };
  return MakeSentencePieceTokenizer(table, modelSource);
}

}
