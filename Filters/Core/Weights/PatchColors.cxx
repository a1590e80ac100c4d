#include "PatchColors.h"

#include <algorithm>
#include <cstddef>

namespace atlas
{

std::vector<float> PatchColors(const std::vector<float>& pixels, std::int64_t images,
  const TransformerConfig& config, const ImageProcessor& processor)
{
  constexpr std::int64_t channels = 3;
  const std::int64_t columns = config.PatchColumns();
  const std::int64_t patches = config.PatchRows() * columns;
  std::vector<double> sums(images * patches * channels, 0);
  std::size_t pixel = 0;
  for (std::int64_t plane = 0; plane < images * channels; ++plane)
  {
    const std::size_t c = plane % channels;
    for (std::int64_t y = 0; y < config.imageHeight; ++y)
    {
      const std::int64_t row = y / config.patchHeight;
      for (std::int64_t x = 0; x < config.imageWidth; ++x, ++pixel)
      {
        const std::int64_t column = x / config.patchWidth;
        if (row < config.PatchRows() && column < columns)
        {
          const std::int64_t patch = row * columns + column + plane / channels * patches;
          sums[static_cast<std::size_t>(patch * channels) + c] +=
            Brightness(processor, c, pixels[pixel]);
        }
      }
    }
  }
  const auto area = static_cast<double>(config.patchHeight * config.patchWidth);
  std::vector<float> colors(sums.size());
  std::transform(sums.begin(), sums.end(), colors.begin(),
    [area](double sum) { return static_cast<float>(sum / area); });
  return colors;
}

}
