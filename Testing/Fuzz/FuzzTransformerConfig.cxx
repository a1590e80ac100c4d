#include "FuzzTarget.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace atlas;

namespace
{

/// Every distance has a bucket, and those beyond the longest one that of the end.
void CheckBuckets(const TransformerConfig& config)
{
  const std::int64_t longest = config.relativeDistance;
  for (std::int64_t distance = -longest - 2; distance <= longest + 2; ++distance)
  {
    const std::int64_t bucket = RelativeBucket(config, distance);
    fuzz::Require(bucket >= 0 && bucket < config.relativeBuckets, "a bucket of each distance");
    const std::int64_t nearest = std::clamp(distance, -longest, longest);
    fuzz::Require(bucket == RelativeBucket(config, nearest), "one bucket beyond the longest");
  }
}

}

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
  for (const TransformerConfig* stack : { &std::as_const(config), config.encoder.get() })
  {
    if (stack != nullptr && stack->position == PositionKind::Relative)
    {
      CheckBuckets(*stack);
    }
  }
  if (config.vision != nullptr)
  {
    const TransformerConfig& encoder = *config.vision->encoder;
    fuzz::Require(encoder.ReadsAnySize() || config.vision->averages ||
                    encoder.PatchRows() % config.vision->merge == 0,
      "tokens that fill an image");
    fuzz::Require(config.vision->layersRead >= 0 && config.vision->layersRead <= encoder.layers,
      "layers that are read");
    for (const std::int64_t layer : config.vision->deepLayers)
    {
      fuzz::Require(layer > 0 && layer <= encoder.layers, "layers that are read, too");
    }
    if (encoder.position == PositionKind::RotaryOfPatches && encoder.headDimension <= largest)
    {
      RotaryFrequencies(encoder);
    }
  }
  fuzz::Require(!std::isnan(config.ScoreScale(config.layers - 1)), "a scale of scores");
  fuzz::Require(!fuzz::Read([&] { Transformer(config, WeightFiles({}, fuzz::Source)); }),
    "that weights are missing");
  return 0;
}
