#include "FuzzParts.h"
#include "Preprocessing/VisionPixels.h"
#include "VisionModels.h"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace atlas;

namespace
{

using Parser = VisionProcessor (*)(
  std::string_view text, const std::string& source, const TransformerConfig& model);

/// Whether the small picture is soon made so large.
bool IsQuick(const VisionProcessor& processor)
{
  constexpr std::int64_t largest = 300;
  const ImageProcessor& image = processor.image;
  return std::max({ image.height, image.width, image.shortestEdge, image.cropHeight,
           image.cropWidth, processor.longestEdge }) <= largest &&
         processor.minimumPixels <= largest * largest;
}

void UsePicture(const VisionProcessor& processor, const TransformerConfig& model)
{
  VisionPixels pixels;
  AddPicture(fuzz::SmallPicture(), processor, pixels);
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
  const std::string_view text = fuzz::Text(data, size);
  for (const char* name : { "llava", "internvl", "smolvlm", "qwen2_vl" })
  {
    const TransformerConfig model = test::SeeingModel(test::SizesOf(name));
    for (const Parser parse : { Parser{ ParseVisionProcessor }, Parser{ ParseVideoProcessor } })
    {
      VisionProcessor processor;
      const bool isRead = fuzz::Read([&] { processor = parse(text, fuzz::Source, model); });
      if (isRead)
      {
        const std::string settings = ToJson(processor);
        fuzz::Require(ToJson(ParseVisionProcessor(settings, fuzz::Source)) == settings,
          "the same settings again");
      }
      if (isRead && parse != ParseVideoProcessor && IsQuick(processor))
      {
        fuzz::Use([&] { UsePicture(processor, model); });
      }
    }
  }
  fuzz::Read([&] { ParseVisionProcessor(text, fuzz::Source); });
  return 0;
}
