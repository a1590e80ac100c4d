#include "Preprocessing/RecordPictures.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "PictureBytes.h"
#include "Preprocessing/PictureTokens.h"
#include "Preprocessing/PreprocessPicture.h"
#include "Preprocessing/TransformerInput.h"
#include "Preprocessing/VisionPixels.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "VisionModels.h"
#include "Weights/ImageProcessor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// A colored rectangle, in pixels of its picture.
struct Region
{
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

constexpr int Dark = 10;
constexpr int Bright = 240;

Picture PictureOf(std::int64_t width, std::int64_t height, const Region& region)
{
  Picture picture{ height, width, 255, {} };
  for (std::int64_t y = 0; y < height; ++y)
  {
    for (std::int64_t x = 0; x < width; ++x)
    {
      const auto column = static_cast<double>(x);
      const auto row = static_cast<double>(y);
      const bool isIn =
        column >= region.left && column < region.right && row >= region.top && row < region.bottom;
      picture.pixels.push_back(static_cast<std::uint16_t>(isIn ? Bright : Dark));
      picture.pixels.push_back(30);
      picture.pixels.push_back(static_cast<std::uint16_t>(isIn ? 200 : 60));
    }
  }
  return picture;
}

/// A token: entry, row and column.
using Place = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

/// How an original picture lies in an entry: resized to a size, from whose top left `left` and
/// `top` pixels are cut off.
struct Placement
{
  double width = 0;
  double height = 0;
  double left = 0;
  double top = 0;
};

/// One length of a region in an entry. Filters blur an edge, so tokens near it are told apart only
/// if it is far enough from their sides.
struct Extent
{
  double begin = 0;
  double end = 0;
  double margin = 0;
  bool isClear = true;
};

Extent Scaled(double begin, double end, double length, double scaled, double cut, double entry,
  std::int64_t token)
{
  const double scale = scaled / length;
  Extent extent = { begin * scale - cut, end * scale - cut, 1 + 0.7 * std::max(scale, 1.0) };
  extent.isClear = extent.end - extent.begin > 4 * std::max(scale, 1.0) + 2;
  const auto side = static_cast<double>(token);
  const auto clear = [&](double edge, bool isBorder)
  {
    const bool isInside = edge > -extent.margin && edge < entry + extent.margin;
    return isBorder || !isInside ||
           std::abs(edge - std::round(edge / side) * side) >= extent.margin;
  };
  // The end of the picture is no edge unless it is padded.
  extent.isClear = extent.isClear && clear(extent.begin, begin == 0 && cut >= 0) &&
                   clear(extent.end, end == length && scaled - cut >= entry);
  return extent;
}

/// The tokens of an entry that a region covers, or nothing if that is not clear.
bool FindTokens(const Region& region, const Picture& picture, const Placement& placement,
  std::int64_t entry, const PictureContent& content, std::int64_t token, std::set<Place>& tokens)
{
  const Extent x = Scaled(region.left, region.right, static_cast<double>(picture.width),
    placement.width, placement.left, content.width, token);
  const Extent y = Scaled(region.top, region.bottom, static_cast<double>(picture.height),
    placement.height, placement.top, content.height, token);
  if (!x.isClear || !y.isClear)
  {
    return false;
  }
  const auto covers = [token](const Extent& extent, std::int64_t index)
  {
    const auto begin = static_cast<double>(index * token);
    const auto end = static_cast<double>((index + 1) * token);
    return std::min(extent.end, end) - std::max(extent.begin, begin) >= extent.margin;
  };
  for (std::int64_t row = 0; row < content.height / token; ++row)
  {
    for (std::int64_t column = 0; column < content.width / token; ++column)
    {
      if (covers(y, row) && covers(x, column))
      {
        tokens.insert({ entry, row, column });
      }
    }
  }
  return true;
}

/// The preprocessing of a model, with its image tokens in a text, and what a recording says of
/// them.
struct SeenInput
{
  TransformerConfig config;
  VisionProcessor processor;
  TransformerInput input;
  std::vector<ImageToken> tokens;
  Recording recording;
  std::int64_t token = 0; ///< pixels of the side of one

