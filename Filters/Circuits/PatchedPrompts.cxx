#include "PatchedPrompts.h"

#include "Base/Error.h"
#include "Run/Interventions.h"
#include "Text/Prompts.h"

#include <utility>

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

void ReadPairs(const OpenTransformer& model, const std::array<std::string, 2>& texts,
  atlas::PromptFormat format, atlas::TransformerInput& prompts, atlas::TransformerInput& sources)
{
  const std::vector<std::string> first = atlas::ReadPrompts(texts[0], format, "Prompt");
  const std::vector<std::string> second = atlas::ReadPrompts(texts[1], format, "PatchFrom");
  atlas::ThrowIf<atlas::OptionError>(first.size() != second.size(),
    "PatchFrom: expected as many prompts as Prompt has, ", first.size(), ", found ", second.size(),
    "; set PromptFormat to OneText if they have line breaks.");
  for (std::size_t i = 0; i < first.size(); ++i)
  {
    EncodedPrompt prompt = EncodePatched(model, first[i], "Prompt");
    EncodedPrompt source = EncodePatched(model, second[i], "PatchFrom");
    atlas::RequireSameLength(prompt.labels, source.labels);
    for (auto [all, one] : { std::pair(&prompts, &prompt), std::pair(&sources, &source) })
    {
      all->tokens.push_back(std::move(one->input.tokens.front()));
      if (!one->input.segments.empty())
      {
        all->segments.push_back(std::move(one->input.segments.front()));
      }
    }
  }
}

std::optional<std::int64_t> FindToken(
  const OpenTransformer& model, const std::string& text, const std::string& name)
{
  return text.empty() ? std::nullopt
                      : std::optional<std::int64_t>(model.GetTokenFinder().Find(text, name));
}

}
