#include "PatchGrid.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "PreprocessPicture.h"

#include <algorithm>
#include <cmath>

namespace atlas
{

ImageSize GridSize(const ImageSize& picture, const ImageSize& patch, std::int64_t most)
{
  const auto scaled = [](double scale, std::int64_t size, std::int64_t side)
  {
    const auto whole = static_cast<double>(side);
    return std::max(
      side, static_cast<std::int64_t>(std::ceil(static_cast<double>(size) * scale / whole)) * side);
  };
  const auto sizeOf = [&](double scale)
  {
    return ImageSize{ scaled(scale, picture.first, patch.first),
      scaled(scale, picture.second, patch.second) };
  };
  constexpr double least = 1e-5; // these as in the original code
  double low = least / 10;
  double high = 100;
  while (high - low >= least)
  {
    const double middle = (low + high) / 2;
    const ImageSize size = sizeOf(middle);
    const bool fits = size.first / patch.first * (size.second / patch.second) <= most;
    (fits ? low : high) = middle;
  }
  return sizeOf(low);
}

void AddPatches(Picture picture, const TransformerConfig& config, const ImageProcessor& processor,
  TransformerInput& input)
{
  const ImageSize patch = { config.patchHeight, config.patchWidth };
  if (processor.resize)
  {
    const ImageSize size =
      GridSize({ picture.height, picture.width }, patch, processor.maximumPatches);
    picture = Resample(picture, size.first, size.second, processor.filter, processor.maker);
  }
  ThrowIf<OptionError>(picture.height % patch.first != 0 || picture.width % patch.second != 0,
    "expected a picture of whole patches of ", SizeText(patch), " pixels, found ",
    SizeText({ picture.height, picture.width }), ".");
  const std::vector<float> pixels = Normalized(picture, processor);
  PatchExtent extent;
  extent.rows = picture.height / patch.first;
  extent.columns = picture.width / patch.second;
  const std::int64_t plane = picture.height * picture.width;
  for (std::int64_t i = 0; i < extent.Count(); ++i)
  {
    const std::int64_t top = i / extent.columns * patch.first;
    const std::int64_t left = i % extent.columns * patch.second;
    for (std::int64_t y = top; y < top + patch.first; ++y)
    {
      for (std::int64_t x = left; x < left + patch.second; ++x)
      {
        for (std::int64_t channel = 0; channel < static_cast<std::int64_t>(Channels); ++channel)
        {
          input.pixels.push_back(pixels[channel * plane + y * picture.width + x]);
        }
      }
    }
  }
  input.extents.push_back(extent);
}

SharedMatrix ColorsOfPatches(
  const TransformerInput& input, const TransformerConfig& config, const ImageProcessor& processor)
{
  const std::int64_t pixels = config.patchHeight * config.patchWidth;
  const std::int64_t size = pixels * static_cast<std::int64_t>(Channels);
  const std::int64_t patches = static_cast<std::int64_t>(input.pixels.size()) / size;
  SharedMatrix colors = SharedMatrix::Zero(patches, static_cast<std::int64_t>(Channels));
  for (std::int64_t patch = 0; patch < patches; ++patch)
  {
    for (std::size_t channel = 0; channel < Channels; ++channel)
    {
      double sum = 0;
      for (std::int64_t i = 0; i < pixels; ++i)
      {
        const std::size_t at = ToIndex(patch * size) + ToIndex(i) * Channels + channel;
        sum += Brightness(processor, channel, input.pixels[at]);
      }
      colors.Row(patch)[channel] = static_cast<float>(sum / static_cast<double>(pixels));
    }
  }
  return colors;
}

}
