// Pixels as the processors of transformers 5 make them, with Pillow and with torchvision, to the
// byte. The layout of the files is in Testing/Oracle/v5/README.md.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/MappedFile.h"
#include "Files/PictureFile.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Preprocessing/PatchGrid.h"
#include "Preprocessing/PreprocessPicture.h"
#include "Preprocessing/VisionPixels.h"
#include "TestName.h"
#include "VisionModels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// A processor, the model that it is for, and whether its pictures are among words.
struct Processed
{
  std::string name;
  ImageSize image = { 56, 56 }; ///< 0: of any size
  std::int64_t patch = 14;
  std::int64_t merge = 1;
  std::int64_t frames = 1;
  bool isAmongWords = false;
};

class PixelMakersOf : public testing::TestWithParam<Processed>
{
protected:
  std::filesystem::path Folder = AnyOracle("v5/processors");
  OracleFile Expected{ this->Folder / "expected.safetensors" };
  std::filesystem::path File = this->Folder / this->GetParam().name / "preprocessor_config.json";

  TransformerConfig Config() const
  {
    const Processed& model = this->GetParam();
    TransformerConfig config =
      SeeingModel({ model.name, model.image.first, model.patch, model.merge, model.frames });
    auto vision = std::make_shared<VisionConfig>(*config.vision);
    if (model.name == "llava_onevision")
    {
      vision->gridSizes = { { 56, 112 }, { 112, 56 }, { 112, 112 } };
    }
    config.vision = vision;
    return config;
  }

  std::vector<float> Pixels(const Picture& picture, PixelMaker maker) const
  {
    const Processed& model = this->GetParam();
    const TransformerConfig config = this->Config();
    if (model.isAmongWords)
    {
      VisionProcessor processor = ParseVisionProcessor(ReadFile(this->File), model.name, config);
      processor.image.maker = maker;
      VisionPixels pixels;
      AddPicture(picture, processor, pixels);
      return pixels.pixels;
    }
    TransformerConfig encoder = *config.vision->encoder;
    encoder.imageWidth = model.image.second;
    ImageProcessor processor = ParseImageProcessor(ReadFile(this->File), model.name, encoder);
    processor.maker = maker;
    if (!encoder.ReadsAnySize())
    {
      return Preprocess(picture, processor);
    }
    TransformerInput input;
    AddPatches(picture, encoder, processor, input);
    return input.pixels;
  }

  /// Ours in the order of the original, which has zeros behind.
  std::vector<float> InOrder(std::vector<float> pixels, const Shape& shape) const
  {
    const Processed& model = this->GetParam();
    const std::int64_t side = model.patch;
    std::vector<float> ordered = pixels;
    if (model.name == "llava_onevision") // all of the picture first
    {
      const auto size = static_cast<std::ptrdiff_t>(shape[2] * shape[3] * shape[4]);
      std::rotate(ordered.begin(), ordered.end() - size, ordered.end());
    }
    for (std::size_t i = 0; model.name == "pixtral" && i < pixels.size(); ++i)
    {
      const auto place = static_cast<std::int64_t>(i);
      const std::int64_t patch = place / (side * side * 3);
      const std::int64_t channel = place / (side * side) % 3;
      const std::int64_t row = patch / (shape[3] / side) * side + place / side % side;
      const std::int64_t column = patch % (shape[3] / side) * side + place % side;
      ordered[(channel * shape[2] + row) * shape[3] + column] = pixels[i];
    }
    return ordered;
  }
};

/// Those whose settings are here.
std::vector<Processed> AllProcessed()
{
  const std::vector<Processed> all = { { "vit", { 48, 48 } }, { "siglip" },
    { "siglip-bilinear", { 56, 48 } }, { "deit" }, { "beit", { 48, 48 } }, { "dinov2" }, { "clip" },
    { "siglip2", { 0, 0 }, 8 }, { "llava", { 56, 56 }, 14, 1, 1, true },
    { "gemma3", { 56, 56 }, 14, 1, 1, true }, { "internvl", { 56, 56 }, 14, 1, 1, true },
    { "smolvlm", { 56, 56 }, 14, 1, 1, true }, { "idefics3", { 56, 56 }, 14, 1, 1, true },
    { "qwen2_vl", { 0, 0 }, 14, 2, 2, true }, { "pixtral", { 0, 0 }, 14, 1, 1, true },
    { "llava_onevision", { 56, 56 }, 14, 1, 1, true } };
  std::vector<Processed> here;
  std::copy_if(all.begin(), all.end(), std::back_inserter(here), [](const Processed& one)
    { return std::filesystem::exists(AnyOracle("v5/processors") / one.name); });
  return here;
}

