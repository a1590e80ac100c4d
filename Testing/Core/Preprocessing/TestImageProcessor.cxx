#include "Weights/ImageProcessor.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/JsonText.h"
#include "Preprocessing/PreprocessPicture.h"
#include "SettingsFiles.h"
#include "TemporaryDirectory.h"

#include <limits>
#include <set>
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

/// Channel c of the pixel in column x and row y is (37 x + 59 y + 83 c + x y (c + 1)) mod 256.
Picture PatternPicture(std::int64_t width, std::int64_t height)
{
  Picture picture{ height, width, 255, {} };
  for (std::int64_t y = 0; y < height; ++y)
  {
    for (std::int64_t x = 0; x < width; ++x)
    {
      for (std::int64_t c = 0; c < 3; ++c)
      {
        picture.pixels.push_back(
          static_cast<std::uint16_t>((37 * x + 59 * y + 83 * c + x * y * (c + 1)) % 256));
      }
    }
  }
  return picture;
}

Picture Constant(std::int64_t width, std::int64_t height, std::uint16_t value)
{
  return { height, width, 255, std::vector<std::uint16_t>(3 * width * height, value) };
}

/// A gray row.
Picture Row(const std::vector<std::uint16_t>& values, std::uint16_t maximum = 255)
{
  Picture picture{ 1, static_cast<std::int64_t>(values.size()), maximum, {} };
  for (const std::uint16_t value : values)
  {
    picture.pixels.insert(picture.pixels.end(), 3, value);
  }
  return picture;
}

std::vector<std::uint16_t> Red(const Picture& picture)
{
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3)
  {
    values.push_back(picture.pixels[i]);
  }
  return values;
}

/// The sum of (i + 1) value_i.
std::uint64_t Sum(const Picture& picture)
{
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
  {
    sum += (i + 1) * picture.pixels[i];
  }
  return sum;
}

constexpr ResampleFilter Filters[] = { ResampleFilter::Nearest, ResampleFilter::Lanczos,
  ResampleFilter::Bilinear, ResampleFilter::Bicubic, ResampleFilter::Box, ResampleFilter::Hamming };

/// The results of Pillow 9.4 for the patterns.
struct Resampled
{
  ResampleFilter filter;
  std::vector<int> small;          ///< 7 x 5 pixels as 3 x 2
  std::vector<std::uint64_t> sums; ///< 61 x 47 as 24 x 30, 9 x 8 as 40 x 33, 50 x 20 as 50 x 7,
                                   ///< 30 x 64 as 19 x 64
};

const std::vector<Resampled>& Pillow()
{
  static const std::vector<Resampled> list = {
    { ResampleFilter::Nearest,
      { 97, 181, 9, 173, 3, 89, 249, 81, 169, 217, 47, 133, 41, 133, 225, 121, 219, 61 },
      { 297932218, 997942502, 70755509, 846811040 } },
    { ResampleFilter::Lanczos,
      { 82, 157, 120, 154, 112, 107, 143, 97, 144, 146, 92, 129, 90, 140, 142, 135, 128, 115 },
      { 297444674, 999871826, 70937620, 848311126 } },
    { ResampleFilter::Bilinear,
      { 89, 151, 122, 145, 114, 109, 147, 100, 142, 136, 98, 130, 100, 135, 137, 134, 124, 117 },
      { 297428839, 998053201, 70938269, 848325074 } },
    { ResampleFilter::Bicubic,
      { 84, 155, 122, 151, 113, 107, 147, 98, 143, 142, 94, 130, 92, 139, 140, 136, 125, 115 },
      { 297494317, 998675238, 70932220, 848382265 } },
    { ResampleFilter::Box,
      { 78, 162, 117, 145, 117, 117, 140, 101, 147, 163, 56, 141, 72, 166, 131, 174, 84, 122 },
      { 299733558, 999581566, 71071215, 850196160 } },
    { ResampleFilter::Hamming,
      { 77, 154, 124, 151, 110, 99, 156, 90, 149, 146, 85, 132, 87, 143, 139, 143, 117, 114 },
      { 297895644, 997946404, 70973622, 848617101 } },
  };
  return list;
}

