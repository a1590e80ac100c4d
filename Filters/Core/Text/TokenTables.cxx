#include "TokenTables.h"

#include "Base/Error.h"
#include "Internal/ByteLevelSplits.h"
#include "Internal/CharacterPairModel.h"
#include "Internal/PieceText.h"
#include "Internal/TableParts.h"
#include "Internal/UnigramModel.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

void RequireLength(
  std::size_t found, std::size_t expected, const char* what, const std::string& source)
{
  ThrowIf<FormatError>(found != expected, source, ": expected ", what, " of ", expected,
    " tokens, found ", found, ".");
}

TokenType TypeOf(const TokenTable& table, std::size_t token, const std::string& source)
{
  const std::int32_t type = table.types.empty() ? 1 : table.types[token];
  ThrowIf<FormatError>(type < static_cast<std::int32_t>(TokenType::Normal) ||
                         type > static_cast<std::int32_t>(TokenType::Byte),
    source, ": token ", token, ": expected a type from 1 to 6, found ", type, ".");
  return static_cast<TokenType>(type);
}

/// The tokens with their types, checked.
struct Tokens
{
  std::shared_ptr<Vocabulary> vocabulary = std::make_shared<Vocabulary>();
  std::vector<TokenType> types;

  Tokens(const TokenTable& table, bool arePieces, const std::string& source)
  {
    if (!table.types.empty())
    {
      RequireLength(table.types.size(), table.tokens.size(), "types", source);
    }
    for (std::size_t i = 0; i < table.tokens.size(); ++i)
    {
      const std::string& token = table.tokens[i];
      if (arePieces)
      {
        RequirePiece(token, this->vocabulary->IdOf(token), source);
      }
      else
      {
        RequireUtf8(token, source + ": token " + std::to_string(i));
      }
      this->vocabulary->Add(token, static_cast<std::int64_t>(i), source);
      this->types.push_back(TypeOf(table, i, source));
    }
  }

  std::string_view Text(std::size_t token) const
  {
    return *this->vocabulary->TokenOf(static_cast<std::int64_t>(token));
  }

  std::optional<std::int64_t> First(TokenType type) const
  {
    const auto found = std::find(this->types.begin(), this->types.end(), type);
    return found == this->types.end() ? std::nullopt
                                      : std::optional<std::int64_t>(found - this->types.begin());
  }
};

/// True for the tokens that text can become.
bool IsText(TokenType type)
{
  return type == TokenType::Normal || type == TokenType::UserDefined;
}

float ScoreOf(const SentencePieceTable& table, std::size_t token, const std::string& source)
{
  ThrowIf<FormatError>(!std::isfinite(table.scores[token]), source, ": token ", token,
    ": expected a finite score, found another.");
  return table.scores[token];
}

template<class Piece>
std::vector<Piece> PiecesOf(
  const SentencePieceTable& table, const Tokens& tokens, const std::string& source)
{
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < table.tokens.size(); ++i)
  {
    const float score = ScoreOf(table, i, source);
    if (IsText(tokens.types[i]))
    {
      pieces.push_back({ tokens.Text(i), static_cast<std::int32_t>(i), score,
        tokens.types[i] == TokenType::UserDefined });
    }
  }
  return pieces;
}

/// What happens to text before it is split.
std::vector<TextNormalization> NormalizationsOf(
  const SentencePieceTable& table, const Tokens& tokens, const std::string& source)
{
  std::vector<TextNormalization> normalizations;
  if (table.plainQuotes)
  {
    normalizations.emplace_back(ReplaceText{ RegularExpression(R"(\s+)", source), "", " " });
    normalizations.emplace_back(ReplaceText{ std::nullopt, "``", "\"" });
    normalizations.emplace_back(ReplaceText{ std::nullopt, "''", "\"" });
  }
  if (table.stripAccents)
  {
    normalizations.emplace_back(NormalizationForm::NFKD);
    normalizations.emplace_back(RemoveMarks{});
  }
  if (table.lowerCase)
  {
    normalizations.emplace_back(LowerCase{});
  }
  SentencePieceNormalization own;
  if (!table.characterMap.empty())
  {
    own.characters = std::make_shared<CharacterMap>(table.characterMap, source);
  }
  std::vector<std::pair<std::string_view, std::int32_t>> wholes;
  for (std::size_t i = 0; i < tokens.types.size(); ++i)
  {
    if (tokens.types[i] == TokenType::UserDefined)
    {
      wholes.emplace_back(tokens.Text(i), static_cast<std::int32_t>(i));
    }
  }
  if (!wholes.empty())
  {
    own.wholes = std::make_shared<PieceTrie>(std::move(wholes));
  }
  own.addPrefixSpace = table.addPrefixSpace;
  own.removeExtraSpaces = table.removeExtraSpaces;
  own.escapeSpaces = table.escapeSpaces;
  normalizations.emplace_back(std::move(own));
  return normalizations;
}

std::vector<Merge> MergesOf(const BytePairTable& table, const std::string& source)
{
  std::vector<Merge> merges;
  merges.reserve(table.merges.size());
  for (const std::string& merge : table.merges)
  {
    merges.push_back(ParseMerge(merge, source + ": merge " + std::to_string(merges.size())));
  }
  return merges;
}

