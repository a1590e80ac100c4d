#include "MarianTokenizer.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "TableParts.h"
#include "Text/SentencePieceFile.h"
#include "TokenizerJson.h"
#include "Vocabulary.h"

#include <algorithm>
#include <map>
#include <memory>
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

}

SentencePieceTable WithIdsOf(const std::filesystem::path& path, const SentencePieceTable& model)
{
  const std::string source = path.string();
  const nlohmann::json value = ParseJson(ReadFile(path), source);
  const std::shared_ptr<Vocabulary> vocabulary =
    ParseVocabulary(JsonNode(value, "the vocabulary", source));
  const bool hasEnd = vocabulary->IdOf("</s>").has_value();
  if (!hasEnd || !vocabulary->IdOf("<unk>"))
  {
    throw FormatError(source, ": expected a token '", hasEnd ? "<unk>" : "</s>", "', found none.");
  }
  std::map<std::string_view, std::size_t> pieces;
  for (std::size_t i = 0; i < model.tokens.size(); ++i)
  {
    pieces.emplace(model.tokens[i], i);
  }
  SentencePieceTable table = model;
  for (const auto& [piece, i] : pieces)
  {
    const bool isText = model.types.empty() ||
                        model.types[i] == static_cast<std::int32_t>(TokenType::Normal) ||
                        model.types[i] == static_cast<std::int32_t>(TokenType::UserDefined);
    if (isText && !vocabulary->IdOf(piece))
    {
      ThrowIf<FormatError>(model.kind != SentencePieceKind::Unigram, source,
        ": expected all pieces of the model, found no '", piece, "'.");
      table.unnumbered.emplace_back(piece, model.scores[i]);
    }
  }
  table.tokens.clear();
  table.scores.clear();
  table.types.clear();
  for (std::int64_t id = 0; id < vocabulary->Size(); ++id)
  {
    const std::string* token = vocabulary->TokenOf(id);
    if (token == nullptr)
    {
      throw FormatError(source, ": expected a token of each id below ", vocabulary->Size(),
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

Tokenizer ReadMarianTokenizer(
  const std::filesystem::path& folder, const char* model, const char* vocabularyFile)
{
  const std::string source = (folder / model).string();
  SentencePieceTable table =
    WithIdsOf(folder / vocabularyFile, ParseSentencePieceModel(ReadFile(source), source));
  table.textEnd = { std::find(table.tokens.begin(), table.tokens.end(), "</s>") -
                    table.tokens.begin() };
  return MakeSentencePieceTokenizer(table, source);
}

}