TEST(Resample, IsPillowsToTheByte)
{
  for (const Resampled& expected : Pillow())
  {
    const ResampleFilter filter = expected.filter;
    SCOPED_TRACE(static_cast<int>(filter));
    EXPECT_THAT(
      Resample(PatternPicture(7, 5), 2, 3, filter).pixels, ElementsAreArray(expected.small));
    EXPECT_EQ(Sum(Resample(PatternPicture(61, 47), 30, 24, filter)), expected.sums[0]);
    EXPECT_EQ(Sum(Resample(PatternPicture(9, 8), 33, 40, filter)), expected.sums[1]);
    EXPECT_EQ(Sum(Resample(PatternPicture(50, 20), 7, 50, filter)), expected.sums[2]);
    EXPECT_EQ(Sum(Resample(PatternPicture(30, 64), 64, 19, filter)), expected.sums[3]);
  }
}

TEST(Resample, KeepsConstantsAndSizes)
{
  for (const ResampleFilter filter : Filters)
  {
    const Picture small = Resample(Constant(31, 17, 201), 5, 9, filter);
    EXPECT_EQ(small.height, 5);
    EXPECT_EQ(small.width, 9);
    EXPECT_EQ(small.pixels.size(), 135U);
    EXPECT_THAT(small.pixels, Each(201));
    EXPECT_THAT(Resample(Constant(1, 1, 255), 4, 3, filter).pixels, Each(255));
    EXPECT_EQ(Resample(PatternPicture(7, 5), 5, 7, filter).pixels, PatternPicture(7, 5).pixels);
  }
}

TEST(Resample, HasTheWeightsOfTheFilter)
{
  // Halved by a triangle of support 2: weights 1, 3, 3, 1 of eighths; at the edge 3, 3, 1 of
  // sevenths.
  EXPECT_THAT(Red(Resample(Row({ 0, 80, 160, 8, 0, 240 }), 1, 3, ResampleFilter::Bilinear)),
    ElementsAre((240 + 160 + 3) / 7, (80 + 3 * 160 + 3 * 8 + 0) / 8, (8 + 3 * 240 + 3) / 7));
  // Doubled by bicubic: between the two halves 0.796875 and 0.203125 of 255; beyond, it would
  // overshoot, and is cut off.
  EXPECT_THAT(Red(Resample(Row({ 0, 0, 255, 255 }), 1, 8, ResampleFilter::Bicubic)),
    ElementsAre(0, 0, 0, 52, 203, 255, 255, 255));
}

TEST(Resample, KeepsThePrecisionOf16Bits)
{
  // Averages of two values, which 8 bits could not distinguish.
  EXPECT_THAT(
    Red(Resample(Row({ 1000, 1002, 1004, 1010, 65535, 65533 }, 65535), 1, 3, ResampleFilter::Box)),
    ElementsAre(1001, 1007, 65534));
}

TEST(Resample, RefusesSizesThatNoPictureHas)
{
  const auto message = [](std::int64_t height, std::int64_t width)
  {
    return MessageOf<OptionError>(
      [&]() { Resample(Constant(2, 2, 0), height, width, ResampleFilter::Bilinear); });
  };
  EXPECT_THAT(message(0, 3), HasSubstr("found 3 x 0 pixels"));
  EXPECT_THAT(message(3, -1), HasSubstr("found -1 x 3 pixels"));
  EXPECT_THAT(message(MaximumPixels, 2), HasSubstr("expected an image of 1 to 134217728 pixels"));
  EXPECT_THAT(message(std::numeric_limits<std::int64_t>::max(), 4), HasSubstr("4 x 92233720"));
  // Rows of the new width would not fit.
  EXPECT_THAT(MessageOf<OptionError>(
                [&]() { Resample(Constant(1, 1 << 18, 0), 8, 1024, ResampleFilter::Bilinear); }),
    HasSubstr("found 1024 x 262144 pixels"));
}

TransformerConfig Model(std::int64_t height = 4, std::int64_t width = 6)
{
  TransformerConfig config;
  config.architecture = "vit";
  config.input = InputKind::Images;
  config.imageHeight = height;
  config.imageWidth = width;
  config.channels = 3;
  return config;
}

