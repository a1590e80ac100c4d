#pragma once

#include "AttentionAtlasDataModule.h"
#include "OpenTransformer.h"
#include "TransformerInput.h"

#include <string>
#include <vector>

namespace AttentionAtlas
{

/// One sequence as the input of a model.
struct EncodedPrompt
{
  atlas::TransformerInput input;
  std::vector<std::string> labels; ///< the text of each token; its id if it is not known
};

/// Encodes a line as a user types it, see atlas::Tokenizer::EncodePrompt. Throws
/// atlas::OptionError, which begins with `name`, the property, unless it is one line with at least
/// one token, and if the model has no tokenizer.
ATTENTIONATLASDATA_EXPORT EncodedPrompt EncodePrompt(const OpenTransformer& model,
  const std::string& text, const std::string& name, bool addSpecialTokens = true);

/// Same, from token ids separated by spaces or commas.
ATTENTIONATLASDATA_EXPORT EncodedPrompt ParsePrompt(
  const OpenTransformer& model, const std::string& ids, const std::string& name);

/// The model's tokenizer, or nullptr if it has none that can be read, as token ids do not need one.
ATTENTIONATLASDATA_EXPORT const atlas::Tokenizer* FindTokenizer(const OpenTransformer& model);

}
