#include "Bigrams.h"

#include "CircuitWeights.h"
#include "Error.h"

#include <array>
#include <string>

namespace atlas
{
namespace
{

constexpr std::array SampleWords = { "the", "of", "in", "to", "he", "she", "his", "her", "Monday",
  "Friday", "one", "two", "New", "York", "said", "was" };

}

std::optional<std::vector<TokenLogit>> FindBigrams(const Transformer& model, bool processes,
  const std::vector<std::int32_t>& tokens, const LargestProductOptions& options)
{
  RequireUnembedding(model);
  if (options.top < 1)
  {
    throw OptionError("Top: expected at least 1, found " + std::to_string(options.top) + ".");
  }
  const ProcessedWeights weights(model, CircuitSteps(processes), options.threads);
  DoubleMatrix rows(static_cast<Eigen::Index>(tokens.size()), model.GetConfig().modelDimension);
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    rows.row(static_cast<Eigen::Index>(i)) = CircuitEmbedding(weights, tokens[i], tokens[i] + 1);
  }
  return LargestProducts(rows,
    { weights.OutputVocabulary(), [&weights](std::int64_t begin, std::int64_t end)
      { return weights.UnembeddingColumns(begin, end); } },
    options);
}

std::vector<std::int32_t> SampleTokens(const Tokenizer* tokenizer, std::int64_t vocabulary)
{
  std::vector<std::int32_t> ids;
  for (const char* word : SampleWords)
  {
    if (tokenizer == nullptr)
    {
      break;
    }
    const Encoding encoding = tokenizer->Encode(std::string(" ") + word, false);
    if (encoding.ids.size() == 1 && encoding.ids[0] < vocabulary)
    {
      ids.push_back(static_cast<std::int32_t>(encoding.ids[0]));
    }
  }
  constexpr std::int64_t count = 8;
  if (ids.size() < count)
  {
    ids.clear();
    for (std::int64_t i = 0; i < count; ++i)
    {
      ids.push_back(static_cast<std::int32_t>(i * (vocabulary - 1) / (count - 1)));
    }
  }
  return ids;
}

}