ImageProcessor ParseProcessor(const std::string& text)
{
  return ParseImageProcessor(text, "some/preprocessor_config.json", Model());
}

TEST(ImageProcessor, WhatAFileLeavesOutIsTheDefault)
{
  const TemporaryDirectory folder;
  const ImageProcessor absent = ReadImageProcessor(folder.Path(), Model());
  WriteBytes(folder / "preprocessor_config.json", "{}");
  for (const ImageProcessor& processor : { absent, ReadImageProcessor(folder.Path(), Model()) })
  {
    EXPECT_TRUE(processor.resize);
    EXPECT_EQ(processor.height, 4);
    EXPECT_EQ(processor.width, 6);
    EXPECT_EQ(processor.shortestEdge, 0);
    EXPECT_EQ(processor.filter, ResampleFilter::Bilinear);
    EXPECT_FALSE(processor.crop);
    EXPECT_TRUE(processor.rescale);
    EXPECT_EQ(processor.factor, 1 / 255.0);
    EXPECT_TRUE(processor.normalize);
    EXPECT_THAT(processor.mean, Each(0.5));
    EXPECT_THAT(processor.deviation, Each(0.5));
    EXPECT_EQ(processor.modelHeight, 4);
    EXPECT_EQ(processor.modelWidth, 6);
  }
}

TEST(ImageProcessor, ReadsAFile)
{
  const ImageProcessor processor =
    ParseProcessor(R"({"do_resize": false, "size": {"height": 9, "width": 8},
    "resample": 3, "do_center_crop": true, "crop_size": {"height": 7, "width": 5},
    "do_rescale": false, "rescale_factor": 0.25, "do_normalize": false,
    "image_mean": [0.1, -0.2, 0.3], "image_std": [1, 2, 0.3], "image_processor_type": "DeiTImageProcessor",
    "do_convert_rgb": null, "do_pad": false})");
  EXPECT_FALSE(processor.resize);
  EXPECT_EQ(processor.height, 9);
  EXPECT_EQ(processor.width, 8);
  EXPECT_EQ(processor.filter, ResampleFilter::Bicubic);
  EXPECT_TRUE(processor.crop);
  EXPECT_EQ(processor.cropHeight, 7);
  EXPECT_EQ(processor.cropWidth, 5);
  EXPECT_FALSE(processor.rescale);
  EXPECT_EQ(processor.factor, 0.25);
  EXPECT_FALSE(processor.normalize);
  EXPECT_THAT(processor.mean, ElementsAre(0.1, -0.2, 0.3));
  EXPECT_THAT(processor.deviation, ElementsAre(1, 2, 0.3));

  const ImageProcessor square =
    ParseProcessor(R"({"size": 5, "crop_size": 3, "image_mean": 0.25})");
  EXPECT_EQ(square.height, 5);
  EXPECT_EQ(square.width, 5);
  EXPECT_EQ(square.cropHeight, 3);
  EXPECT_EQ(square.cropWidth, 3);
  EXPECT_THAT(square.mean, Each(0.25));
  EXPECT_EQ(ParseProcessor(R"({"size": [5, 7]})").width, 7);
  EXPECT_EQ(ParseProcessor(R"({"size": {"shortest_edge": 11}})").shortestEdge, 11);
}

/// As in the original code of CLIP, whose oldest files have a single number.
TEST(ImageProcessor, ANumberMayBeTheShorterSide)
{
  for (const char* type : { R"("feature_extractor_type": "CLIPFeatureExtractor")",
         R"("image_processor_type": "CLIPImageProcessor")",
         R"("image_processor_type": "BitImageProcessor")",
         R"("image_processor_type": "SiglipImageProcessorFast")" })
  {
    const std::string text = std::string("{") + type + R"(, "size": )";
    EXPECT_EQ(ParseProcessor(text + "11}").shortestEdge, 11) << type;
    EXPECT_EQ(ParseProcessor(text + "[7, 7]}").shortestEdge, 0) << type;
  }
  EXPECT_EQ(
    ParseProcessor(R"({"size": 11, "image_processor_type": "ViTImageProcessor"})").shortestEdge, 0);
}

