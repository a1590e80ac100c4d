#include "Preprocessing/RecordPictures.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/PictureFile.h"
#include "PictureBytes.h"
#include "Preprocessing/PreprocessPicture.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// As in TestImageProcessor: channel c of the pixel in column x and row y is (37 x + 59 y + 83 c +
/// x y (c + 1)) mod 256.
int PatternAt(std::int64_t x, std::int64_t y, std::int64_t c)
{
  return static_cast<int>((37 * x + 59 * y + 83 * c + x * y * (c + 1)) % 256);
}

/// A PNG of RGB pixels of 8 bits.
template<class Value>
std::string Png(std::uint32_t width, std::uint32_t height, const Value& value)
{
  std::string rows;
  for (std::uint32_t y = 0; y < height; ++y)
  {
    rows += '\0';
    for (std::uint32_t i = 0; i < 3 * width; ++i)
    {
      rows += static_cast<char>(value(i / 3, y, i % 3));
    }
  }
  return PngFile(width, height, 8, PngColor::Rgb, rows);
}

TransformerConfig ConfigOf(std::int64_t height, std::int64_t width)
{
  TransformerConfig config;
  config.channels = 3;
  config.imageHeight = height;
  config.imageWidth = width;
  config.patchHeight = 1;
  config.patchWidth = 1;
  return config;
}

std::vector<int> PixelsOf(const RecordedPictures& pictures, std::int64_t image = 0)
{
  const auto pixels = FindPicture(pictures, image);
  return { pixels.get(), pixels.get() + pictures.BytesPerPicture() };
}

/// What the recorder does with one file.
RecordedPictures Record(const std::string& file, const TransformerConfig& config,
  const ImageProcessor& processor, bool keepPixels)
{
  return RecordPictures(
    Preprocess(ReadPicture(file).picture, processor), config, processor, { file }, keepPixels);
}

class RecordPicturesTest : public testing::Test
{
protected:
  TemporaryDirectory Folder;

  std::string Write(const std::string& name, const std::string& bytes) const
  {
    WriteBytes(this->Folder / name, bytes);
    return this->Folder / name;
  }
};

/// The sum of (i + 1) value_i of what Pillow 9.4 makes of the pattern, as in TestImageProcessor.
TEST_F(RecordPicturesTest, AreWhatPillowMakes)
{
  const std::string file = this->Write("pattern.png", Png(61, 47, PatternAt));
  const TransformerConfig config = ConfigOf(30, 24);
  for (const auto& [filter, expected] : { std::pair(ResampleFilter::Nearest, 297932218U),
         { ResampleFilter::Bilinear, 297428839U }, { ResampleFilter::Bicubic, 297494317U } })
  {
    ImageProcessor processor = DefaultImageProcessor(config);
    processor.filter = filter;
    processor.mean = { 0.485, 0.456, 0.406 };
    processor.deviation = { 0.229, 0.224, 0.225 };
    const RecordedPictures kept = Record(file, config, processor, true);
    EXPECT_EQ(kept.count, 1);
    EXPECT_EQ(kept.height, 30);
    EXPECT_EQ(kept.width, 24);
    EXPECT_TRUE(kept.sources.empty());
    const std::vector<int> pixels = PixelsOf(kept);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i)
    {
      sum += (i + 1) * static_cast<std::uint64_t>(pixels[i]);
    }
    EXPECT_EQ(sum, expected);
    // Found again in the file they are the same.
    const RecordedPictures named = Record(file, config, processor, false);
    EXPECT_EQ(named.pixels, nullptr);
    EXPECT_EQ(PixelsOf(named), pixels);
  }
}

/// The crop of a picture that is resized to a shortest edge, of its middle.
TEST_F(RecordPicturesTest, AreCroppedAsTheModelSeesThem)
{
  const std::string file = this->Write("wide.png", Png(12, 6, PatternAt));
  const TransformerConfig config = ConfigOf(4, 4);
  const ImageProcessor processor = ParseImageProcessor(
    R"({"size": {"shortest_edge": 6}, "do_center_crop": true, "crop_size": 4})", "test", config);
  std::vector<int> expected;
  for (int i = 0; i < 48; ++i)
  {
    expected.push_back(PatternAt(4 + i / 3 % 4, 1 + i / 12, i % 3));
  }
  EXPECT_EQ(PixelsOf(Record(file, config, processor, true)), expected);
  EXPECT_EQ(PixelsOf(Record(file, config, processor, false)), expected);
}

/// Patches of 3 x 4 pixels (height x width) leave the last row and two columns of an image unused.
TEST_F(RecordPicturesTest, AreWhatPatchesCover)
{
  const std::string file = this->Write("wide.png", Png(12, 9, PatternAt));
  TransformerConfig config = ConfigOf(7, 10);
  config.patchHeight = 3;
  config.patchWidth = 4;
  const ImageProcessor processor = ParseImageProcessor(
    R"({"do_resize": false, "do_center_crop": true, "image_mean": 0.25})", "test", config);
  std::vector<int> expected;
  for (int i = 0; i < 3 * 6 * 8; ++i)
  {
    expected.push_back(PatternAt(1 + i / 3 % 8, 1 + i / 24, i % 3));
  }
  for (const bool keepsPixels : { true, false })
  {
    const RecordedPictures pictures = Record(file, config, processor, keepsPixels);
    EXPECT_EQ(pictures.count, 1);
    EXPECT_EQ(pictures.height, 6);
    EXPECT_EQ(pictures.width, 8);
    EXPECT_EQ(PixelsOf(pictures), expected);
  }
  EXPECT_EQ(PictureBytes(config, 2), 2U * 3 * 6 * 8);
  // Each image is read from its own place.
  std::vector<float> two = Preprocess(ReadPicture(file).picture, processor);
  two.insert(two.begin(), two.size(), 0.5F);
  EXPECT_EQ(PixelsOf(RecordPictures(two, config, processor, {}, true), 1), expected);
}