  SeenInput(const TransformerConfig& model, const VisionProcessor& settings, VisionPixels&& pixels)
    : config(model)
    , processor(settings)
    , token(model.vision->merge * model.vision->encoder->patchHeight)
  {
    this->input.pixels = std::move(pixels.pixels);
    this->input.images = pixels.images;
    this->input.tiles = std::move(pixels.tiles);
    this->input.extents = std::move(pixels.extents);
    std::vector<std::int64_t> text = { 5 };
    const bool isVideo = !this->input.extents.empty() && this->input.extents[0].isVideo;
    text.insert(text.end(), this->CountTokens(),
      isVideo ? model.vision->videoToken : model.vision->imageToken);
    text.push_back(6);
    this->input.tokens = { text };
    this->tokens = ImageTokens(this->config, this->input);
    RecordedTokens& recorded = this->recording.tokens;
    recorded.sequence.assign(text.size(), 0);
    this->recording.sequenceOffsets = { 0, static_cast<std::int64_t>(text.size()) };
    DescribePictures(this->config, this->input, this->tokens, this->recording);
  }

  std::int64_t CountTokens() const
  {
    const TransformerConfig& encoder = *this->config.vision->encoder;
    if (!encoder.ReadsAnySize())
    {
      return this->input.images * (encoder.imageHeight / this->token) *
             (encoder.imageWidth / this->token);
    }
    const std::int64_t patches = encoder.channels * encoder.patchFrames * encoder.patchHeight *
                                 encoder.patchWidth * this->config.vision->merge *
                                 this->config.vision->merge;
    return static_cast<std::int64_t>(this->input.pixels.size()) / patches;
  }

  /// The input of the encoder at a pixel of a token, of the first frame, as red from 0 to 255.
  double Red(std::size_t number, std::int64_t y, std::int64_t x) const
  {
    const TransformerConfig& encoder = *this->config.vision->encoder;
    const ImageToken& place = this->tokens[number];
    const std::int64_t patch = encoder.patchHeight;
    std::int64_t index = 0;
    if (encoder.ReadsAnySize())
    {
      const std::int64_t merge = this->config.vision->merge;
      const std::int64_t patchNumber =
        static_cast<std::int64_t>(number) * merge * merge + y / patch * merge + x / patch;
      index = patchNumber * 3 * encoder.patchFrames * patch * patch + y % patch * patch + x % patch;
    }
    else
    {
      index = place.image * 3 * encoder.imageHeight * encoder.imageWidth +
              (place.row * this->token + y) * encoder.imageWidth + place.column * this->token + x;
    }
    return 255 * Brightness(this->processor.image, 0, this->input.pixels[index]);
  }

  /// The place of a token in the recording.
  Place PlaceOf(std::size_t number) const
  {
    const RecordedTokens& recorded = this->recording.tokens;
    const std::int64_t row = this->tokens[number].position;
    return { recorded.picture[row], recorded.row[row], recorded.column[row] };
  }

  /// The tokens with a bright pixel.
  std::set<Place> BrightTokens() const
  {
    std::set<Place> bright;
    for (std::size_t i = 0; i < this->tokens.size(); ++i)
    {
      for (std::int64_t pixel = 0; pixel < this->token * this->token; ++pixel)
      {
        if (2 * this->Red(i, pixel / this->token, pixel % this->token) > Dark + Bright)
        {
          bright.insert(this->PlaceOf(i));
        }
      }
    }
    return bright;
  }