/// What files leave out is the default of their type in transformers 5.24.
TEST(ImageProcessor, TypesHaveTheirOwnDefaults)
{
  const auto parse = [](const std::string& type)
  { return ParseProcessor(R"({"image_processor_type": ")" + type + R"("})"); };
  for (const char* type :
    { "CLIPImageProcessor", "BitImageProcessorFast", "CLIPImageProcessorPil" })
  {
    const ImageProcessor clip = parse(type);
    EXPECT_EQ(clip.filter, ResampleFilter::Bicubic);
    EXPECT_THAT(clip.mean, ElementsAre(0.48145466, 0.4578275, 0.40821073));
    EXPECT_THAT(clip.deviation, ElementsAre(0.26862954, 0.26130258, 0.27577711));
    EXPECT_TRUE(clip.crop);
    EXPECT_EQ(clip.shortestEdge, Model().imageHeight);
  }
  const ImageProcessor siglip = parse("SiglipImageProcessor");
  EXPECT_EQ(siglip.filter, ResampleFilter::Bicubic);
  EXPECT_THAT(siglip.mean, Each(0.5));
  EXPECT_FALSE(siglip.crop);
  EXPECT_EQ(siglip.shortestEdge, 0);
  EXPECT_EQ(parse("BeitImageProcessor").filter, ResampleFilter::Bicubic);
  EXPECT_EQ(parse("ViTImageProcessor").filter, ResampleFilter::Bilinear);
  const ImageProcessor dino = parse("DINOv3ViTImageProcessorFast");
  EXPECT_THAT(dino.mean, ElementsAre(0.485, 0.456, 0.406));
  EXPECT_THAT(dino.deviation, ElementsAre(0.229, 0.224, 0.225));
  const ImageProcessor deit = parse("DeiTImageProcessor");
  EXPECT_EQ(deit.height, 256);
  EXPECT_EQ(deit.cropWidth, Model().imageWidth);
  EXPECT_TRUE(deit.crop);
}

TEST(ImageProcessor, SettingsThatAreNotKnownAreNamed)
{
  EXPECT_THAT(
    ParseProcessor(R"({"of_mine": 3, "other": null, "do_convert_rgb": true})").unknownSettings,
    ElementsAre("of_mine"));
  EXPECT_THAT(
    ParseProcessor(R"({"keep_aspect_ratio": false, "ensure_multiple_of": 1})").unknownSettings,
    IsEmpty());
}

/// The size that a model gets from its folder, if its positions fit any.
TEST(ImageProcessor, AModelMayTakeItsSizeFromTheFile)
{
  const TemporaryDirectory folder;
  const auto size = [&](const std::string& text, std::int64_t side)
  {
    WriteBytes(folder / "preprocessor_config.json", text);
    TransformerConfig config = Model(4, 4);
    config.patchHeight = config.patchWidth = 2;
    config.positionSide = side;
    AdoptImageSize(config, folder.Path());
    EXPECT_EQ(config.positions, side == 0 ? 0 : config.PatchRows() * config.PatchColumns() + 1);
    return std::pair(config.imageHeight, config.imageWidth);
  };
  const std::string crop =
    R"({"size": {"shortest_edge": 9}, "do_center_crop": true, "crop_size": {"height": 6, "width": 8}})";
  EXPECT_EQ(size(crop, 2), std::pair(std::int64_t{ 6 }, std::int64_t{ 8 }));
  EXPECT_EQ(size(crop, 0), std::pair(std::int64_t{ 4 }, std::int64_t{ 4 }));
  EXPECT_EQ(size(R"({"size": [10, 7]})", 2), std::pair(std::int64_t{ 10 }, std::int64_t{ 7 }));
  EXPECT_EQ(
    size(R"({"size": {"shortest_edge": 9}})", 2), std::pair(std::int64_t{ 4 }, std::int64_t{ 4 }));
  for (const char* text : { R"({"size": [10, 1]})", R"({"size": [200000000, 2]})" })
  {
    EXPECT_THAT(MessageOf<ModelError>([&] { size(text, 2); }),
      AllOf(HasSubstr("preprocessor_config.json: expected images of a patch, 2 x 2 pixels"),
        HasSubstr("found ")));
  }
}

