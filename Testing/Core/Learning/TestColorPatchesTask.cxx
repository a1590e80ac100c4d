#include "Learning/Internal/ColorPictureDrawing.h"
#include "Preprocessing/PreprocessPicture.h"
#include "TaskModel.h"
#include "Weights/ImageProcessor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr std::int64_t Side = ColorPictureSide;

using Color = std::array<double, 3>;

Color PixelOf(const Picture& picture, std::int64_t row, std::int64_t column)
{
  const std::size_t i = 3 * (row * Side + column);
  return { static_cast<double>(picture.pixels[i]), static_cast<double>(picture.pixels[i + 1]),
    static_cast<double>(picture.pixels[i + 2]) };
}

double Distance(const Color& a, const Color& b)
{
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// The largest distance of pixels that are next to each other along a step. Without edges this is
/// noise alone, at most 20 per channel, and a small gradient.
double LargestEdge(const Picture& picture, std::int64_t down, std::int64_t right)
{
  double largest = 0;
  for (std::int64_t row = 0; row + down < Side; ++row)
  {
    for (std::int64_t column = std::max<std::int64_t>(0, -right);
      column + std::max<std::int64_t>(0, right) < Side; ++column)
    {
      largest = std::max(largest,
        Distance(PixelOf(picture, row, column), PixelOf(picture, row + down, column + right)));
    }
  }
  return largest;
}

/// The mean color of a row or column.
Color MeanOf(const Picture& picture, bool isRow, std::int64_t index)
{
  Color mean = {};
  for (std::int64_t i = 0; i < Side; ++i)
  {
    const Color pixel = isRow ? PixelOf(picture, index, i) : PixelOf(picture, i, index);
    for (std::size_t channel = 0; channel < 3; ++channel)
    {
      mean[channel] += pixel[channel] / static_cast<double>(Side);
    }
  }
  return mean;
}

double Brightest(const Color& color)
{
  return *std::max_element(color.begin(), color.end());
}

/// The pictures that a task of this seed holds out.
std::vector<ColorPicture> HeldOutPicturesOf(std::uint64_t seed)
{
  LearningRandom random(seed, RandomPurpose::HeldOut);
  std::vector<ColorPicture> pictures;
  for (std::int64_t i = 0; i < HeldOutPictures; ++i)
  {
    pictures.push_back(DrawColorPicture(random, i));
  }
  return pictures;
}

constexpr double NoEdge = 80; // noise of 20 per channel makes 35, the steepest hue less than 40

TEST(ColorPictures, ShowTheirClasses)
{
  ASSERT_EQ(ColorPictureNames().size(), 10U);
  std::vector<int> counts(10);
  for (const auto& [picture, label] : HeldOutPicturesOf(3))
  {
    ASSERT_EQ(picture.height, Side);
    ASSERT_EQ(picture.width, Side);
    ASSERT_EQ(picture.maximum, 255);
    EXPECT_THAT(picture.pixels, testing::Each(testing::Le(255)));
    ++counts[label];
    const std::string& name = ColorPictureNames()[label];
    const double across = LargestEdge(picture, 0, 1);
    const double down = LargestEdge(picture, 1, 0);
    const bool isVertical = name.find("vertical") != std::string::npos;
    if (name.find("stripes") == 0)
    {
      const bool isDiagonal = name.find("diagonal") != std::string::npos;
      // Vertical stripes stand beside each other.
      EXPECT_EQ(across > NoEdge, isVertical || isDiagonal) << name;
      EXPECT_EQ(down > NoEdge, !isVertical || isDiagonal) << name;
      if (isDiagonal)
      {
        EXPECT_LT(std::min(LargestEdge(picture, 1, 1), LargestEdge(picture, 1, -1)), NoEdge);
      }
    }
    else if (label >= 7)
    {
      EXPECT_GT(across, NoEdge) << name;
      EXPECT_GT(down, NoEdge) << name;
    }
    else
    {
      EXPECT_LT(across, NoEdge) << name;
      EXPECT_LT(down, NoEdge) << name;
      const Color first = MeanOf(picture, isVertical, 0);
      const Color last = MeanOf(picture, isVertical, Side - 1);
      EXPECT_GT(Distance(first, last), 50) << name;
      EXPECT_LT(
        Distance(MeanOf(picture, !isVertical, 0), MeanOf(picture, !isVertical, Side - 1)), 20)
        << name;
      const double change = std::abs(Brightest(first) - Brightest(last));
      EXPECT_EQ(change > 80, name.find("brightness") == 0) << name;
    }
  }
  EXPECT_THAT(counts, testing::Each(20));
}

/// The share of the box around a shape that it fills: pi / 4, 1 and 1 / 2.
TEST(ColorPictures, ShapesFillTheirBoxes)
{
  for (const auto& [picture, label] : HeldOutPicturesOf(4))
  {
    if (label < 7)
    {
      continue;
    }
    // The background is the color of more than half of the pixels of the frame.
    Color background = {};
    for (std::size_t channel = 0; channel < 3; ++channel)
    {
      std::vector<double> frame;
      for (std::int64_t i = 0; i < Side; ++i)
      {
        frame.push_back(PixelOf(picture, 0, i)[channel]);
        frame.push_back(PixelOf(picture, Side - 1, i)[channel]);
        frame.push_back(PixelOf(picture, i, 0)[channel]);
        frame.push_back(PixelOf(picture, i, Side - 1)[channel]);
      }
      std::nth_element(frame.begin(), frame.begin() + 64, frame.end());
      background[channel] = frame[64];
    }
    std::int64_t top = Side;
    std::int64_t bottom = -1;
    std::int64_t left = Side;
    std::int64_t right = -1;
    double filled = 0;
    for (std::int64_t row = 0; row < Side; ++row)
    {
      for (std::int64_t column = 0; column < Side; ++column)
      {
        if (Distance(PixelOf(picture, row, column), background) > 64)
        {
          top = std::min(top, row);
          bottom = std::max(bottom, row);
          left = std::min(left, column);
          right = std::max(right, column);
          filled += 1;
        }
      }
    }
    const auto box = static_cast<double>((bottom - top + 1) * (right - left + 1));
    const std::array<double, 3> shares = { std::acos(-1.) / 4, 1, 0.5 };
    EXPECT_NEAR(filled / box, shares[label - 7], 0.13);
  }
}

TEST(ColorPatchesTask, GivesWhatPreprocessMakesOfThePictures)
{
  const auto task = MakeTask(OptionsOf(TaskKind::ColorPatches, 6));
  TransformerConfig config;
  task->Configure(config);
  const TrainingBatch batch = task->MakeHeldOut();
  const std::vector<ColorPicture> pictures = HeldOutPicturesOf(6);
  ASSERT_EQ(batch.input.images, static_cast<std::int64_t>(pictures.size()));
  const ImageProcessor processor =
    ParseImageProcessor(task->Files().at(ImageProcessorFile), ImageProcessorFile, config);
  for (std::size_t i = 0; i < pictures.size(); ++i)
  {
    const std::vector<float> pixels = Preprocess(pictures[i].picture, processor);
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(),
      batch.input.pixels.begin() + static_cast<std::ptrdiff_t>(i * pixels.size())));
    EXPECT_EQ(batch.targets[65 * i], pictures[i].label);
    EXPECT_EQ(batch.targets[65 * i + 1], -1);
  }
  EXPECT_EQ(processor.mean, (std::array<double, 3>{ 0.5, 0.5, 0.5 }));
  EXPECT_EQ(processor.deviation, (std::array<double, 3>{ 0.5, 0.5, 0.5 }));
}

/// A ViT that answers the first class always: half of the hue gradients.
TEST(ColorPatchesTask, MeasuresGroupsOfClasses)
{
  const auto task = MakeTask(OptionsOf(TaskKind::ColorPatches));
  ArchitectureOptions architecture;
  architecture.layers = 1;
  architecture.heads = 2;
  architecture.modelDimension = 8;
  architecture.mlpDimension = 12;
  const TaskModel model(*task, architecture);
  EXPECT_THAT(task->MeasureNames(), testing::ElementsAre("Hue", "Brightness", "Stripes", "Shapes"));
  EXPECT_THAT(task->Measure(model.Make(), 2), testing::ElementsAre(0.5, 0, 0, 0));
}

}
