#include "EncodedPrompt.h"

#include "Error.h"
#include "Prompts.h"
#include "Utf8Text.h"

namespace AttentionAtlas
{
namespace
{

void RequireOne(std::size_t lines, const std::string& name, const std::string& what)
{
  if (lines != 1)
  {
    throw atlas::OptionError(
      name + ": expected one line of " + what + ", found " + std::to_string(lines) + ".");
  }
}

}

const atlas::Tokenizer* FindTokenizer(const OpenTransformer& model)
{
  try
  {
    return &model.GetTokenizer();
  }
  catch (const atlas::Error&)
  {
    return nullptr;
  }
}

EncodedPrompt EncodePrompt(const OpenTransformer& model, const std::string& text,
  const std::string& name, bool addSpecialTokens)
{
  const std::vector<std::string> lines = atlas::SplitLines(text);
  RequireOne(lines.size(), name, "text");
  try
  {
    const atlas::Tokenizer& tokenizer = model.GetTokenizer();
    const atlas::Encoding encoding = tokenizer.EncodePrompt(lines.front(), addSpecialTokens);
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
  catch (const atlas::Error& e)
  {
    throw atlas::OptionError(name + ": " + e.what());
  }
  throw atlas::OptionError(name + ": expected a text, found no tokens.");
}

EncodedPrompt ParsePrompt(
  const OpenTransformer& model, const std::string& ids, const std::string& name)
{
  EncodedPrompt prompt;
  prompt.input.tokens = atlas::ParseIntegerLines(ids, name);
  RequireOne(prompt.input.tokens.size(), name, "token ids");
  const atlas::Tokenizer* tokenizer = FindTokenizer(model);
  for (const std::int64_t id : prompt.input.tokens.front())
  {
    const bool isKnown = tokenizer != nullptr && id >= 0 && id < tokenizer->VocabularySize();
    prompt.labels.push_back(isKnown ? tokenizer->Label(id) : std::to_string(id));
  }
  return prompt;
}

}
