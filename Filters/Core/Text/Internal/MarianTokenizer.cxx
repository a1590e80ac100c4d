#include "MarianTokenizer.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "TableParts.h"
#include "Text/SentencePieceFile.h"
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
  return token.size() > marks && BeginsWith(token, ">>") && EndsWith(token, "<<");
}

/// A model whose pieces have the ids of a vocabulary. Tokens of the other language are there, but
/// texts are not split into them.
SentencePieceTable WithIdsOf(
  const Vocabulary& vocabulary, const SentencePieceTable& model, const std::string& source)
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
      throw FormatError(source, ": expected a token of each id below ", vocabulary.Size(),
        ", found none of ", id, ".");
    }
    const auto found = pieces.find(*token);
    const bool isPiece = found != pieces.end();
    std::int32_t type = static_cast<std::int32_t>(isPiece ? TokenType::Normal : TokenType::Unused);
    if (*token == "<unk>" || *token == "</s>" || *token == "<pad>")
    {
      type = static_cast<std::int32_t>(*token == "<unk>" ? TokenType::Unknown : TokenType::Control);
    }
    else if (isPiece && !model.types.empty())
    {
      type = model.types[found->second];
    }
    table.tokens.push_back(*token);
    table.types.push_back(type);
    table.scores.push_back(isPiece ? model.scores[found->second] : 0);
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
  const std::optional<std::int64_t> end = vocabulary->IdOf("</s>");
  if (!end || !vocabulary->IdOf("<unk>"))
  {
    throw FormatError(
      vocabularySource, ": expected a token '", end ? "<unk>" : "</s>", "', found none.");
  }
  SentencePieceTable table = WithIdsOf(
    *vocabulary, ParseSentencePieceModel(ReadFile(modelSource), modelSource), vocabularySource);
  table.textEnd = { *end };
  return MakeSentencePieceTokenizer(table, modelSource);
}

}
