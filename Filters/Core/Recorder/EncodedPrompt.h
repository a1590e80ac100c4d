#pragma once

#include "Base/Error.h"
#include "OpenTransformer.h"
#include "Preprocessing/TransformerInput.h"
#include "Text/Prompts.h"

#include <string>
#include <vector>

namespace atlas
{

/// What `call` returns. An ErrorType that it throws becomes an OptionError whose message begins
/// with the place.
template<class ErrorType, class Call>
auto AtPlace(const std::string& place, const Call& call)
{
  try
  {
    return call();
  }
  catch (const ErrorType& e)
  {
    throw OptionError(place, ": ", e.what());
  }
}

/// One sequence as the input of a model.
struct EncodedPrompt
{
  TransformerInput input;
  std::vector<std::string> labels; ///< the text of each token; its id if it is not known
};

/// The prompts of the property `name`. Throws as ParsePrompts, and OptionError for what that warns
/// of.
std::vector<std::string> ReadPrompts(
  const std::string& text, PromptFormat format, const std::string& name);

/// The same of a property that has exactly one prompt. Throws OptionError for another number.
std::string ReadPrompt(const std::string& text, PromptFormat format, const std::string& name);

/// Encodes a text as a user types it, see Tokenizer::EncodePrompt. Throws OptionError, which
/// begins with `name`, the property, if it has no token, and if the model has no tokenizer.
EncodedPrompt EncodePrompt(const OpenTransformer& model, const std::string& text,
  const std::string& name, bool addSpecialTokens = true);

/// Same, from token ids separated by spaces or commas, which are one line.
EncodedPrompt ParsePrompt(
  const OpenTransformer& model, const std::string& ids, const std::string& name);

/// The model's tokenizer, or nullptr if it has none that can be read, as token ids do not need one.
const Tokenizer* FindTokenizer(const OpenTransformer& model);

}