/// Each key that real files have is read, refused if it is on, or known to change nothing.
TEST(ImageProcessor, EachKeyIsDecided)
{
  const std::set<std::string> known = { // read, of images, of pictures among words, or of sound
    "chunk_length", "crop_size", "crop_to_patches", "do_center_crop", "do_image_splitting",
    "do_normalize", "do_pad", "do_rescale", "do_resize", "feature_size", "hop_length", "image_mean",
    "image_processor_type", "image_std", "max_image_size", "max_num_patches", "max_patches",
    "max_length", "max_pixels", "mean", "merge_size", "min_patches", "min_pixels", "n_fft",
    "n_samples", "num_mel_bins", "patch_size", "resample", "rescale_factor", "sampling_rate",
    "size", "std", "temporal_patch_size", "video_processor_type", "feature_extractor_type",
    // refused
    "crop_pct", "dither", "do_align_long_axis", "do_flip_channel_order", "do_thumbnail", "offset",
    "padding_value",
    // pictures are red, green and blue as they are read; the model has the sizes; a sound is filled
    // up at its end
    "data_format", "device", "do_convert_rgb", "image_seq_length", "input_data_format",
    "nb_max_frames", "padding_side", "return_attention_mask", "return_metadata", "processor_class",
    // which frames a video has is chosen here
    "do_sample_frames", "fps", "initial_shift", "max_frames", "min_frames", "num_frames",
    "video_metadata",
    // processors of models that are not read
    "default_to_square", "image_grid_pinpoints", "max_video_tokens", "pad_size"
  };
  const auto check = [&](const std::string& path, const nlohmann::json& settings)
  {
    for (const auto& [key, value] : settings.items())
    {
      EXPECT_TRUE(value.is_null() || known.count(key) == 1) << path << ": " << key;
    }
  };
  EXPECT_GE(ForEachSettingsFile("preprocessor_config.json", check), 9);
  EXPECT_GE(ForEachSettingsFile("video_preprocessor_config.json", check), 3);
  ForEachSettingsFile("processor_config.json",
    [&](const std::string& path, const nlohmann::json& settings)
    {
      for (const char* part : { "image_processor", "video_processor", "feature_extractor" })
      {
        check(path + ": " + part, settings.value(part, nlohmann::json::object()));
      }
    });
}

TEST(ImageProcessor, IsWrittenAsAFile)
{
  for (const char* text : { R"({"do_resize": false, "size": {"height": 7, "width": 9},
      "resample": 3, "do_center_crop": true, "crop_size": {"height": 3, "width": 2},
      "do_rescale": true, "rescale_factor": 0.1, "do_normalize": true,
      "image_mean": [0.1, 0.2, 0.3], "image_std": [1, 0.7, 0.3]})",
         R"({"do_resize": true, "size": {"shortest_edge": 11}, "resample": 2,
      "do_center_crop": false, "crop_size": {"height": 3, "width": 2}, "do_rescale": false,
      "rescale_factor": 0.5, "do_normalize": false, "image_mean": [0, 0.2, 0.3],
      "image_std": [1, 0.7, 2]})" })
  {
    EXPECT_EQ(ParseJson(ToJson(ParseProcessor(text)), "written"), ParseJson(text, "read"));
  }
}

/// Whatever the normalization, it is taken back.
TEST(ImageProcessor, BrightnessIsThatOfThePicture)
{
  for (const char* text : { "{}", R"({"do_rescale": false})", R"({"do_normalize": false})",
         R"({"rescale_factor": 3, "image_mean": [-1, 0, 9], "image_std": [0.1, 5, 77]})" })
  {
    ImageProcessor processor = ParseProcessor(text);
    processor.resize = false;
    const Picture picture = PatternPicture(6, 4);
    const std::vector<float> values = Preprocess(picture, processor);
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      const std::size_t channel = i / 24;
      EXPECT_NEAR(255 * Brightness(processor, channel, values[i]),
        picture.pixels[3 * (i % 24) + channel], 1e-3)
        << text;
    }
  }
}

