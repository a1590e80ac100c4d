#include "Bigrams.h"

#include "CircuitWeights.h"

#include <array>
#include <string>

namespace atlas
{
namespace
{

constexpr std::array SampleWords = { "the", "of", "in", "to", "he", "she", "his", "her", "Monday",
  "Friday", "one", "two", "New", "York", "said", "was" };

}

std::vector<TokenLogit> FindBigrams(const Transformer& model, bool processes,
  const std::vector<std::int32_t>& tokens, const LargestProductOptions& options)
{
  RequireUnembedding(model);
  RequireTop(options.top);
  const ProcessedWeights weights(model, CircuitSteps(processes), options.threads);
  return LargestProducts(CircuitEmbedding(weights, tokens),
    { weights.OutputVocabulary(), [&weights](std::int64_t begin, std::int64_t end)
      { return CircuitUnembedding(weights, begin, end); } },
    options);
}

std::vector<std::int32_t> SampleTokens(const TokenFinder& vocabulary)
{
  std::vector<std::int32_t> ids;
  for (const char* word : SampleWords)
  {
    if (const auto id = vocabulary.FindExactly(std::string(" ") + word))
    {
      ids.push_back(*id);
    }
  }
  constexpr std::int64_t count = 8;
  if (ids.size() < count)
  {
    ids.clear();
    for (std::int64_t i = 0; i < count; ++i)
    {
      ids.push_back(static_cast<std::int32_t>(i * (vocabulary.VocabularySize() - 1) / (count - 1)));
    }
  }
  return ids;
}

}
