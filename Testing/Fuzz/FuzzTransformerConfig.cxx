#include "FuzzTarget.h"
#include "Transformer.h"

#include <cmath>

using namespace atlas;

/// The reader of config.json, and what is derived from it.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  TransformerConfig config;
  const bool isRead =
    fuzz::Read([&] { config = ParseTransformerConfig(fuzz::Text(data, size), fuzz::Source); });
  if (!isRead)
  {
    return 0;
  }
  constexpr std::int64_t largest = 1000; // weights of the shapes are there, in a program
  fuzz::Require(config.heads % config.keyHeads == 0, "groups of heads");
  if (config.headDimension <= largest)
  {
    RotaryFrequencies(config);
  }
  if (config.heads <= largest)
  {
    fuzz::Require(
      AlibiSlopes(config.heads).size() == static_cast<std::size_t>(config.heads), "a slope a head");
  }
  fuzz::Require(!std::isnan(config.ScoreScale(config.layers - 1)), "a scale of scores");
  fuzz::Require(!fuzz::Read([&] { Transformer(config, WeightFiles({}, fuzz::Source)); }),
    "that weights are missing");
  return 0;
}
