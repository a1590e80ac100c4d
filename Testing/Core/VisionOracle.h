#pragma once

#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Preprocessing/TransformerInput.h"
#include "Run/RecordTransformer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace atlas::test
{

/// What the original code computed with a model of pictures among words; see "Images with words" in
/// the README beside it.
class VisionOracle : public OracleFile
{
public:
  explicit VisionOracle(const std::string& name)
    : OracleFile(Folder(name) / "expected.safetensors")
  {
    this->Input.tokens =
      this->IntegersAt("input_ids", this->KeptPlaces("attention_mask", this->ShapeOf("input_ids")));
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

  /// Row i of a tensor of integers with two axes.
  std::vector<std::int64_t> Row(const std::string& name, std::int64_t i) const
  {
    const std::vector<std::int64_t> all = this->Integers(name);
    const std::int64_t columns = this->ShapeOf(name).back();
    return { all.begin() + i * columns, all.begin() + (i + 1) * columns };
  }

  TransformerInput Input;

private:
  void AddPixels(const std::string& name, std::uint64_t count)
  {
    const std::size_t first = this->Input.pixels.size();
    this->Input.pixels.resize(first + count);
    this->Get(name).ToFloat(0, count, this->Input.pixels.data() + first);
  }

  void AddExtents(const std::string& pixels, const std::string& grids, bool isVideo)
  {
    if (!this->Has(grids))
    {
      return;
    }
    for (std::int64_t i = 0; i < this->Get(grids).shape[0]; ++i)
    {
      const std::vector<std::int64_t> grid = this->Row(grids, i);
      this->Input.extents.push_back({ grid[0], grid[1], grid[2], isVideo, 1 });
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

/// Everything that the original code gives.
inline RecordOptions AllOfPictures()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  return options;
}

}