INSTANTIATE_TEST_SUITE_P(, PixelMakersOf, testing::ValuesIn(AllProcessed()),
  [](const auto& test) { return TestName(test.param.name); });

TEST_P(PixelMakersOf, AreTheOriginals)
{
  int compared = 0;
  for (int number = 0; number < 3; ++number)
  {
    const std::string file = "picture-" + std::to_string(number) + ".png";
    for (const auto& [maker, kind] :
      { std::pair(PixelMaker::Pillow, "pil"), std::pair(PixelMaker::Torchvision, "torchvision") })
    {
      const std::string name =
        this->GetParam().name + "." + kind + "." + std::to_string(number) + ".pixel_values";
      if (!this->Expected.Has(name))
      {
        continue;
      }
      const Picture picture = ReadPicture((this->Folder / file).string()).picture;
      const std::vector<float> found =
        this->InOrder(this->Pixels(picture, maker), this->Expected.ShapeOf(name));
      const std::vector<float> expected = this->Expected.Floats(name);
      ASSERT_LE(found.size(), expected.size());
      EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin())) << name;
      EXPECT_TRUE(std::all_of(expected.begin() + static_cast<std::ptrdiff_t>(found.size()),
        expected.end(), [](float value) { return value == 0; }));
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

/// By hand: an odd pixel of a border is at the right or below, where Pillow's processors have it at
/// the left and above.
TEST(PixelMakers, SmallPicturesAreInTheMiddle)
{
  const Picture picture = { 1, 2, 255, { 255, 255, 255, 51, 51, 51 } };
  ImageProcessor processor;
  processor.resize = false;
  processor.crop = true;
  processor.cropHeight = processor.modelHeight = 2;
  processor.cropWidth = processor.modelWidth = 3;
  processor.normalize = false;
  const auto first = [&](PixelMaker maker)
  {
    processor.maker = maker;
    const std::vector<float> pixels = Preprocess(picture, processor);
    return std::vector<float>(pixels.begin(), pixels.begin() + 6);
  };
  EXPECT_THAT(first(PixelMaker::Torchvision),
    testing::Pointwise(testing::FloatEq(), { 1.F, 0.2F, 0.F, 0.F, 0.F, 0.F }));
  EXPECT_THAT(first(PixelMaker::Pillow),
    testing::Pointwise(testing::FloatEq(), { 0.F, 0.F, 0.F, 0.F, 1.F, 0.2F }));
}

TEST(PixelMakers, TorchvisionHasNotAllFilters)
{
  const Picture picture = { 2, 2, 255, std::vector<std::uint16_t>(12, 7) };
  for (const ResampleFilter filter : { ResampleFilter::Box, ResampleFilter::Hamming })
  {
    EXPECT_THAT(
      MessageOf<OptionError>([&] { Resample(picture, 1, 1, filter, PixelMaker::Torchvision); }),
      testing::HasSubstr("expected a filter that torchvision has"));
  }
}

/// How pictures were made is part of the settings that a recording keeps.
TEST(PixelMakers, AreKeptInSettings)
{
  ImageProcessor processor;
  processor.maker = PixelMaker::Torchvision;
  processor.height = processor.width = processor.cropHeight = processor.cropWidth = 4;
  TransformerConfig config;
  config.channels = 3;
  config.imageHeight = config.imageWidth = 4;
  EXPECT_EQ(ParseImageProcessor(ToJson(processor), "json", config).maker, PixelMaker::Torchvision);
  processor.maker = PixelMaker::Pillow;
  EXPECT_EQ(ToJson(processor).find("pixels"), std::string::npos);
}

}
