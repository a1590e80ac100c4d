#include "EncodedPrompt.h"

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
  ThrowIf<OptionError>(prompts.size() != 1, name, ": expected one prompt, found ", prompts.size(),
    format == PromptFormat::Lines ? " lines; set PromptFormat to OneText if it has line breaks."
                                  : ".");
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
  const Encoding encoding =
    AtPlace<Error>(name, [&] { return model.GetTokenizer().EncodePrompt(text, addSpecialTokens); });
  ThrowIf<OptionError>(encoding.ids.empty(), name, ": expected a text, found no tokens.");
  EncodedPrompt prompt;
  prompt.labels = encoding.tokens;
  prompt.input.tokens = { encoding.ids };
  if (model.GetTokenizer().HasSegments())
  {
    prompt.input.segments = { { encoding.types.begin(), encoding.types.end() } };
  }
  return prompt;
}

EncodedPrompt ParsePrompt(
  const OpenTransformer& model, const std::string& ids, const std::string& name)
{
  EncodedPrompt prompt;
  prompt.input.tokens = ParseIntegerLines(ids, name);
  ThrowIf<OptionError>(prompt.input.tokens.size() != 1, name,
    ": expected one line of token ids, found ", prompt.input.tokens.size(), ".");
  const Tokenizer* tokenizer = FindTokenizer(model);
  for (const std::int64_t id : prompt.input.tokens.front())
  {
    const bool isKnown = tokenizer != nullptr && id >= 0 && id < tokenizer->VocabularySize();
    prompt.labels.push_back(isKnown ? tokenizer->Label(id) : std::to_string(id));
  }
  return prompt;
}

}
