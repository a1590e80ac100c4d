#include "Preprocessing/VisionPixels.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "VisionModels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

std::vector<float> FloatsOf(const TensorView& tensor)
{
  std::vector<float> values(tensor.Count());
  tensor.ToFloat(0, values.size(), values.data());
  return values;
}

/// A model of the oracle, and what the original's image processor makes of its pictures.
struct SeenOracle
{
  std::filesystem::path folder;
  ModelOracle expected;
  TransformerConfig config;

  explicit SeenOracle(const std::string& name)
    : folder(ModelsOracle("transformers/" + name))
    , expected(this->folder / "expected.safetensors")
    , config(SeeingModel(SizesOf(name)))
  {
  }

  Picture ReadPicture(int number) const
  {
    return atlas::ReadPicture((this->folder / ("picture-" + std::to_string(number) + ".png")))
      .picture;
  }

  VisionPixels PixelsOf(const std::vector<int>& pictures) const
  {
    const VisionProcessor processor = ReadVisionProcessor(this->folder, this->config);
    VisionPixels pixels;
    for (const int picture : pictures)
    {
      AddPicture(this->ReadPicture(picture), processor, pixels);
    }
    return pixels;
  }
};

void ExpectPixels(const std::vector<float>& found, const std::vector<float>& expected)
{
  ASSERT_EQ(found.size(), expected.size());
  float largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    largest = std::max(largest, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(largest, 1e-6F);
}

void ExpectTiles(const std::vector<TilePlace>& tiles, const std::vector<std::int64_t>& expected)
{
  ASSERT_EQ(5 * tiles.size(), expected.size());
  for (std::size_t i = 0; i < tiles.size(); ++i)
  {
    const std::int64_t* row = expected.data() + 5 * i;
    EXPECT_EQ(tiles[i], (TilePlace{ row[0], row[1], row[2], row[3], row[4] })) << i;
  }
}

void ExpectExtents(
  const std::vector<PatchExtent>& extents, const std::vector<std::int64_t>& expected)
{
  ASSERT_EQ(3 * extents.size(), expected.size());
  for (std::size_t i = 0; i < extents.size(); ++i)
  {
    EXPECT_EQ(extents[i].frames, expected[3 * i]);
    EXPECT_EQ(extents[i].rows, expected[3 * i + 1]);
    EXPECT_EQ(extents[i].columns, expected[3 * i + 2]);
  }
}

TEST(VisionProcessor, CropsLikeTheOriginalOfLlava)
{
  const SeenOracle oracle("llava");
  const VisionPixels pixels = oracle.PixelsOf({ 0, 1 });
  EXPECT_EQ(pixels.images, 2);
  EXPECT_THAT(pixels.tiles, ElementsAre(TilePlace{ 0 }, TilePlace{ 1 }));
  ExpectPixels(pixels.pixels, FloatsOf(oracle.expected.Get("pixel_values")));
}

/// A wide and a tall picture become squares of the mean color.
TEST(VisionProcessor, PadsLikeTheOriginalOfLlava)
{
  const SeenOracle oracle("llava-siglip");
  EXPECT_TRUE(ReadVisionProcessor(oracle.folder, oracle.config).padsToSquare);
  const VisionPixels pixels = oracle.PixelsOf({ 0, 1 });
  EXPECT_EQ(pixels.images, 2);
  ExpectPixels(pixels.pixels, FloatsOf(oracle.expected.Get("pixel_values")));
}

TEST(VisionProcessor, CutsTilesLikeTheOriginalOfInternVL)
{
  const SeenOracle oracle("internvl");
  const VisionPixels pixels = oracle.PixelsOf({ 0, 1 });
  EXPECT_EQ(pixels.images, 4);
  ExpectTiles(pixels.tiles, oracle.expected.Get("tiles").ToInteger());
  ExpectPixels(pixels.pixels, FloatsOf(oracle.expected.Get("pixel_values")));
}

TEST(VisionProcessor, SplitsLikeTheOriginalOfSmolVLM)
{
  const SeenOracle oracle("smolvlm");
  const VisionPixels pixels = oracle.PixelsOf({ 0 });
  EXPECT_EQ(pixels.images, 3);
  ExpectTiles(pixels.tiles, oracle.expected.Get("tiles").ToInteger());
  std::vector<float> expected = FloatsOf(oracle.expected.Get("pixel_values"));
  EXPECT_TRUE(std::all_of(expected.begin() + static_cast<std::ptrdiff_t>(expected.size() / 2),
    expected.end(), [](float value) { return value == 0; })); // of the sequence without a picture
  expected.resize(expected.size() / 2);
  ExpectPixels(pixels.pixels, expected);
}

TEST(VisionProcessor, OrdersPatchesLikeTheOriginalOfQwen)
{
  for (const char* name : { "qwen2_vl", "qwen2_5_vl" })
  {
    SCOPED_TRACE(name);
    const SeenOracle oracle(name);
    const VisionPixels pixels =
      oracle.PixelsOf(name == std::string("qwen2_vl") ? std::vector{ 0 } : std::vector{ 0, 1 });
    EXPECT_EQ(pixels.images, 0);
    EXPECT_TRUE(pixels.tiles.empty());
    ExpectExtents(pixels.extents, oracle.expected.Get("image_grid_thw").ToInteger());
    ExpectPixels(pixels.pixels, FloatsOf(oracle.expected.Get("pixel_values")));
  }
}

/// Three frames are two pairs: the last one is repeated.
TEST(VisionProcessor, PairsTheFramesOfAVideo)
{
  const SeenOracle oracle("qwen2_vl");
  const VisionProcessor processor = ReadVisionProcessor(oracle.folder, oracle.config);
  VisionPixels pixels;
  AddVideo({ oracle.ReadPicture(1), oracle.ReadPicture(2), oracle.ReadPicture(3) }, 0.25, processor,
    pixels);
  ExpectExtents(pixels.extents, oracle.expected.Get("video_grid_thw").ToInteger());
  EXPECT_TRUE(pixels.extents[0].isVideo);
  EXPECT_EQ(pixels.extents[0].seconds, 0.5);
  ExpectPixels(pixels.pixels, FloatsOf(oracle.expected.Get("pixel_values_videos")));
}

/// A video has settings of its own.
TEST(VisionProcessor, ResizesFramesLikeTheOriginalOfVideos)
{
  const SeenOracle oracle("qwen2_vl");
  const std::filesystem::path folder = ModelsOracle("transformers/qwen2_vl-film");
  const ModelOracle expected(folder / "expected.safetensors");
  VisionPixels pixels;
  AddVideo({ oracle.ReadPicture(1), oracle.ReadPicture(2), oracle.ReadPicture(3) }, 1,
    ReadVideoProcessor(folder, oracle.config), pixels);
  ExpectExtents(pixels.extents, expected.Get("video_grid_thw").ToInteger());
  ExpectPixels(pixels.pixels, FloatsOf(expected.Get("pixel_values_videos")));
}

/// Each frame is a picture of one image.
TEST(VisionProcessor, ResizesFramesLikeTheOriginalsOfInternVLAndSmolVLM)
{
  const SeenOracle frames("qwen2_vl");
  for (const std::string name : { "internvl", "smolvlm" })
  {
    SCOPED_TRACE(name);
    const std::filesystem::path folder = ModelsOracle("transformers/" + name + "-film");
    const ModelOracle expected(folder / "expected.safetensors");
    VisionPixels pixels;
    AddVideo({ frames.ReadPicture(1), frames.ReadPicture(2), frames.ReadPicture(3) }, 1,
      ReadVideoProcessor(folder, SeeingModel(SizesOf(name))), pixels);
    EXPECT_EQ(pixels.images, 3);
    EXPECT_THAT(pixels.videoFrames, ElementsAre(3));
    EXPECT_THAT(pixels.extents, IsEmpty());
    const std::int64_t place = name == "internvl" ? 0 : -1;
    EXPECT_THAT(pixels.tiles, ElementsAre(TilePlace{ 0, place, place },
                                TilePlace{ 1, place, place }, TilePlace{ 2, place, place }));
    ExpectPixels(pixels.pixels, FloatsOf(expected.Get("pixel_values")));
  }
}

Picture Blank(std::int64_t width, std::int64_t height)
{
  return { height, width, 255, std::vector<std::uint16_t>(3 * width * height, 128) };
}

/// Rows and columns of tiles, or the height and width in pixels, worked out from the rules.
std::pair<std::int64_t, std::int64_t> GridOf(
  const VisionProcessor& processor, std::int64_t width, std::int64_t height)
{
  const SeenPicture seen = SeePicture(Blank(width, height), processor);
  const Picture all = seen.tiled.value_or(Picture());
  return processor.steps == PictureSteps::AnySize ? std::pair(all.height, all.width)
                                                  : std::pair(seen.rows, seen.columns);
}

TEST(VisionProcessor, GridsHaveTheNearestProportions)
{
  VisionProcessor processor = DefaultVisionProcessor(SeeingModel(SizesOf("internvl")));
  EXPECT_EQ(processor.maximumTiles, 12);
  processor.maximumTiles = 6;
  EXPECT_EQ(GridOf(processor, 40, 19), std::pair(1L, 2L)); // 2.1: 2 is nearest
  EXPECT_EQ(GridOf(processor, 19, 40), std::pair(2L, 1L));
  EXPECT_EQ(GridOf(processor, 27, 6), std::pair(1L, 4L));  // 4.5 is as near to 4 as to 5, and small
  EXPECT_EQ(GridOf(processor, 90, 20), std::pair(1L, 5L)); // and here large: 1800 > 5 * 256 / 2
  EXPECT_EQ(GridOf(processor, 31, 20), std::pair(2L, 3L)); // 1.55: 3 / 2
  EXPECT_EQ(GridOf(processor, 16, 16), std::pair(1L, 1L)); // 256 pixels are at most half of 1024
  EXPECT_EQ(GridOf(processor, 23, 23), std::pair(2L, 2L)); // 529 are more than half
  EXPECT_EQ(GridOf(processor, 1, 1000), std::pair(6L, 1L));
  processor.minimumTiles = 3;
  EXPECT_EQ(GridOf(processor, 16, 16), std::pair(2L, 2L));
}

TEST(VisionProcessor, OneTileHasNoSmallPicture)
{
  VisionProcessor processor = DefaultVisionProcessor(SeeingModel(SizesOf("internvl")));
  EXPECT_FALSE(SeePicture(Blank(16, 16), processor).whole);
  EXPECT_TRUE(SeePicture(Blank(16, 32), processor).whole);
  processor.maximumTiles = 1;
  const SeenPicture seen = SeePicture(Blank(16, 32), processor);
  EXPECT_EQ(seen.tiled.value_or(Picture()).height, 16);
  EXPECT_FALSE(seen.whole);
}

/// By hand: 45 x 21 becomes 64 x 29.8, so 64 x 30, then 64 x 32.
TEST(VisionProcessor, SplitsFollowTheLongerSide)
{
  const TransformerConfig model = SeeingModel(SizesOf("smolvlm"));
  VisionProcessor processor = DefaultVisionProcessor(model);
  EXPECT_EQ(processor.longestEdge, 64);
  EXPECT_EQ(GridOf(processor, 45, 21), std::pair(2L, 4L));
  EXPECT_EQ(GridOf(processor, 21, 45), std::pair(4L, 2L));
  EXPECT_EQ(GridOf(processor, 1000, 1), std::pair(1L, 4L));
  EXPECT_EQ(GridOf(processor, 8, 8), std::pair(4L, 4L));
  processor.longestEdge = 65; // 65 x 66, since 65 is odd: the width is now the shorter side
  EXPECT_EQ(GridOf(processor, 8, 8), std::pair(5L, 5L));
  processor.longestEdge = 1000000; // not beyond 4096
  EXPECT_EQ(GridOf(processor, 64, 16), std::pair(64L, 256L));
  processor.longestEdge = 16;
  EXPECT_FALSE(SeePicture(Blank(9, 9), processor).tiled);
  processor.longestEdge = 64;
  processor.splits = false;
  const SeenPicture seen = SeePicture(Blank(45, 21), processor);
  EXPECT_FALSE(seen.tiled);
  EXPECT_EQ(seen.whole.value_or(Picture()).width, 16);
}

TEST(VisionProcessor, AnySizeStaysBetweenItsBounds)
{
  const TransformerConfig model = SeeingModel(SizesOf("qwen2_vl"));
  VisionProcessor processor = DefaultVisionProcessor(model);
  EXPECT_EQ(processor.minimumPixels, 3136);
  EXPECT_EQ(processor.maximumPixels, 1003520);
  EXPECT_EQ(GridOf(processor, 83, 61), std::pair(64L, 80L)); // 10.4 and 7.6 squares of 8
  EXPECT_EQ(GridOf(processor, 84, 60), std::pair(64L, 80L)); // 10.5 and 7.5: to even numbers
  EXPECT_EQ(GridOf(processor, 16, 16), std::pair(56L, 56L)); // scaled by 3.5
  EXPECT_EQ(GridOf(processor, 3, 200), std::pair(464L, 8L)); // by 2.286: 6.9 and 457.2, up
  processor.minimumPixels = 64;
  processor.maximumPixels = 512;
  EXPECT_EQ(GridOf(processor, 100, 50), std::pair(16L, 32L)); // by 1 / 3.125
  EXPECT_EQ(GridOf(processor, 98, 50), std::pair(16L, 24L));  // by 1 / 3.094: 31.7 and 16.2, down
  EXPECT_THAT(MessageOf<OptionError>([&] { GridOf(processor, 201, 1); }),
    HasSubstr("expected one side of a picture to be at most 200 times the other, found 201 x 1"));
  processor.image.resize = false;
  EXPECT_EQ(GridOf(processor, 48, 24), std::pair(24L, 48L));
  EXPECT_THAT(MessageOf<OptionError>([&] { GridOf(processor, 47, 24); }),
    HasSubstr("multiples of 8 pixels, since do_resize is off, found 47 x 24"));
}

VisionProcessor Parse(const std::string& architecture, const std::string& text)
{
  return ParseVisionProcessor(text, "test", SeeingModel(SizesOf(architecture)));
}

TEST(VisionProcessor, ReadsNewerForms)
{
  const VisionProcessor nested = Parse("qwen2_vl",
    R"({"processor_class": "Qwen2VLProcessor", "image_processor": {"image_processor_type":
      "Qwen2VLImageProcessorFast", "size": {"shortest_edge": 64, "longest_edge": 512},
      "do_pad": null, "crop_size": null, "patch_size": 4, "merge_size": 2,
      "temporal_patch_size": 2}})");
  EXPECT_EQ(nested.minimumPixels, 64);
  EXPECT_EQ(nested.maximumPixels, 512);
  const VisionProcessor pixels =
    Parse("qwen2_vl", R"({"size": {"min_pixels": 100, "max_pixels": 900}, "max_pixels": 800})");
  EXPECT_EQ(pixels.minimumPixels, 100);
  EXPECT_EQ(pixels.maximumPixels, 800);
  EXPECT_EQ(pixels.image.filter, ResampleFilter::Bicubic);
  EXPECT_DOUBLE_EQ(pixels.image.mean[1], 0.4578275);
  const VisionProcessor idefics = Parse("smolvlm",
    R"({"image_processor_type": "Idefics3ImageProcessor", "do_pad": true,
      "size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 16}})");
  EXPECT_EQ(idefics.steps, PictureSteps::Split);
  EXPECT_EQ(idefics.longestEdge, 48);
  EXPECT_EQ(idefics.image.filter, ResampleFilter::Lanczos);
  const VisionProcessor siglip = Parse("llava",
    R"({"image_processor_type": "SiglipImageProcessor", "size": {"height": 12, "width": 12},
      "resample": 3})");
  EXPECT_EQ(siglip.steps, PictureSteps::Whole);
  EXPECT_FALSE(siglip.image.crop);
  EXPECT_EQ(siglip.image.mean[0], 0.5);
}

