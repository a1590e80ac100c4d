#include "FuzzTarget.h"
#include "ImageProcessor.h"

#include <algorithm>
#include <cmath>

using namespace atlas;

namespace
{

/// A picture that is no square.
Picture SmallPicture()
{
  Picture picture;
  picture.height = 5;
  picture.width = 3;
  for (std::uint16_t i = 0; i < 45; ++i)
  {
    picture.pixels.push_back(static_cast<std::uint16_t>(5 * i));
  }
  return picture;
}

}

/// The reader of preprocessor_config.json, and a picture that goes through its steps.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  TransformerConfig config;
  config.architecture = "vit";
  config.channels = 3;
  config.imageHeight = 4;
  config.imageWidth = 6;
  ImageProcessor processor;
  const auto parse = [&]
  { processor = ParseImageProcessor(fuzz::Text(data, size), fuzz::Source, config); };
  if (!fuzz::Read(parse))
  {
    return 0;
  }
  constexpr std::int64_t largest = 300; // a picture of this size is soon made
  for (const std::int64_t side : { processor.height, processor.width, processor.shortestEdge,
         processor.cropHeight, processor.cropWidth })
  {
    if (side > largest)
    {
      return 0;
    }
  }
  fuzz::Use(
    [&]
    {
      const std::vector<float> pixels = Preprocess(SmallPicture(), processor);
      fuzz::Require(pixels.size() == 3 * 4 * 6, "the pixels of the model");
      fuzz::Require(
        std::none_of(pixels.begin(), pixels.end(), [](float pixel) { return std::isnan(pixel); }),
        "numbers");
    });
  return 0;
}
