#include "KnownKeys.h"
#include "PointCloudTask.h"
#include "Safetensors.h"
#include "TaskModel.h"
#include "VolumePatchesTask.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The numbers of an array in a file of ParaView.
std::vector<double> ArrayIn(const std::string& text, const std::string& attribute)
{
  const std::size_t begin = text.find('>', text.find(attribute)) + 1;
  std::istringstream numbers(text.substr(begin, text.find('<', begin) - begin));
  std::vector<double> values;
  for (double value = 0; numbers >> value;)
  {
    values.push_back(value);
  }
  return values;
}

std::vector<double> PixelsIn(const LearningTask& task)
{
  const std::string file = task.Files().at("pixel_values.safetensors");
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data()); // NOLINT: bytes of a text
  return ParseSafetensors(bytes, file.size(), "pixels").tensors.at("pixel_values").ToDouble();
}

/// A ViT of one head whose queries are positions p and whose keys are the positions 65 - p.
TaskModel OppositeModel(const LearningTask& task)
{
  constexpr std::int64_t tokens = 65;
  ArchitectureOptions architecture;
  architecture.layers = 1;
  architecture.heads = 1;
  architecture.modelDimension = tokens;
  architecture.mlpDimension = 1;
  TaskModel model(task, architecture);
  const std::string layer = "vit.encoder.layer.0.";
  for (std::int64_t p = 0; p < tokens; ++p)
  {
    model.Set("vit.embeddings.position_embeddings", p, p, 1);
    model.Set(layer + "layernorm_before.weight", 0, p, 1);
    model.Set(layer + "attention.attention.query.weight", p, p, 3);
    model.Set(layer + "attention.attention.key.weight", p, (tokens - p) % tokens, 1);
  }
  return model;
}

ArchitectureOptions SmallVit()
{
  ArchitectureOptions architecture;
  architecture.layers = 1;
  architecture.heads = 2;
  architecture.modelDimension = 8;
  architecture.mlpDimension = 12;
  return architecture;
}

TEST(KnownKeys, AreMeasuredByFirstPlaceAndWeight)
{
  const auto task = MakeTask(OptionsOf(TaskKind::VolumePatches));
  const TaskModel model = OppositeModel(*task);
  const TransformerInput input = task->MakeBatch(0, 1).input;
  std::vector<std::int64_t> keys(65, -1);
  keys[1] = 64;
  keys[2] = 63;
  keys[3] = 5;
  keys[40] = 40;
  const KnownKeyAttention half = MeasureKnownKeys(model.Make(), input, keys, 1);
  EXPECT_DOUBLE_EQ(half.first, 0.5);
  EXPECT_NEAR(half.weight, 0.5, 1e-6);
}

TEST(VolumePatchesTask, BlocksTellTheShapeOppositeTheCenter)
{
  constexpr std::int64_t blocks = 64;
  const auto task = MakeTask(OptionsOf(TaskKind::VolumePatches, 1));
  const TrainingBatch batch = task->MakeHeldOut();
  ASSERT_EQ(batch.input.images, 64);
  std::array<int, 4> counts = {};
  for (std::int64_t image = 0; image < batch.input.images; ++image)
  {
    EXPECT_EQ(batch.targets[image * (blocks + 1)], -1) << "the class token";
    for (std::int64_t i = 0; i < blocks; ++i)
    {
      const auto voxel = [&](std::int64_t x, std::int64_t y, std::int64_t z)
      { return batch.input.pixels[(image * 64 + x + 4 * y + 16 * z) * blocks + i]; };
      // The largest step from a voxel to the next along each axis; noise makes 0.4 of 2.
      std::array<float, 3> steps = {};
      for (std::int64_t a = 0; a < 3; ++a)
      {
        for (std::int64_t b = 0; b < 4; ++b)
        {
          for (std::int64_t c = 0; c < 4; ++c)
          {
            steps[0] = std::max(steps[0], std::abs(voxel(a, b, c) - voxel(a + 1, b, c)));
            steps[1] = std::max(steps[1], std::abs(voxel(b, a, c) - voxel(b, a + 1, c)));
            steps[2] = std::max(steps[2], std::abs(voxel(b, c, a) - voxel(b, c, a + 1)));
          }
        }
      }
      const std::int64_t x = i % 4;
      const std::int64_t y = i / 4 % 4;
      const std::int64_t z = i / 16;
      const std::int64_t opposite = (3 - x) + 4 * (3 - y) + 16 * (3 - z);
      const std::int64_t shape = batch.targets[image * (blocks + 1) + 1 + opposite];
      ASSERT_GE(shape, 0);
      ++counts[shape];
      for (std::int64_t axis = 0; axis < 3; ++axis)
      {
        EXPECT_EQ(steps[axis] < 0.42F, shape == axis + 1) << "shape " << shape;
      }
    }
  }
  for (const int count : counts)
  {
    EXPECT_NEAR(count, 1024, 5 * std::sqrt(1024 * 0.75));
  }
}