TEST(VisionProcessor, IsReadFromTheFolderOfTheModel)
{
  const TemporaryDirectory folder;
  const TransformerConfig model = SeeingModel(SizesOf("internvl"));
  EXPECT_EQ(ReadVisionProcessor(folder.Path(), model).maximumTiles, 12);
  WriteBytes(folder / "processor_config.json", R"({"image_processor": {"max_patches": 7}})");
  EXPECT_EQ(ReadVisionProcessor(folder.Path(), model).maximumTiles, 7);
  WriteBytes(folder / "preprocessor_config.json", R"({"max_patches": 5})");
  EXPECT_EQ(ReadVisionProcessor(folder.Path(), model).maximumTiles, 5);
}

TEST(VisionProcessor, OfVideosIsReadFromItsOwnFile)
{
  const TemporaryDirectory folder;
  const TransformerConfig model = SeeingModel(SizesOf("qwen2_vl"));
  const auto most = [&] { return ReadVideoProcessor(folder.Path(), model).maximumPixels; };
  EXPECT_EQ(most(), 1003520); // as pictures
  WriteBytes(folder / "processor_config.json",
    R"({"image_processor": {"max_pixels": 7000}, "processor_class": "Qwen2VLProcessor"})");
  EXPECT_EQ(most(), 7000);
  WriteBytes(folder / "preprocessor_config.json", R"({"max_pixels": 6000})");
  EXPECT_EQ(most(), 6000);
  WriteBytes(folder / "processor_config.json",
    R"({"image_processor": {"max_pixels": 7000}, "video_processor": {"max_pixels": 500000}})");
  EXPECT_EQ(most(), 500000);
  WriteBytes(folder / "video_preprocessor_config.json",
    R"({"video_processor_type": "Qwen2VLVideoProcessor", "fps": 2, "resample": 2})");
  EXPECT_EQ(most(), 602112);
  const VisionProcessor video = ReadVideoProcessor(folder.Path(), model);
  EXPECT_EQ(video.minimumPixels, 100352);
  EXPECT_EQ(video.image.filter, ResampleFilter::Bilinear);
  EXPECT_EQ(ReadVisionProcessor(folder.Path(), model).maximumPixels, 6000);
  const auto refusal = [&](const std::string& architecture, const std::string& text)
  {
    return MessageOf<ModelError>(
      [&] { ParseVideoProcessor(text, "test", SeeingModel(SizesOf(architecture))); });
  };
  EXPECT_EQ(refusal("qwen2_vl", R"({"video_processor_type": "InternVLVideoProcessor"})"),
    "test: expected the video_processor_type 'Qwen2VLVideoProcessor' for a model of architecture "
    "qwen2_vl, found 'InternVLVideoProcessor'.");
  EXPECT_EQ(refusal("llava", "{}"),
    "test: expected a model that reads videos, found one of architecture llava.");
  EXPECT_THAT(refusal("qwen2_vl", R"({"patch_size": 14})"), HasSubstr("to be the model's 4"));
}