TEST(ImageProcessor, RefusesWhatCannotBe)
{
  const auto message = [](const std::string& text)
  {
    const std::string found = MessageOf<ModelError>([&]() { ParseProcessor(text); });
    EXPECT_THAT(found, StartsWith("some/preprocessor_config.json: "));
    return found;
  };
  EXPECT_THAT(message(R"({"resample": 6})"),
    AllOf(HasSubstr("unknown resample 6"), HasSubstr("2 (bilinear)")));
  EXPECT_THAT(message(R"({"resample": 2.5})"), HasSubstr("unknown resample 2.5"));
  EXPECT_THAT(message(R"({"resample": -1})"), AllOf(HasSubstr("'resample'"), HasSubstr("-1")));
  EXPECT_THAT(message(R"({"size": -224})"), AllOf(HasSubstr("'size'"), HasSubstr("-224")));
  EXPECT_THAT(message(R"({"size": {"height": 0, "width": 3}})"), HasSubstr("'height'"));
  EXPECT_THAT(message(R"({"size": {"height": 3}})"), HasSubstr("'width' is missing"));
  EXPECT_THAT(message(R"({"size": {"shortest_edge": 3, "longest_edge": 9}})"),
    HasSubstr("'longest_edge' is 9, a bound of sizes that is not known"));
  EXPECT_THAT(message(R"({"size": "large"})"), AllOf(HasSubstr("'size'"), HasSubstr("large")));
  EXPECT_THAT(message(R"({"crop_size": [1, 2, 3]})"), HasSubstr("'crop_size'"));
  EXPECT_THAT(
    message(R"({"do_resize": 1})"), HasSubstr("expected 'do_resize' to be true or false"));
  EXPECT_THAT(message(R"({"do_pad": true})"), HasSubstr("'do_pad' is true, a step of preproc"));
  EXPECT_THAT(message(R"({"image_processor_type": "DPTImageProcessor"})"),
    HasSubstr(
      "unknown image_processor_type 'DPTImageProcessor', expected ImageProcessor behind one "
      "of Beit, Bit, "));
  EXPECT_THAT(message(R"({"keep_aspect_ratio": true})"),
    HasSubstr("'keep_aspect_ratio' is true, a step of preprocessing"));
  EXPECT_THAT(message(R"({"ensure_multiple_of": 14})"),
    HasSubstr("'ensure_multiple_of' is 14, a step of preprocessing"));
  EXPECT_THAT(message(R"({"rescale_factor": 0})"), HasSubstr("'rescale_factor'"));
  EXPECT_THAT(message(R"({"image_std": [0.5, 0, 0.5]})"), HasSubstr("'image_std' to be positive"));
  EXPECT_THAT(message(R"({"image_std": 1e-60})"), HasSubstr("'image_std' to be positive"));
  EXPECT_THAT(message(R"({"image_mean": [0.5, 0.5]})"), HasSubstr("a number or a list of 3"));
  EXPECT_THAT(message(R"({"image_mean": [0.5, 0.5, "a"]})"), HasSubstr("a number or a list of 3"));
  EXPECT_THAT(message(R"({"image_mean": {"r": 1}})"), HasSubstr("a number or a list of 3"));
  EXPECT_THAT(MessageOf<FormatError>([]() { ParseProcessor("{"); }),
    HasSubstr("some/preprocessor_config.json: the configuration is not JSON"));
  EXPECT_THAT(MessageOf<FormatError>([]() { ParseProcessor("[]"); }),
    HasSubstr("a JSON object, found array"));
  TransformerConfig gray = Model();
  gray.channels = 1;
  EXPECT_THAT(MessageOf<ModelError>([&]() { DefaultImageProcessor(gray); }),
    AllOf(HasSubstr("3 channels"), HasSubstr("found one of architecture vit with 1")));
}

