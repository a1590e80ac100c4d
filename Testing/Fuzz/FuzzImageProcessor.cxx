#include "FuzzParts.h"
#include "Preprocessing/PreprocessPicture.h"
#include "Weights/ImageProcessor.h"

#include <algorithm>
#include <cmath>

using namespace atlas;

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
  if (std::max({ processor.height, processor.width, processor.shortestEdge, processor.cropHeight,
        processor.cropWidth }) > largest)
  {
    return 0;
  }
  fuzz::Use(
    [&]
    {
      const std::vector<float> pixels = Preprocess(fuzz::SmallPicture(), processor);
      fuzz::Require(pixels.size() == 3 * 4 * 6, "the pixels of the model");
      fuzz::Require(
        std::none_of(pixels.begin(), pixels.end(), [](float pixel) { return std::isnan(pixel); }),
        "numbers");
    });
  return 0;
}
