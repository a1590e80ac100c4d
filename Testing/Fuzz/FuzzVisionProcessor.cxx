#include "FuzzTarget.h"
#include "VisionModels.h"
#include "VisionProcessor.h"

#include <algorithm>
#include <cstdint>
#include <string>

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

/// Whether the small picture is soon made so large.
bool IsQuick(const VisionProcessor& processor)
{
  constexpr std::int64_t largest = 300;
  const ImageProcessor& image = processor.image;
  const auto sides = { image.height, image.width, image.shortestEdge, image.cropHeight,
    image.cropWidth, processor.longestEdge };
  return std::all_of(
           sides.begin(), sides.end(), [](std::int64_t side) { return side <= largest; }) &&
         processor.minimumPixels <= largest * largest;
}

void UsePicture(const VisionProcessor& processor, const TransformerConfig& model)
{
  VisionPixels pixels;
  AddPicture(SmallPicture(), processor, pixels);
  const TransformerConfig& encoder = *model.vision->encoder;
  std::int64_t count = 3 * pixels.images * encoder.imageHeight * encoder.imageWidth;
  for (const PatchExtent& extent : pixels.extents)
  {
    fuzz::Require(extent.rows % model.vision->merge == 0, "whole tokens");
    count += 3 * extent.Count() * encoder.patchFrames * encoder.patchHeight * encoder.patchWidth;
  }
  fuzz::Require(count > 0, "a picture");
  fuzz::Require(static_cast<std::int64_t>(pixels.pixels.size()) == count, "all pixels");
  fuzz::Require(static_cast<std::int64_t>(pixels.tiles.size()) == pixels.images, "all tiles");
}

}

/// The reader of preprocessor_config.json for models of pictures among words, and a picture that
/// goes through its steps; and what a recording keeps of it.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  for (const char* name : { "llava", "internvl", "smolvlm", "qwen2_vl" })
  {
    const TransformerConfig model = test::SeeingModel(test::SizesOf(name));
    VisionProcessor processor;
    const auto parse = [&]
    { processor = ParseVisionProcessor(fuzz::Text(data, size), fuzz::Source, model); };
    if (fuzz::Read(parse))
    {
      const std::string settings = ToJson(processor);
      fuzz::Require(ToJson(ParseVisionProcessor(settings, fuzz::Source)) == settings,
        "the same settings again");
      if (IsQuick(processor))
      {
        fuzz::Use([&] { UsePicture(processor, model); });
      }
    }
  }
  fuzz::Read([&] { ParseVisionProcessor(fuzz::Text(data, size), fuzz::Source); });
  for (const char* name : { "internvl", "smolvlm", "qwen2_vl" })
  {
    const TransformerConfig model = test::SeeingModel(test::SizesOf(name));
    VisionProcessor processor;
    const auto parse = [&]
    { processor = ParseFilmProcessor(fuzz::Text(data, size), fuzz::Source, model); };
    if (fuzz::Read(parse))
    {
      const std::string settings = ToJson(processor);
      fuzz::Require(ToJson(ParseVisionProcessor(settings, fuzz::Source)) == settings,
        "the same settings of films again");
    }
  }
  return 0;
}
