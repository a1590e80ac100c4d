#pragma once

#include "ModelsOracle.h"
#include "RecordTransformer.h"
#include "Safetensors.h"
#include "TransformerInput.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace atlas::test
{

/// What the original code computed with a model of pictures among words; see "Images with words" in
/// the README beside it.
class VisionOracle
{
public:
  explicit VisionOracle(const std::string& name)
    : Expected(Folder(name) / "expected.safetensors")
  {
    const TensorView& ids = this->Get("input_ids");
    const std::vector<std::int64_t> tokens = ids.ToInteger();
    const std::vector<std::int64_t> mask = this->Get("attention_mask").ToInteger();
    this->Input.tokens.resize(ids.shape[0]);
    for (std::size_t i = 0; i < tokens.size(); ++i)
    {
      if (mask[i] != 0) // padding is behind
      {
        this->Input.tokens[i / static_cast<std::size_t>(ids.shape[1])].push_back(tokens[i]);
      }
    }
    if (this->Has("image_grid_thw"))
    {
      this->AddExtents("pixel_values", "image_grid_thw", false);
      this->AddExtents("pixel_values_videos", "video_grid_thw", true);
    }
    else
    {
      this->AddTiles();
    }
  }

  static std::filesystem::path Folder(const std::string& name)
  {
    return ModelsOracle("transformers/" + name);
  }

  bool Has(const std::string& name) const { return this->Expected.GetTensors().count(name) != 0; }
  const TensorView& Get(const std::string& name) const
  {
    return this->Expected.GetTensors().at(name);
  }

  /// Row i of a tensor of integers with two axes.
  std::vector<std::int64_t> Row(const std::string& name, std::int64_t i) const
  {
    const std::vector<std::int64_t> all = this->Get(name).ToInteger();
    const auto columns = static_cast<std::ptrdiff_t>(this->Get(name).shape.back());
    return { all.begin() + i * columns, all.begin() + (i + 1) * columns };
  }

  TransformerInput Input;

private:
  SafetensorsFile Expected;

  void AddPixels(const std::string& name, std::uint64_t count)
  {
    const std::size_t first = this->Input.pixels.size();
    this->Input.pixels.resize(first + count);
    this->Get(name).ToFloat(0, count, this->Input.pixels.data() + first);
  }

  void AddExtents(const std::string& pixels, const std::string& grids, bool isFilm)
  {
    if (!this->Has(grids))
    {
      return;
    }
    for (std::int64_t i = 0; i < this->Get(grids).shape[0]; ++i)
    {
      const std::vector<std::int64_t> grid = this->Row(grids, i);
      this->Input.extents.push_back({ grid[0], grid[1], grid[2], isFilm, 1 });
    }
    this->AddPixels(pixels, this->Get(pixels).Count());
  }

  void AddTiles()
  {
    const Shape& shape = this->Get("pixel_values").shape;
    const bool hasTiles = this->Has("tiles");
    this->Input.images = hasTiles ? this->Get("tiles").shape[0] : shape[0];
    for (std::int64_t i = 0; i < this->Input.images; ++i)
    {
      const std::vector<std::int64_t> tile =
        hasTiles ? this->Row("tiles", i) : std::vector<std::int64_t>{ i, -1, -1, 1, 1 };
      this->Input.tiles.push_back({ tile[0], tile[1], tile[2], tile[3], tile[4] });
    }
    // SmolVLM: what follows the tiles of the first text is empty.
    const std::size_t axes = shape.size();
    this->AddPixels(
      "pixel_values", static_cast<std::uint64_t>(
                        this->Input.images * shape[axes - 3] * shape[axes - 2] * shape[axes - 1]));
  }
};

inline constexpr double VisionTolerance = 2e-5;       ///< of scores, attention and head outputs
inline constexpr double VisionStreamTolerance = 2e-4; ///< of hidden states and logits

/// Everything that the original code gives.
inline RecordOptions AllOfPictures()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  return options;
}

/// Not with std::max, which would lose NaN.
inline void RaiseTo(double& largest, double difference)
{
  largest = std::abs(difference) <= largest ? largest : std::abs(difference);
}

}