/// Without a file of their own videos have the settings of pictures, of which some are others for
/// frames.
TEST(VisionProcessor, OfVideosInTilesHasTheSettingsOfPictures)
{
  const TemporaryDirectory folder;
  const TransformerConfig internvl = SeeingModel(SizesOf("internvl"));
  const TransformerConfig smolvlm = SeeingModel(SizesOf("smolvlm"));
  VisionProcessor video = ReadVideoProcessor(folder.Path(), internvl);
  EXPECT_EQ(video.steps, PictureSteps::Grid);
  EXPECT_EQ(video.maximumTiles, 1);
  EXPECT_DOUBLE_EQ(video.image.mean[1], 0.4578275);
  video = ReadVideoProcessor(folder.Path(), smolvlm);
  EXPECT_EQ(video.steps, PictureSteps::Split);
  EXPECT_FALSE(video.splits);
  EXPECT_EQ(video.longestEdge, 64);
  WriteBytes(folder / "preprocessor_config.json",
    R"({"image_processor_type": "GotOcr2ImageProcessor", "min_patches": 2, "max_patches": 5,
      "image_mean": 0.25, "resample": 2})");
  video = ReadVideoProcessor(folder.Path(), internvl);
  EXPECT_EQ(video.minimumTiles, 1);
  EXPECT_EQ(video.maximumTiles, 1);
  EXPECT_EQ(video.image.mean[0], 0.25);
  EXPECT_EQ(video.image.filter, ResampleFilter::Bilinear);
  WriteBytes(folder / "preprocessor_config.json",
    R"({"image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 48},
      "resample": 1, "video_sampling": {"video_size": {"longest_edge": 40}}})");
  video = ReadVideoProcessor(folder.Path(), smolvlm);
  EXPECT_EQ(video.longestEdge, 48);
  EXPECT_EQ(video.image.filter, ResampleFilter::Bicubic);
  WriteBytes(folder / "video_preprocessor_config.json",
    R"({"video_processor_type": "SmolVLMVideoProcessor", "resample": 2,
      "video_sampling": {"fps": 1, "max_frames": 64, "video_size": {"longest_edge": 40}}})");
  video = ReadVideoProcessor(folder.Path(), smolvlm);
  EXPECT_EQ(video.longestEdge, 40);
  EXPECT_EQ(video.image.filter, ResampleFilter::Bilinear);
  const auto parse = [](const std::string& architecture, const std::string& text)
  { return ParseVideoProcessor(text, "test", SeeingModel(SizesOf(architecture))); };
  EXPECT_EQ(parse("smolvlm", R"({"size": {"longest_edge": 5000}})").longestEdge, 4096);
  EXPECT_FALSE(parse("internvl", R"({"do_center_crop": true, "crop_size": 16})").image.crop);
  const auto refusal = [&](const std::string& architecture, const std::string& text)
  { return MessageOf<ModelError>([&] { parse(architecture, text); }); };
  EXPECT_THAT(refusal("internvl", R"({"do_center_crop": true, "crop_size": 8})"),
    HasSubstr("expected 'crop_size' to be the model's 16 x 16 pixels"));
  EXPECT_THAT(refusal("internvl", R"({"size": {"height": 384, "width": 384}})"),
    HasSubstr("expected 'size' to be the model's 16 x 16 pixels"));
  EXPECT_THAT(
    refusal("smolvlm", R"({"do_resize": false})"), HasSubstr("expected 'do_resize' to be on"));
  EXPECT_THAT(refusal("smolvlm", R"({"video_sampling": {"fps": 1}})"),
    HasSubstr("'longest_edge' is missing"));
  EXPECT_THAT(refusal("smolvlm", R"({"video_processor_type": "InternVLVideoProcessor"})"),
    HasSubstr("expected the video_processor_type 'SmolVLMVideoProcessor'"));
}