TEST(VolumePatchesTask, FilesAreTheFirstHeldOutVolume)
{
  const auto task = MakeTask(OptionsOf(TaskKind::VolumePatches, 1));
  const std::vector<double> pixels = PixelsIn(*task);
  const std::vector<float> heldOut = task->MakeHeldOut().input.pixels;
  ASSERT_EQ(pixels.size(), 4096U);
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), heldOut.begin()));
  const std::string text = task->Files().at("volume.vti");
  const std::vector<double> density = ArrayIn(text, "Name=\"Density\"");
  const std::vector<double> tokens = ArrayIn(text, "Name=\"Token\"");
  ASSERT_EQ(density.size(), 4096U);
  ASSERT_EQ(tokens.size(), 4096U);
  for (std::int64_t cell = 0; cell < 4096; ++cell)
  {
    const std::int64_t x = cell % 16;
    const std::int64_t y = cell / 16 % 16;
    const std::int64_t z = cell / 256;
    const std::int64_t block = x / 4 + 4 * (y / 4) + 16 * (z / 4);
    const std::int64_t voxel = x % 4 + 4 * (y % 4) + 16 * (z % 4);
    EXPECT_EQ(tokens[cell], static_cast<double>(block + 1));
    EXPECT_NEAR(density[cell], 127.5 * (pixels[voxel * 64 + block] + 1), 1e-4);
  }
}

TEST(VolumePatchesTask, MeasuresAttentionOnTheBlockOpposite)
{
  const auto task = MakeTask(OptionsOf(TaskKind::VolumePatches));
  EXPECT_THAT(task->MeasureNames(), testing::ElementsAre("Right Block", "Weight There"));
  EXPECT_THAT(task->Measure(TaskModel(*task, SmallVit()).Make(), 2),
    testing::ElementsAre(0, testing::DoubleNear(1. / 65, 1e-7)));
  EXPECT_THAT(task->Measure(OppositeModel(*task).Make(), 2),
    testing::ElementsAre(1, testing::DoubleNear(1, 1e-6)));
}

TEST(PointCloudTask, PointsTellTheColorOfTheNearestLandmark)
{
  constexpr std::int64_t points = 144;
  const auto task = MakeTask(OptionsOf(TaskKind::PointCloud, 1));
  const TrainingBatch batch = task->MakeHeldOut();
  ASSERT_EQ(batch.input.images, 64);
  for (std::int64_t image = 0; image < batch.input.images; ++image)
  {
    const auto value = [&](std::int64_t channel, std::int64_t point)
    { return static_cast<double>(batch.input.pixels[(image * 9 + channel) * points + point]); };
    std::int64_t landmarks = 0;
    EXPECT_EQ(batch.targets[image * (points + 1)], -1) << "the class token";
    for (std::int64_t i = 0; i < points; ++i)
    {
      EXPECT_NEAR(value(3, i),
        value(0, i) * value(0, i) + value(1, i) * value(1, i) + value(2, i) * value(2, i), 1e-6);
      const bool isLandmark = value(4, i) == 1;
      landmarks += isLandmark ? 1 : 0;
      double nearest = std::numeric_limits<double>::infinity();
      std::int64_t color = -1;
      for (std::int64_t j = 0; j < points && !isLandmark; ++j)
      {
        const double distance = std::hypot(
          value(0, i) - value(0, j), value(1, i) - value(1, j), value(2, i) - value(2, j));
        if (value(4, j) == 1 && distance < nearest)
        {
          nearest = distance;
          for (color = 0; value(5 + color, j) != 1; ++color)
          {
          }
        }
      }
      EXPECT_EQ(batch.targets[image * (points + 1) + 1 + i], color);
      EXPECT_EQ(value(5, i) + value(6, i) + value(7, i) + value(8, i), value(4, i));
    }
    EXPECT_EQ(landmarks, 12);
  }
}

TEST(PointCloudTask, FilesAreTheFirstHeldOutCloud)
{
  constexpr std::int64_t points = 144;
  const auto task = MakeTask(OptionsOf(TaskKind::PointCloud, 1));
  const std::vector<double> pixels = PixelsIn(*task);
  const TrainingBatch heldOut = task->MakeHeldOut();
  ASSERT_EQ(pixels.size(), 9U * points);
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), heldOut.input.pixels.begin()));
  const std::string text = task->Files().at("points.vtp");
  const std::vector<double> places = ArrayIn(text, "NumberOfComponents=\"3\"");
  const std::vector<double> tokens = ArrayIn(text, "Name=\"Token\"");
  const std::vector<double> colors = ArrayIn(text, "Name=\"Color\"");
  const std::vector<double> nearest = ArrayIn(text, "Name=\"Nearest\"");
  const std::vector<double> landmarks = ArrayIn(text, "Name=\"Landmark\"");
  ASSERT_EQ(places.size(), 3U * points);
  for (std::int64_t i = 0; i < points; ++i)
  {
    for (std::int64_t axis = 0; axis < 3; ++axis)
    {
      EXPECT_EQ(
        static_cast<float>(places[3 * i + axis]), static_cast<float>(pixels[axis * points + i]));
    }
    EXPECT_EQ(tokens[i], static_cast<double>(i + 1));
    EXPECT_EQ(landmarks[i], pixels[4 * points + i]);
    const auto near = static_cast<std::int64_t>(nearest[i]) - 1;
    EXPECT_EQ(landmarks[near], 1);
    EXPECT_EQ(pixels[(5 + static_cast<std::int64_t>(colors[i])) * points + near], 1);
    EXPECT_EQ(near == i, landmarks[i] == 1);
    if (near != i)
    {
      EXPECT_EQ(static_cast<double>(heldOut.targets[i + 1]), colors[i]);
    }
  }
}

TEST(PointCloudTask, MeasuresAttentionOnTheNearestLandmark)
{
  const auto task = MakeTask(OptionsOf(TaskKind::PointCloud));
  EXPECT_THAT(task->MeasureNames(), testing::ElementsAre("Nearest Landmark", "Weight There"));
  EXPECT_THAT(task->Measure(TaskModel(*task, SmallVit()).Make(), 2),
    testing::ElementsAre(0, testing::DoubleNear(1. / 145, 1e-7)));
}

}
