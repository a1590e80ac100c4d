#include "TokenNames.h"

#include "Base/Error.h"

#include <utility>

namespace AttentionAtlas
{

TokenNames::TokenNames(std::shared_ptr<const atlas::OpenTransformer> model)
  : Model(std::move(model))
{
  try
  {
    this->Tokenizer = &this->Model->GetTokenizer();
  }
  catch (const atlas::Error&)
  {
    this->Tokenizer = nullptr; // tokens are then known by their ids, as in recordings
  }
}

const std::string& TokenNames::Of(std::int32_t id) const
{
  const auto [found, isNew] = this->Known.emplace(id, std::string());
  if (isNew)
  {
    const bool isKnown = this->Tokenizer != nullptr && id < this->Tokenizer->VocabularySize();
    try
    {
      found->second = isKnown ? this->Tokenizer->Label(id) : std::to_string(id);
    }
    catch (const atlas::OptionError&)
    {
      found->second = std::to_string(id); // a gap in the vocabulary
    }
  }
  return found->second;
}

std::vector<std::int32_t> TokenNames::Find(
  const std::vector<std::string>& entries, const std::string& source) const
{
  return entries.empty() ? std::vector<std::int32_t>()
                         : this->Model->GetTokenFinder().FindAll(entries, source);
}

}
