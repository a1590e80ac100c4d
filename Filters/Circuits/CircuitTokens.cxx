#include "CircuitTokens.h"

#include "Bigrams.h"
#include "Task.h"

namespace AttentionAtlas
{

std::vector<std::int32_t> ChosenTokens(
  const atlas::OpenTransformer& model, const std::vector<std::string>& entries)
{
  const atlas::TokenFinder& finder = model.GetTokenFinder();
  const std::vector<std::int32_t> tokens = finder.FindAll(entries, "Tokens");
  return tokens.empty() ? atlas::SampleTokens(finder) : tokens;
}

atlas::LargestProductOptions LargestOptions(const Task& task, int top)
{
  atlas::LargestProductOptions options;
  options.top = top;
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  return options;
}

}
