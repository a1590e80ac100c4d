#pragma once

#include "Files/JsonText.h"

#include <string>
#include <vector>

namespace atlas
{

/// A tokenizer.json of Hugging Face's tokenizers library. Components that are not set are null.
struct TokenizerText
{
  using Json = nlohmann::ordered_json;

  Json addedTokens = Json::array();
  Json normalizer;
  Json preTokenizer;
  Json postProcessor;
  Json decoder;
  Json model;

  std::string Text() const;

  /// The "vocab" of a model: tokens, which differ, and their ids from 0.
  static Json Vocabulary(const std::vector<std::string>& tokens);
};

}