  /// Checks that the recorded pictures, colors and contents are those that the tokens stand for.
  void Check() const
  {
    const RecordedPictures pictures =
      RecordPictures(this->input, this->config, this->processor, {}, true);
    const RecordedPictures& described = this->recording.pictures;
    ASSERT_EQ(pictures.count, described.count);
    for (std::int64_t i = 0; i < pictures.count; ++i)
    {
      const PictureContent& found = pictures.contents[i];
      const PictureContent& expected = described.contents[i];
      ASSERT_EQ(std::tie(found.picture, found.frame, found.frames, found.isSmall, found.height,
                  found.width),
        std::tie(expected.picture, expected.frame, expected.frames, expected.isSmall,
          expected.height, expected.width));
    }
    const SharedMatrix colors = SquareColors(
      this->input, this->config, this->processor, this->recording.tokens, this->token, this->token);
    EXPECT_EQ(colors.Row(0)[0], -1);
    for (std::size_t i = 0; i < this->tokens.size(); ++i)
    {
      const auto [entry, row, column] = this->PlaceOf(i);
      const auto pixels = FindPicture(pictures, entry);
      double sum = 0;
      for (std::int64_t pixel = 0; pixel < this->token * this->token; ++pixel)
      {
        const std::int64_t y = pixel / this->token;
        const std::int64_t x = pixel % this->token;
        const double red = this->Red(i, y, x);
        const std::int64_t place =
          (row * this->token + y) * pictures.contents[entry].width + column * this->token + x;
        ASSERT_NEAR(pixels.get()[3 * place], red, 0.501);
        sum += red;
      }
      ASSERT_NEAR(colors.Row(this->tokens[i].position)[0],
        sum / static_cast<double>(this->token * this->token) / 255, 1e-6);
    }
  }
};

/// Cases of one kind of preprocessing, random but the same in each run.
class Cases
{
public:
  explicit Cases(const std::string& name)
    : Random(name.size())
  {
  }

  std::int64_t Integer(std::int64_t least, std::int64_t most)
  {
    return least + static_cast<std::int64_t>(this->Random() % (most - least + 1));
  }

  Region MakeRegion(std::int64_t width, std::int64_t height)
  {
    const auto [left, right] = this->Interval(width);
    const auto [top, bottom] = this->Interval(height);
    return { left, top, right, bottom };
  }

private:
  std::mt19937_64 Random;

  std::pair<double, double> Interval(std::int64_t length)
  {
    const std::int64_t begin = this->Integer(0, length - 4);
    const std::int64_t end = this->Integer(begin + 4, length);
    return { static_cast<double>(begin), static_cast<double>(end) };
  }
};

constexpr int CaseCount = 200;

/// Where a picture lies in an entry that shows all of it.
Placement AllOf(const PictureContent& content)
{
  return { static_cast<double>(content.width), static_cast<double>(content.height) };
}

class VisionPictures : public TestWithParam<std::string>
{
protected:
  /// A model, its tokens 16 pixels wide.
  static TransformerConfig Model()
  {
    const std::string& name = GetParam();
    return SeeingModel(name == "llava"          ? SeenSizes{ name, 64, 16, 1, 1 }
                       : name == "llava-siglip" ? SeenSizes{ name, 75, 16, 1, 1 }
                       : name == "llava-padded" ? SeenSizes{ name, 75, 16, 1, 1 }
                       : name.substr(0, 4) == "qwen"
                         ? SeenSizes{ "qwen2_vl", 0, 8, 2, 2 }
                         : SeenSizes{ name.substr(0, name.find('-')), 64, 8, 2, 1 });
  }

  static VisionProcessor Settings(Cases& cases)
  {
    if (IsTiledVideo())
    {
      return ParseVideoProcessor("{}", "test", Model());
    }
    VisionProcessor processor = DefaultVisionProcessor(Model());
    processor.maximumTiles = cases.Integer(1, 9);
    processor.minimumTiles = cases.Integer(1, processor.maximumTiles);
    processor.longestEdge = cases.Integer(40, 256);
    processor.minimumPixels = 64 * cases.Integer(1, 100);
    processor.maximumPixels = processor.minimumPixels + 256 * cases.Integer(1, 100);
    if (GetParam() == "llava-padded")
    {
      processor.padsToSquare = true;
      processor.image.mean = { 0.125, 0.5, 0.5 }; // padding is dark, too
      processor.image.shortestEdge = 0;
      processor.image.crop = false;
    }
    else if (processor.steps == PictureSteps::Whole)
    {
      processor.image.shortestEdge = cases.Integer(processor.image.modelHeight, 90);
    }
    return processor;
  }

