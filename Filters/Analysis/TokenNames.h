#pragma once

#include "OpenTransformer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace AttentionAtlas
{

/// The texts of the tokens of a model's vocabulary.
class TokenNames
{
public:
  explicit TokenNames(std::shared_ptr<const OpenTransformer> model);

  /// The text of a token, as Tokenizer::Label; its id if the model has no tokenizer or the
  /// tokenizer no such token.
  const std::string& Of(std::int32_t id) const;

private:
  std::shared_ptr<const OpenTransformer> Model; ///< owns the tokenizer
  const atlas::Tokenizer* Tokenizer = nullptr;
  mutable std::map<std::int32_t, std::string> Known;
};

}
