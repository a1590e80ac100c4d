#include "PatchedPrompts.h"

#include "Base/Error.h"
#include "Text/Prompts.h"

namespace AttentionAtlas
{

using atlas::EncodedPrompt;
using atlas::OpenTransformer;

EncodedPrompt EncodePatched(
  const OpenTransformer& model, const std::string& prompt, const std::string& name)
{
  atlas::ThrowIf<atlas::OptionError>(model.GetModel().GetConfig().input != atlas::InputKind::Tokens,
    name, ": expected a model of texts, found one of images.");
  if (atlas::FindTokenizer(model) != nullptr)
  {
    return atlas::EncodePrompt(model, prompt, name);
  }
  try
  {
    return atlas::ParsePrompt(model, prompt, name);
  }
  catch (const atlas::OptionError& e)
  {
    throw atlas::OptionError(
      std::string(e.what()), " The model has no tokenizer, so prompts are token ids.");
  }
}

EncodedPrompt ReadPatched(const OpenTransformer& model, const std::string& text,
  atlas::PromptFormat format, const char* name)
{
  return EncodePatched(model, atlas::ReadPrompt(text, format, name), name);
}

std::optional<std::int64_t> FindToken(
  const OpenTransformer& model, const std::string& text, const std::string& name)
{
  return text.empty() ? std::nullopt
                      : std::optional<std::int64_t>(model.GetTokenFinder().Find(text, name));
}

}
