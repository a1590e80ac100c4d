#pragma once

// Internal to Core: tokenizer.json. TokenizerFile.h is the interface.

#include "JsonNode.h"
#include "Text/Tokenizer.h"
#include "TokenizerParts.h"

namespace atlas
{

/// {token: id}. Throws FormatError.
std::shared_ptr<Vocabulary> ParseVocabulary(const JsonNode& node);

/// A token as tokenizer.json and tokenizer_config.json describe it, without its id. Throws
/// FormatError.
AddedToken ParseAddedToken(const JsonNode& node, std::int64_t id);

/// See ParseTokenizer.
std::shared_ptr<TokenizerParts> ParseTokenizerJson(
  const nlohmann::json& value, const std::string& source);

}
