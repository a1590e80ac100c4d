#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recorder/OpenTransformer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// The texts of the tokens of a model's vocabulary.
class ATTENTIONATLASDATA_EXPORT TokenNames
{
public:
  explicit TokenNames(std::shared_ptr<const atlas::OpenTransformer> model);

  /// The text of a token, as Tokenizer::Label; its id if the model has no tokenizer or the
  /// tokenizer no such token.
  const std::string& Of(std::int32_t id) const;

  /// The tokens that a user names by text or id. Throws as atlas::TokenFinder::FindAll.
  std::vector<std::int32_t> Find(
    const std::vector<std::string>& entries, const std::string& source) const;

  /// The model's tokenizer, or nullptr if it has none.
  const atlas::Tokenizer* GetTokenizer() const { return this->Tokenizer; }

private:
  std::shared_ptr<const atlas::OpenTransformer> Model; ///< owns the tokenizer
  const atlas::Tokenizer* Tokenizer = nullptr;
  mutable std::map<std::int32_t, std::string> Known;
};

}