  /// That of LLaVA is cut off: its shorter side gets a length, then the middle is kept. Or it is in
  /// the middle of a square that gets the size of the model.
  static Placement PlacementOf(
    const Picture& picture, const VisionProcessor& processor, const PictureContent& content)
  {
    if (processor.steps != PictureSteps::Whole)
    {
      return AllOf(content);
    }
    const auto shorter = static_cast<double>(processor.image.shortestEdge);
    const auto width = static_cast<double>(picture.width);
    const auto height = static_cast<double>(picture.height);
    Placement placement;
    if (processor.padsToSquare)
    {
      const double scale =
        static_cast<double>(processor.image.modelHeight) / std::max(width, height);
      placement.width = width * scale;
      placement.height = height * scale;
      placement.left = -std::floor((std::max(width, height) - width) / 2) * scale;
      placement.top = -std::floor((std::max(width, height) - height) / 2) * scale;
      return placement;
    }
    placement.width = std::floor(width <= height ? shorter : shorter * width / height);
    placement.height = std::floor(width <= height ? shorter * height / width : shorter);
    const auto side = static_cast<double>(processor.image.modelHeight);
    placement.left = std::floor((placement.width - side) / 2);
    placement.top = std::floor((placement.height - side) / 2);
    return placement;
  }

  static bool IsVideo() { return GetParam().find("-film") != std::string::npos; }
  static bool IsTiledVideo() { return IsVideo() && GetParam() != "qwen2_vl-film"; }

  /// Pictures, or a video, with these regions.
  static SeenInput See(const VisionProcessor& processor, std::int64_t width, std::int64_t height,
    const std::vector<Region>& regions)
  {
    std::vector<Picture> frames;
    frames.reserve(regions.size());
    for (const Region& region : regions)
    {
      frames.push_back(PictureOf(width, height, region));
    }
    VisionPixels pixels;
    if (IsVideo())
    {
      AddVideo(frames, 0.5, processor, pixels);
    }
    else
    {
      AddPicture(frames[0], processor, pixels);
    }
    return { Model(), processor, std::move(pixels) };
  }