/// By hand: 5 x 2 pixels get rows of the mean's bytes, one above and two below.
TEST(VisionProcessor, PaddingIsTheMeanRoundedDown)
{
  VisionProcessor processor = DefaultVisionProcessor(SeeingModel({ "llava", 5, 1 }));
  processor.padsToSquare = true;
  processor.image.crop = false;
  processor.image.shortestEdge = 0;
  processor.image.mean = { 0.5, 0.999, 0.2 }; // 127.5, 254.7 and 51
  const Picture wide = SeePicture(Blank(5, 2), processor).whole.value_or(Picture());
  ASSERT_EQ(wide.height, 5);
  ASSERT_EQ(wide.width, 5);
  const std::vector<int> rows = { 0, 1, 1, 0, 0 };
  for (std::size_t i = 0; i < wide.pixels.size(); ++i)
  {
    const std::vector<int> color =
      rows[i / 15] == 1 ? std::vector{ 128, 128, 128 } : std::vector{ 127, 254, 51 };
    EXPECT_EQ(wide.pixels[i], color[i % 3]) << i;
  }
  Picture deep = Blank(2, 5);
  deep.maximum = 65535;
  const Picture tall = SeePicture(deep, processor).whole.value_or(Picture());
  EXPECT_EQ(tall.pixels[0], 127 * 257);
  EXPECT_EQ(tall.pixels[3], 128);
  EXPECT_EQ(tall.pixels[12], 127 * 257);
}

