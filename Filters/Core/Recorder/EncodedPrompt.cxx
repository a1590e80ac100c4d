#include "EncodedPrompt.h"

#include "Error.h"
#include "Prompts.h"
#include "Utf8Text.h"

namespace atlas
{
namespace
{

void RequireOne(std::size_t lines, const std::string& name, const std::string& what)
{
  if (lines != 1)
  {
    throw OptionError(
      name + ": expected one line of " + what + ", found " + std::to_string(lines) + ".");
  }
}

}

const Tokenizer* FindTokenizer(const OpenTransformer& model)
{
  try
  {
    return &model.GetTokenizer();
  }
  catch (const Error&)
  {
    return nullptr;
  }
}

EncodedPrompt EncodePrompt(const OpenTransformer& model, const std::string& text,
  const std::string& name, bool addSpecialTokens)
{
  const std::vector<std::string> lines = SplitLines(text);
  RequireOne(lines.size(), name, "text");
  try
  {
    const Tokenizer& tokenizer = model.GetTokenizer();
    const Encoding encoding = tokenizer.EncodePrompt(lines.front(), addSpecialTokens);
    EncodedPrompt prompt;
    prompt.labels = encoding.tokens;
    prompt.input.tokens = { encoding.ids };
    if (tokenizer.HasSegments())
    {
      prompt.input.segments = { { encoding.types.begin(), encoding.types.end() } };
    }
    if (!encoding.ids.empty())
    {
      return prompt;
    }
  }
  catch (const Error& e)
  {
    throw OptionError(name + ": " + e.what());
  }
  throw OptionError(name + ": expected a text, found no tokens.");
}

EncodedPrompt ParsePrompt(
  const OpenTransformer& model, const std::string& ids, const std::string& name)
{
  EncodedPrompt prompt;
  prompt.input.tokens = ParseIntegerLines(ids, name);
  RequireOne(prompt.input.tokens.size(), name, "token ids");
  const Tokenizer* tokenizer = FindTokenizer(model);
  for (const std::int64_t id : prompt.input.tokens.front())
  {
    const bool isKnown = tokenizer != nullptr && id >= 0 && id < tokenizer->VocabularySize();
    prompt.labels.push_back(isKnown ? tokenizer->Label(id) : std::to_string(id));
  }
  return prompt;
}

}