/// Adds the special tokens around texts and those beyond the vocabulary.
void AddSpecialTokens(TokenizerParts& parts, const TokenTable& table)
{
  for (const auto& [token, id] : table.addedTokens)
  {
    parts.Add({ token, id });
  }
  for (const std::vector<std::int64_t>* ids : { &table.textBegin, &table.textEnd })
  {
    for (const std::int64_t id : *ids)
    {
      ThrowIf<FormatError>(parts.TokenOf(id) == nullptr, parts.source,
        ": expected special tokens of the vocabulary, found id ", id, ".");
    }
  }
  parts.Enclose(table.textBegin, table.textEnd);
}

/// Likewise, with the tokens of two types, which are matched where a text spells them.
void AddSpelledTokens(TokenizerParts& parts, const Tokens& tokens, const TokenTable& table,
  TokenType other = TokenType::UserDefined)
{
  for (std::size_t i = 0; i < tokens.types.size(); ++i)
  {
    if (tokens.types[i] == TokenType::Control || tokens.types[i] == other)
    {
      parts.Add({ std::string(tokens.Text(i)), static_cast<std::int64_t>(i) });
    }
  }
  AddSpecialTokens(parts, table);
}

}

std::shared_ptr<TokenizerParts> MakeSentencePieceParts(
  const SentencePieceTable& table, const std::string& source)
{
  RequireLength(table.scores.size(), table.tokens.size(), "scores", source);
  const Tokens tokens(table, true, source);
  const auto parts = std::make_shared<TokenizerParts>(source);
  parts->normalizations = NormalizationsOf(table, tokens, source);
  parts->unknown = tokens.First(TokenType::Unknown);
  parts->hasPrefixSpace = table.addPrefixSpace;
  const bool byteFallback = tokens.First(TokenType::Byte).has_value();
  if (table.kind == SentencePieceKind::Unigram)
  {
    const UnigramModel::Options options = { parts->unknown, byteFallback, table.singlePrecision };
    auto pieces = PiecesOf<UnigramModel::Piece>(table, tokens, source);
    if (const std::optional<std::int64_t> unknown = parts->unknown)
    {
      for (const auto& [text, score] : table.unnumbered)
      {
        pieces.push_back({ text, static_cast<std::int32_t>(*unknown), score });
      }
    }
    parts->model = std::make_shared<UnigramModel>(tokens.vocabulary, pieces, options, source);
  }
  else
  {
    CharacterPairModel::Options options;
    options.unknown = parts->unknown;
    options.byteFallback = byteFallback;
    const auto model = std::make_shared<CharacterPairModel>(tokens.vocabulary,
      PiecesOf<CharacterPairModel::Piece>(table, tokens, source), options, source);
    if (model->WordsAreSeparate())
    {
      parts->preTokenizations.emplace_back(SplitWords{});
    }
    parts->model = model;
  }
  if (table.spellsControls)
  {
    AddSpelledTokens(*parts, tokens, table, TokenType::Unknown); // user-defined ones are wholes
  }
  else
  {
    AddSpecialTokens(*parts, table);
  }
  return parts;
}

Tokenizer MakeSentencePieceTokenizer(const SentencePieceTable& table, const std::string& source)
{
  return Tokenizer(MakeSentencePieceParts(table, source));
}

Tokenizer MakeBytePairTokenizer(const BytePairTable& table, const std::string& source)
{
  const ByteLevelSplit split = MakeByteLevelSplit(table.split, source);
  const Tokens tokens(table, false, source);
  const auto parts = MakeByteLevelParts(tokens.vocabulary, MergesOf(table, source), split, source);
  AddSpelledTokens(*parts, tokens, table);
  return Tokenizer(parts);
}

Tokenizer MakeCharacterPairTokenizer(const BytePairTable& table, const std::string& source)
{
  const Tokens tokens(table, false, source);
  const auto parts = std::make_shared<TokenizerParts>(source);
  parts->unknown = tokens.First(TokenType::Unknown);
  CharacterPairModel::Options options;
  options.unknown = parts->unknown;
  options.byteFallback = true;
  parts->model = std::make_shared<CharacterPairModel>(
    tokens.vocabulary, MergesOf(table, source), options, source);
  parts->normalizations.emplace_back(ReplaceText{ std::nullopt, " ", std::string(SpaceMark) });
  AddSpelledTokens(*parts, tokens, table);
  return Tokenizer(parts);
}

std::shared_ptr<TokenizerParts> MakeWordPieceParts(std::shared_ptr<const Vocabulary> vocabulary,
  const BertNormalization& normalization, const std::string& unknown, const std::string& source)
{
  auto parts = std::make_shared<TokenizerParts>(source);
  parts->hasSegments = true;
  WordPieceModel::Options options;
  options.unknown = unknown;
  parts->model = std::make_shared<WordPieceModel>(std::move(vocabulary), options, source);
  parts->normalizations.emplace_back(normalization);
  parts->preTokenizations.emplace_back(SplitLikeBert{});
  return parts;
}

Tokenizer MakeWordPieceTokenizer(const WordPieceTable& table, const std::string& source)
{
  const Tokens tokens(table, false, source);
  const BertNormalization normalization = { true, true, table.stripAccents, table.lowerCase };
  const std::string* unknown = tokens.vocabulary->TokenOf(table.unknown);
  const auto parts = MakeWordPieceParts(
    tokens.vocabulary, normalization, unknown != nullptr ? *unknown : "[UNK]", source);
  AddSpelledTokens(*parts, tokens, table);
  if (table.textBegin.size() == 1 && table.textEnd.size() == 1)
  {
    parts->Frame(table.textBegin.front(), table.textEnd.front(), true); // with types of a pair
  }
  return Tokenizer(parts);
}

}