  /// Draws regions of which it is clear which tokens they cover; returns these, or nothing.
  static std::set<Place> FindRegions(Cases& cases, const SeenInput& sizes, std::int64_t width,
    std::int64_t height, std::vector<Region>& regions)
  {
    const Picture picture{ height, width, 255, {} };
    for (int tries = 0; tries < 500; ++tries)
    {
      for (Region& region : regions)
      {
        region = cases.MakeRegion(width, height);
      }
      std::set<Place> expected;
      bool isClear = true;
      for (std::int64_t entry = 0; entry < sizes.recording.pictures.count; ++entry)
      {
        const PictureContent& content = sizes.recording.pictures.contents[entry];
        const std::int32_t frame = IsTiledVideo() ? content.picture : content.frame;
        isClear = isClear && FindTokens(regions[frame], picture,
                               PlacementOf(picture, sizes.processor, content), entry, content,
                               sizes.token, expected);
      }
      if (isClear && !expected.empty())
      {
        return expected;
      }
    }
    return {};
  }
};

/// The tokens that are bright to the encoder are those whose squares the region covers, by the
/// proportions of the sizes alone; and so are recorded pictures and colors.
TEST_P(VisionPictures, MarkTheRightRegion)
{
  Cases cases(GetParam());
  int count = 0;
  std::size_t marked = 0;
  for (int tries = 0; count < CaseCount && tries < 50 * CaseCount; ++tries)
  {
    const VisionProcessor processor = Settings(cases);
    const std::int64_t width = cases.Integer(20, 240);
    const std::int64_t height = cases.Integer(20, 240);
    std::vector<Region> regions(IsVideo() ? 3 : 1);
    const SeenInput sizes = See(processor, width, height, regions);
    const std::set<Place> expected = FindRegions(cases, sizes, width, height, regions);
    if (expected.empty())
    {
      continue;
    }
    SCOPED_TRACE(std::to_string(count) + ": " + std::to_string(width) + " x " +
                 std::to_string(height) + ", " + ToJson(processor));
    const SeenInput seen = See(processor, width, height, regions);
    ASSERT_EQ(seen.BrightTokens(), expected);
    seen.Check();
    ASSERT_FALSE(HasFailure());
    ++count;
    marked += expected.size();
  }
  EXPECT_EQ(count, CaseCount);
  EXPECT_GT(marked, CaseCount); // some regions cover several tokens
}

INSTANTIATE_TEST_SUITE_P(Preprocessing, VisionPictures,
  ::testing::Values("llava", "llava-siglip", "llava-padded", "internvl", "internvl-film", "smolvlm",
    "smolvlm-film", "qwen2_vl", "qwen2_vl-film"),
  [](const auto& one) { return TestName(one.param); });

/// Pictures are found again in their files, and a changed one is refused.
class FoundPictures : public TestWithParam<std::string>
{
protected:
  bool IsVideo = GetParam() == "film";
  TransformerConfig Model = SeeingModel(SizesOf(IsVideo ? "qwen2_vl" : GetParam()));
  VisionProcessor Processor = DefaultVisionProcessor(Model);
  TemporaryDirectory Folder;

  /// What is recorded of pictures, of which a video has two, each in its file.
  RecordedPictures Record(const std::vector<Picture>& pictures, bool keepsPixels) const
  {
    VisionPixels pixels;
    std::vector<std::string> files;
    for (std::size_t i = 0; i < pictures.size(); ++i)
    {
      files.push_back(this->Write("picture-" + std::to_string(i) + ".png", pictures[i]));
      if (!this->IsVideo)
      {
        AddPicture(pictures[i], this->Processor, pixels);
      }
      else if (i % 2 != 0)
      {
        AddVideo({ pictures[i - 1], pictures[i] }, 1, this->Processor, pixels);
      }
    }
    const SeenInput seen(this->Model, this->Processor, std::move(pixels));
    return RecordPictures(seen.input, this->Model, this->Processor, files, keepsPixels);
  }

  static std::string Refusal(const RecordedPictures& pictures)
  {
    return MessageOf<OptionError>([&] { FindPicture(pictures, 0); });
  }