/// Settings that differ from all defaults survive.
TEST(VisionProcessor, IsMadeAgainFromItsSettings)
{
  for (const auto& [architecture, text] :
    { std::pair<std::string, std::string>("llava", R"({"size": {"shortest_edge": 14},
        "crop_size": 12, "resample": 1, "image_mean": 0.25, "do_rescale": false})"),
      { "llava", R"({"image_processor_type": "LlavaImageProcessor", "do_pad": true,
        "size": 12, "do_center_crop": false, "image_mean": 0.125})" },
      { "internvl", R"({"min_patches": 2, "max_patches": 5, "image_std": 0.125})" },
      { "smolvlm", R"({"do_image_splitting": false, "size": {"longest_edge": 40}})" },
      { "qwen2_vl", R"({"min_pixels": 70, "max_pixels": 700, "do_normalize": false})" } })
  {
    SCOPED_TRACE(architecture);
    const VisionProcessor processor = Parse(architecture, text);
    const std::string settings = ToJson(processor);
    const VisionProcessor again = ParseVisionProcessor(settings, "test");
    EXPECT_EQ(ToJson(again), settings);
    VisionPixels pixels;
    VisionPixels expected;
    AddPicture(Blank(37, 21), again, pixels);
    AddPicture(Blank(37, 21), processor, expected);
    EXPECT_EQ(pixels.pixels, expected.pixels);
    EXPECT_EQ(pixels.tiles, expected.tiles);
    EXPECT_EQ(pixels.extents, expected.extents);
  }
}

