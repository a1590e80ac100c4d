#include "Preprocessing/RecordPictures.h"

#include "Oracle.h"
#include "Weights/TransformerConfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ExpectClose;

namespace
{

/// Images of 2 x 4 pixels with two patches side by side.
TransformerConfig Config()
{
  TransformerConfig config;
  config.channels = 3;
  config.imageHeight = 2;
  config.imageWidth = 4;
  config.patchHeight = 2;
  config.patchWidth = 2;
  return config;
}

/// The input of a model for channels of bytes, one list per channel.
std::vector<float> Input(
  const std::vector<std::vector<double>>& channels, const ImageProcessor& processor)
{
  std::vector<float> pixels;
  for (std::size_t c = 0; c < channels.size(); ++c)
  {
    for (const double byte : channels[c])
    {
      const double value = processor.rescale ? byte * processor.factor : byte;
      pixels.push_back(static_cast<float>(
        processor.normalize ? (value - processor.mean[c % 3]) / processor.deviation[c % 3]
                            : value));
    }
  }
  return pixels;
}

/// The colors of all patches, image by image, of which a row has two.
std::vector<float> Colors(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor)
{
  RecordedTokens tokens;
  const std::size_t images = pixels.size() / (3 * config.imageHeight * config.imageWidth);
  for (std::size_t i = 0; i < 2 * images; ++i)
  {
    tokens.sequence.push_back(static_cast<std::int32_t>(i / 2));
    tokens.row.push_back(0);
    tokens.column.push_back(i % 2);
  }
  const SharedMatrix colors = PatchColors(pixels, config, processor, tokens);
  return { colors.Row(0), colors.Row(colors.rows) };
}

TEST(PatchColors, AreTheMeansOfTheirPixels)
{
  const std::vector<std::vector<double>> image = { { 0, 51, 255, 255, 102, 51, 255, 255 },
    { 255, 255, 0, 0, 255, 255, 0, 51 }, { 51, 51, 102, 102, 51, 51, 102, 102 } };
  std::vector<std::vector<double>> both = image;
  both.insert(both.end(), { image[2], image[0], image[1] });
  const std::vector<double> expected = { 0.2, 1, 0.2, 1, 0.05, 0.4, // patches of the first image
    0.2, 0.2, 1, 0.4, 1, 0.05 };
  ImageProcessor processor;
  ExpectClose("default", Colors(Input(both, processor), Config(), processor), expected, 1e-6);
  processor.mean = { 0.485, 0.456, 0.406 };
  processor.deviation = { 0.229, 0.224, 0.225 };
  ExpectClose("channels", Colors(Input(both, processor), Config(), processor), expected, 1e-6);
  processor.normalize = false;
  processor.factor = 1 / 127.5;
  ExpectClose("factor", Colors(Input(both, processor), Config(), processor), expected, 1e-6);
  processor.rescale = false;
  ExpectClose("bytes", Colors(Input(both, processor), Config(), processor), expected, 1e-6);
}

/// A row below and a column beside the patches change nothing.
TEST(PatchColors, LeaveOutWhatNoPatchCovers)
{
  TransformerConfig config = Config();
  config.imageHeight = 3;
  config.imageWidth = 5;
  const std::vector<double> channel = { 0, 51, 255, 255, 9, 102, 51, 255, 255, 9, 9, 9, 9, 9, 9 };
  const std::vector<double> none(15, 0);
  const ImageProcessor processor;
  ExpectClose("covered",
    Colors(Input({ channel, none, none, none, channel, none }, processor), config, processor),
    { 0.2, 0, 0, 1, 0, 0, 0, 0.2, 0, 0, 1, 0 }, 1e-6);
}

TEST(PatchColors, AreClippedPixelByPixel)
{
  std::vector<float> pixels(24, 3); // 2 after the default normalization
  std::fill_n(pixels.begin(), 2, -3.F);
  const std::vector<float> colors = Colors(pixels, Config(), {});
  EXPECT_THAT(colors, testing::ElementsAre(0.5F, 1, 1, 1, 1, 1));
}

}