TEST_F(RecordPicturesTest, OfGrayPalettesAndDeepPixels)
{
  const TransformerConfig config = ConfigOf(1, 2);
  const ImageProcessor processor = DefaultImageProcessor(config);
  const auto pixels = [&](const std::string& bytes)
  {
    const std::string file = this->Write("picture.png", bytes);
    std::vector<int> kept = PixelsOf(Record(file, config, processor, true));
    EXPECT_EQ(PixelsOf(Record(file, config, processor, false)), kept);
    return kept;
  };
  EXPECT_THAT(pixels(PngFile(2, 1, 8, PngColor::Gray, std::string("\0\x07\xF0", 3))),
    ElementsAre(7, 7, 7, 240, 240, 240));
  EXPECT_THAT(pixels(PngFile(2, 1, 8, PngColor::Palette, std::string("\0\1\0", 3),
                PngChunk("PLTE", "\x01\x02\x03\x0A\x0B\x0C"))),
    ElementsAre(10, 11, 12, 1, 2, 3));
  EXPECT_THAT( // 0x0180 / 257 = 1.49, 0x0181 / 257 = 1.498, 0x0182 / 257 = 1.502
    pixels(PngFile(
      2, 1, 16, PngColor::Rgb, std::string("\0\x01\x80\x01\x81\x01\x82\xFF\xFF\0\0\x80\x80", 13))),
    ElementsAre(1, 1, 2, 255, 0, 128));
}

/// pixel_values that no picture gives: the nearest brightness, and black for what is not a number.
TEST(RecordPictures, ClipPixelValues)
{
  const TransformerConfig config = ConfigOf(1, 2);
  const ImageProcessor processor = DefaultImageProcessor(config); // (v / 255 - 0.5) / 0.5
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = { -1, 1, -5, 7, 0, nan, 1, 1, 1, -1, -1, -1 };
  const RecordedPictures two = RecordPictures(values, config, processor, {}, true);
  EXPECT_EQ(two.count, 2);
  EXPECT_THAT(PixelsOf(two, 0), ElementsAre(0, 0, 128, 255, 255, 0));
  EXPECT_THAT(PixelsOf(two, 1), ElementsAre(255, 255, 0, 255, 0, 0));
  EXPECT_TRUE(RecordPictures(values, config, processor, {}, false).IsEmpty()); // no files
  EXPECT_EQ(PictureBytes(config, 2), 12U);
}

/// 64-bit FNV-1a of the height and width, eight bytes each with the lowest first, and the pixels,
/// by another program.
TEST(RecordPictures, HashesHaveKnownValues)
{
  const std::vector<std::uint8_t> pixels = { 1, 2, 3, 250, 251, 252 };
  EXPECT_EQ(PictureHash(pixels.data(), 1, 2), "ed3062413d44091f");
  EXPECT_EQ(PictureHash(pixels.data(), 2, 1), "616405c233553fbf");
}

TEST_F(RecordPicturesTest, ToldIfChangedOrMissing)
{
  const TransformerConfig config = ConfigOf(5, 4);
  const std::string file = this->Write("picture.png", Png(9, 8, PatternAt));
  const RecordedPictures named = Record(file, config, DefaultImageProcessor(config), false);
  const auto refusal = [&] { return MessageOf<OptionError>([&] { FindPicture(named, 0); }); };
  FindPicture(named, 0);
  this->Write(
    "picture.png", Png(9, 8, [](auto x, auto y, auto c) { return PatternAt(x, y, c) / 2; }));
  EXPECT_THAT(refusal(),
    AllOf(HasSubstr("picture of image 0, which was recorded without its pixels"),
      HasSubstr(
        file + ": the picture has changed: expected pixels of hash " + named.sources[0].hash)));
  this->Write("picture.png", "no picture");
  EXPECT_THAT(refusal(), HasSubstr(file));
  std::filesystem::remove(file);
  EXPECT_THAT(refusal(), HasSubstr(file + ": there is no such file."));
  std::filesystem::create_directory(file);
  EXPECT_THAT(refusal(), HasSubstr(file + ": there is no such file."));
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPicture(named, 1); }),
    HasSubstr("expected a picture from 0 to 0, found 1"));
}

TEST_F(RecordPicturesTest, SurviveWrongProcessing)
{
  const TransformerConfig config = ConfigOf(5, 4);
  const std::string file = this->Write("picture.png", Png(9, 8, PatternAt));
  RecordedPictures named = Record(file, config, DefaultImageProcessor(config), false);
  for (const char* text : { "", "{", "[]", R"({"size": 1e99})", R"({"size": 100000})",
         R"({"do_resize": false})", R"({"resample": 99})" })
  {
    named.processing = text;
    EXPECT_THAT(
      MessageOf<OptionError>([&] { FindPicture(named, 0); }), HasSubstr("picture of image 0"));
  }
}

}
