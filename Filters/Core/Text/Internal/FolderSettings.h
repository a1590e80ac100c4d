#pragma once

// Internal to Core: the settings in the files beside a vocabulary.

#include "JsonNode.h"
#include "TokenizerParts.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace atlas
{

/// Whether tokenizer_config.json decides the normalization of this class of transformers.
bool IsBert(const std::string& kind);

/// The settings of a tokenizer in the files beside its vocabulary.
class FolderSettings
{
public:
  explicit FolderSettings(std::filesystem::path folder);

  JsonNode At(const std::string& key) const;

  /// The name of the tokenizer's class without Tokenizer and Fast: "GPT2", "T5"; that of
  /// config.json, or else by its model_type, if tokenizer_config.json does not name one; empty if
  /// neither does.
  std::string Kind() const;

  [[noreturn]] void FailKind(const std::string& expected) const;

  /// A special token, "<s>" or {"content": "<s>", ...}; `otherwise` if it is not given.
  std::string Special(const std::string& key, const std::string& otherwise) const;

  /// The tokens that are named beside a vocabulary, in the order in which transformers adds them;
  /// those without an id have -1. added_tokens.json counts if tokenizer_config.json lists none.
  /// `normalizes`: whether its tokens that are not special are matched in normalized text.
  std::vector<AddedToken> AddedTokens(bool normalizes) const;

  /// Writes into a tokenizer.json what some classes of transformers take from
  /// tokenizer_config.json instead, or else from their own defaults.
  void Override(nlohmann::json& tokenizer) const;

  /// Whether the class of transformers 5 makes its own normalizer and pre-tokenizer, whatever a
  /// tokenizer.json says.
  bool HasOwnSteps() const;

  /// How these steps, or the language of texts, differ from those of a tokenizer.json that Override
  /// was applied to: sentences, without the name of the file.
  std::vector<std::string> Differences(const nlohmann::json& tokenizer) const;

private:
  /// The name of the class that makes its own steps; empty if it takes those of the file.
  std::string OwnClass() const;

  /// Gives a tokenizer.json of LlamaTokenizer the steps of this class.
  void OverrideLlama(nlohmann::json& tokenizer) const;

  std::filesystem::path Folder;
  std::string Source;
  nlohmann::json Value;
  std::vector<std::string> Keys;      ///< in the order of the file, which decides ids
  std::vector<std::string> ExtraKeys; ///< likewise, of extra_special_tokens

  /// Reads the order of keys, which json does not keep.
  void ReadOrder(const std::filesystem::path& path);

  /// The special tokens that are named, without ids: those of all models, then those of some, then
  /// further ones.
  std::vector<AddedToken> SpecialTokens() const;

  static std::int64_t ParseId(const JsonNode& node, const std::string& text);
};

/// Adds the tokens that the files beside a vocabulary name, but those that the tokenizer has
/// already. `isWhole`: it is of a tokenizer.json, in which ids are decided; new ones follow.
void AddTokens(TokenizerParts& parts, const FolderSettings& settings, bool isWhole = false);

}
