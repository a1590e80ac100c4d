#pragma once

#include "OpenTransformer.h"
#include "TransformerInput.h"

#include <string>
#include <vector>

namespace atlas
{

/// One sequence as the input of a model.
struct EncodedPrompt
{
  TransformerInput input;
  std::vector<std::string> labels; ///< the text of each token; its id if it is not known
};

/// Encodes a line as a user types it, see Tokenizer::EncodePrompt. Throws
/// OptionError, which begins with `name`, the property, unless it is one line with at least
/// one token, and if the model has no tokenizer.
EncodedPrompt EncodePrompt(const OpenTransformer& model, const std::string& text,
  const std::string& name, bool addSpecialTokens = true);

/// Same, from token ids separated by spaces or commas.
EncodedPrompt ParsePrompt(
  const OpenTransformer& model, const std::string& ids, const std::string& name);

/// The model's tokenizer, or nullptr if it has none that can be read, as token ids do not need one.
const Tokenizer* FindTokenizer(const OpenTransformer& model);

}
