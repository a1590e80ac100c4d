#include "GeneratedText.h"

#include <tuple>

namespace AttentionAtlas
{

bool GeneratedText::IsCurrent(const std::shared_ptr<const OpenTransformer>& model,
  const atlas::GenerationOptions& options, const atlas::TransformerInput& input) const
{
  const auto choice = [](const atlas::GenerationOptions& o)
  { return std::tie(o.count, o.temperature, o.topK, o.seed, o.ends); };
  return this->Model.lock() == model && choice(this->Options) == choice(options) &&
         this->Input.tokens == input.tokens;
}

bool GeneratedText::Extend(const std::shared_ptr<const OpenTransformer>& model,
  const atlas::GenerationOptions& options, RecorderInput& input)
{
  if (!this->IsCurrent(model, options, input.input))
  {
    auto tokens = atlas::GenerateTokens(model->GetModel(), input.input, options);
    if (!tokens)
    {
      return false;
    }
    this->Tokens = std::move(*tokens);
    this->Model = model;
    this->Input = input.input;
    this->Options = options;
    this->Options.progress = nullptr;
  }
  for (std::size_t s = 0; s < this->Tokens.size(); ++s)
  {
    std::vector<std::int64_t>& sequence = input.input.tokens[s];
    sequence.insert(sequence.end(), this->Tokens[s].begin(), this->Tokens[s].end());
    if (s < input.input.segments.size())
    {
      std::vector<std::int64_t>& segments = input.input.segments[s];
      segments.resize(sequence.size(), segments.empty() ? 0 : segments.back());
    }
  }
  input.labels = LabelTokens(input.input.tokens, *model);
  return true;
}

}