struct BadSettings
{
  std::string architecture;
  std::string text;
  std::string message;
};

TEST(VisionProcessor, RefusesWhatTheModelCannotRead)
{
  const std::vector<BadSettings> cases = {
    { "llava", R"([1])", "expected the configuration to be a JSON object, found array" },
    { "llava", R"({"image_processor_type": "PixtralImageProcessor"})",
      "for images of one size, since the model reads these, found 'PixtralImageProcessor'" },
    { "llava", R"({"image_processor_type": 3})", "expected 'image_processor_type' to be a string" },
    { "llava", R"({"do_pad": true})", "'do_pad' is true, a step of preprocessing" },
    { "llava", R"({"image_processor_type": "LlavaImageProcessor", "do_pad": 1})",
      "expected 'do_pad' to be true or false, found 1" },
    { "internvl", R"({"do_pad": true})", "'do_pad' is true, a step of preprocessing" },
    { "llava", R"({"image_std": [0.1, 0, 0.1]})", "expected 'image_std' to be positive" },
    { "llava", R"({"image_processor_type": "Qwen2VLImageProcessor"})",
      "expected an image_processor_type for images of one size" },
    { "qwen2_vl", R"({"image_processor_type": "CLIPImageProcessor"})",
      "expected an image_processor_type for pictures of any size" },
    { "internvl", R"({"max_patches": 0})", "expected 'max_patches' to be an integer from 1" },
    { "internvl", R"({"max_patches": 1001})", "expected 'max_patches' to be an integer from 1" },
    { "internvl", R"({"min_patches": -1})", "expected 'min_patches' to be an integer from 1" },
    { "internvl", R"({"min_patches": 4, "max_patches": 3})",
      "expected 'min_patches' to be at most 'max_patches', 3, found 4" },
    { "internvl", R"({"size": {"height": 448, "width": 448}})",
      "expected 'size' to be the model's 16 x 16 pixels (height x width), found 448 x 448" },
    { "internvl", R"({"size": {"shortest_edge": 16}})", "found 'shortest_edge'" },
    { "smolvlm", R"({"max_image_size": {"longest_edge": 364}})",
      "expected 'max_image_size' to be the model's 16 x 16 pixels" },
    { "smolvlm", R"({"max_image_size": 16})", "expected 'max_image_size' to be an object" },
    { "smolvlm", R"({"size": {"longest_edge": 0}})", "expected 'longest_edge' to be an integer" },
    { "smolvlm", R"({"size": {"height": 16, "width": 16}})", "'longest_edge' is missing" },
    { "smolvlm", R"({"do_image_splitting": "no"})", "to be true or false, found \"no\"" },
    { "qwen2_vl", R"({"patch_size": 14})", "expected 'patch_size' to be the model's 4, found 14" },
    { "qwen2_vl", R"({"merge_size": 1})", "expected 'merge_size' to be the model's 2, found 1" },
    { "qwen2_vl", R"({"min_pixels": 0})", "expected 'min_pixels' to be an integer from 1" },
    { "qwen2_vl", R"({"min_pixels": "few"})", "expected 'min_pixels' to be an integer from 1" },
    { "qwen2_vl", R"({"max_pixels": 1e300})", "expected 'max_pixels' to be an integer from 1" },
    { "qwen2_vl", R"({"min_pixels": 10, "max_pixels": 9})", "at most the most, 9, found 10" },
    { "qwen2_vl", R"({"size": 56})", "expected 'size' to be an object" },
    { "qwen2_vl", R"({"resample": 7})", "unknown resample" },
    { "qwen2_vl", R"({"min_pixels": NaN})", "is not JSON" },
  };
  for (const BadSettings& bad : cases)
  {
    const std::string message = MessageOf<Error>([&] { Parse(bad.architecture, bad.text); });
    EXPECT_THAT(message, StartsWith("test: ")) << bad.text;
    EXPECT_THAT(message, HasSubstr(bad.message)) << bad.text;
  }
}

/// Nothing is made that would not fit into memory.
TEST(VisionProcessor, RefusesTooLargePictures)
{
  VisionPixels pixels;
  EXPECT_THROW(
    AddPicture(Blank(16, 16),
      Parse("qwen2_vl", R"({"min_pixels": 2147483647, "max_pixels": 2147483647})"), pixels),
    OptionError);
  EXPECT_TRUE(pixels.pixels.empty());
}

}
