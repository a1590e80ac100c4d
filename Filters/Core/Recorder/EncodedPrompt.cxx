#include "EncodedPrompt.h"

#include "Error.h"

namespace atlas
{

std::vector<std::string> ReadPrompts(
  const std::string& text, PromptFormat format, const std::string& name)
{
  std::vector<std::string> warnings;
  std::vector<std::string> prompts = ParsePrompts(text, format, name, warnings);
  if (!warnings.empty())
  {
    throw OptionError(warnings.front());
  }
  return prompts;
}

std::string ReadPrompt(const std::string& text, PromptFormat format, const std::string& name)
{
  const std::vector<std::string> prompts = ReadPrompts(text, format, name);
  if (prompts.size() != 1)
  {
    throw OptionError(
      name + ": expected one prompt, found " + std::to_string(prompts.size()) +
      (format == PromptFormat::Lines ? " lines; set PromptFormat to OneText if it has line breaks."
                                     : "."));
  }
  return prompts.front();
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
  try
  {
    const Tokenizer& tokenizer = model.GetTokenizer();
    const Encoding encoding = tokenizer.EncodePrompt(text, addSpecialTokens);
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
  if (prompt.input.tokens.size() != 1)
  {
    throw OptionError(name + ": expected one line of token ids, found " +
                      std::to_string(prompt.input.tokens.size()) + ".");
  }
  const Tokenizer* tokenizer = FindTokenizer(model);
  for (const std::int64_t id : prompt.input.tokens.front())
  {
    const bool isKnown = tokenizer != nullptr && id >= 0 && id < tokenizer->VocabularySize();
    prompt.labels.push_back(isKnown ? tokenizer->Label(id) : std::to_string(id));
  }
  return prompt;
}

}