  std::string Write(const std::string& name, const Picture& picture) const
  {
    std::string rows;
    for (std::int64_t y = 0; y < picture.height; ++y)
    {
      rows += '\0';
      for (std::int64_t i = 0; i < 3 * picture.width; ++i)
      {
        rows += static_cast<char>(picture.pixels[y * 3 * picture.width + i]);
      }
    }
    WriteBytes(
      this->Folder / name, PngFile(static_cast<std::uint32_t>(picture.width),
                             static_cast<std::uint32_t>(picture.height), 8, PngColor::Rgb, rows));
    return this->Folder / name;
  }
};

TEST_P(FoundPictures, AreThoseOfTheirFiles)
{
  this->Processor.padsToSquare = GetParam() == "llava-padded";
  std::vector<Picture> pictures;
  for (int i = 0; i < 4; ++i)
  {
    pictures.push_back(PictureOf(47, 31, { 5.0 + 3 * i, 3, 30, 20.0 + 2 * i }));
  }
  const RecordedPictures kept = this->Record(pictures, true);
  const RecordedPictures named = this->Record(pictures, false);
  EXPECT_NE(kept.pixels, nullptr);
  EXPECT_EQ(named.pixels, nullptr);
  ASSERT_EQ(static_cast<std::int64_t>(named.sources.size()), named.count);
  for (std::int64_t i = 0; i < named.count; ++i)
  {
    const std::int64_t bytes = 3 * named.HeightOf(i) * named.WidthOf(i);
    const auto expected = FindPicture(kept, i);
    const auto found = FindPicture(named, i);
    EXPECT_TRUE(std::equal(found.get(), found.get() + bytes, expected.get())) << i;
  }
  EXPECT_EQ(named.sources.front().file, this->Folder / "picture-0.png");
  EXPECT_EQ(
    named.sources.back().file, this->Folder / (this->IsVideo ? "picture-2.png" : "picture-3.png"));
  for (const Picture& other : { PictureOf(47, 31, { 1, 1, 9, 9 }), PictureOf(20, 61, {}) })
  {
    this->Write("picture-0.png", other);
    EXPECT_THAT(
      Refusal(named), HasSubstr("picture-0.png: the picture has changed: expected pixels of hash " +
                                named.sources[0].hash + ", found "));
  }
  std::filesystem::remove(this->Folder / "picture-0.png");
  EXPECT_THAT(Refusal(named), HasSubstr("picture-0.png: there is no such file"));
  EXPECT_NO_THROW(FindPicture(kept, 0));
}

/// A recording may say anything.
TEST_P(FoundPictures, AreRefusedIfTheRecordingDoesNotFit)
{
  const Picture picture = PictureOf(47, 31, { 5, 3, 30, 20 });
  const RecordedPictures pictures =
    this->Record(std::vector<Picture>(this->IsVideo ? 2 : 1, picture), false);
  EXPECT_NO_THROW(FindPicture(pictures, 0));
  RecordedPictures other = pictures;
  for (const char* processing : { "", "[]", "{}", R"({"model_size": [0, 1]})",
         R"({"model_size": [2147483647, 2147483647], "image_processor_type": "ViTImageProcessor"})",
         R"({"patch_size": 2147483647, "merge_size": 9, "temporal_patch_size": 1, "resample": 0})",
         R"({"patch_size": 5, "merge_size": 3, "temporal_patch_size": 1, "do_resize": false})",
         R"({"model_size": [3, 3], "image_processor_type": "Idefics3ImageProcessor"})",
         R"({"model_size": [3, 3], "image_processor_type": "GotOcr2ImageProcessor"})" })
  {
    other.processing = processing;
    EXPECT_THAT(
      Refusal(other), StartsWith("picture of image 0, which was recorded without its pixels: "))
      << processing;
  }
  other = pictures;
  other.contents[0].width = 3;
  for (const std::int32_t side : { 1, 7, 4097, 16384 })
  {
    other.contents[0].height = side;
    EXPECT_THAT(Refusal(other), HasSubstr("the picture has changed: expected pixels of hash"))
      << side;
  }
}

INSTANTIATE_TEST_SUITE_P(Preprocessing, FoundPictures,
  ::testing::Values(
    "llava", "llava-siglip", "llava-padded", "internvl", "smolvlm", "qwen2_vl", "film"),
  [](const auto& one) { return TestName(one.param); });

/// Neither pixels nor files: what the pictures show is still known.
TEST(VisionPicturesAlone, HaveContentsWithoutFiles)
{
  const TransformerConfig model = SeeingModel(SizesOf("internvl"));
  const VisionProcessor processor = DefaultVisionProcessor(model);
  VisionPixels pixels;
  AddPicture(PictureOf(40, 20, {}), processor, pixels);
  const SeenInput seen(model, processor, std::move(pixels));
  const RecordedPictures pictures = RecordPictures(seen.input, model, processor, {}, false);
  EXPECT_EQ(pictures.count, 2);
  EXPECT_EQ(PictureBytes(pictures.contents), 3U * (32 * 16 + 16 * 16));
  EXPECT_THAT(MessageOf<OptionError>([&] { FindPicture(pictures, 1); }),
    HasSubstr("expected the pixels of picture 1, or the file it was read from, found neither"));
}

}