TEST(ImageProcessor, NormalizesEachChannel)
{
  ImageProcessor processor = DefaultImageProcessor(Model(1, 2));
  const Picture picture{ 1, 2, 255, { 0, 51, 102, 255, 153, 204 } };
  EXPECT_THAT(Preprocess(picture, processor), ElementsAre(FloatEq(-1), FloatEq(1), FloatEq(-0.6F),
                                                FloatEq(0.2F), FloatEq(-0.2F), FloatEq(0.6F)));
  processor.mean = { 0, 0.2, 0.4 };
  processor.deviation = { 1, 0.5, 0.25 };
  EXPECT_THAT(Preprocess(picture, processor),
    ElementsAre(FloatEq(0), FloatEq(1), FloatEq(0), FloatEq(0.8F), FloatEq(0), FloatEq(1.6F)));
  processor.normalize = false;
  EXPECT_THAT(Preprocess(picture, processor), ElementsAre(FloatEq(0), FloatEq(1), FloatEq(0.2F),
                                                FloatEq(0.6F), FloatEq(0.4F), FloatEq(0.8F)));
  processor.rescale = false;
  EXPECT_THAT(Preprocess(picture, processor), ElementsAre(0, 255, 51, 153, 102, 204));
  // 16 bits have the same range, with fractions.
  EXPECT_THAT(Preprocess({ 1, 2, 65535, { 0, 257, 1, 65535, 514, 128 } }, processor),
    ElementsAre(0, 255, 1, 2, FloatEq(1 / 257.0F), FloatEq(128 / 257.0F)));
}

TEST(ImageProcessor, ResizesTheShortestEdgeAndCropsTheMiddle)
{
  ImageProcessor processor = DefaultImageProcessor(Model(4, 4));
  processor.rescale = false;
  processor.normalize = false;
  processor.shortestEdge = 4;
  processor.crop = true;
  processor.filter = ResampleFilter::Nearest;
  // 16 x 8 pixels become 8 x 4, of which columns 2 to 5 are kept: each second pixel from the
  // second row and column, as 2 (i + 1/2) = 2 i + 1.
  const Picture wide = PatternPicture(16, 8);
  const std::vector<float> pixels = Preprocess(wide, processor);
  ASSERT_EQ(pixels.size(), 48U);
  for (std::size_t y = 0; y < 4; ++y)
  {
    for (std::size_t x = 0; x < 4; ++x)
    {
      EXPECT_EQ(pixels[32 + 4 * y + x],
        static_cast<float>(wide.pixels[3 * (16 * (2 * y + 1) + 2 * (x + 2) + 1) + 2]));
    }
  }
  // 9 x 22 pixels: 4 / 9 of 22 is 9.8, which is cut off to 9; then 5 rows are left out, 2 above.
  const Picture tall = PatternPicture(9, 22);
  const Picture resized = Resample(tall, 9, 4, ResampleFilter::Nearest);
  const std::vector<float> middle = Preprocess(tall, processor);
  EXPECT_EQ(middle[0], static_cast<float>(resized.pixels[24]));
  EXPECT_EQ(middle[15], static_cast<float>(resized.pixels[24 + 45]));
}

TEST(ImageProcessor, AddsBlackWhereACropIsLarger)
{
  ImageProcessor processor = DefaultImageProcessor(Model(4, 3));
  processor.rescale = false;
  processor.normalize = false;
  processor.resize = false;
  processor.crop = true;
  // One row and one column; half a pixel more above and to the left.
  const std::vector<float> pixels = Preprocess({ 1, 2, 255, { 7, 8, 9, 4, 5, 6 } }, processor);
  EXPECT_THAT(std::vector<float>(pixels.begin(), pixels.begin() + 12),
    ElementsAre(0, 0, 0, 0, 0, 0, 0, 7, 4, 0, 0, 0));
}

TEST(ImageProcessor, RefusesWhatDoesNotEndInTheSizeOfTheModel)
{
  ImageProcessor processor = DefaultImageProcessor(Model());
  processor.height = 5;
  EXPECT_THAT(MessageOf<OptionError>([&]() { Preprocess(PatternPicture(3, 3), processor); }),
    HasSubstr("gives 6 x 5 pixels (width x height), expected 6 x 4 pixels"));
  processor.resize = false;
  EXPECT_THAT(MessageOf<OptionError>([&]() { Preprocess(PatternPicture(7, 3), processor); }),
    HasSubstr("gives 7 x 3 pixels (width x height), expected 6 x 4 pixels"));
}

}
