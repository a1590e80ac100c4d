#include "TokenizerText.h"

#include <cstdint>

namespace atlas
{

std::string TokenizerText::Text() const
{
  Json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  json["added_tokens"] = this->addedTokens;
  json["normalizer"] = this->normalizer;
  json["pre_tokenizer"] = this->preTokenizer;
  json["post_processor"] = this->postProcessor;
  json["decoder"] = this->decoder;
  json["model"] = this->model;
  return json.dump(1) + "\n";
}

TokenizerText::Json TokenizerText::Vocabulary(const std::vector<std::string>& tokens)
{
  Json vocabulary = Json::object();
  auto& object = vocabulary.get_ref<Json::object_t&>();
  for (const std::string& token : tokens)
  {
    // operator[] would search all that are there.
    object.emplace_back(token, object.size());
  }
  return vocabulary;
}

}
