#include "VolumePatchesTask.h"

#include "Index.h"
#include "KnownKeys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t BlockSide = 4; ///< blocks of a volume, and voxels of a block
constexpr std::int64_t Blocks = BlockSide * BlockSide * BlockSide;
constexpr std::int64_t Voxels = Blocks; ///< of a block
constexpr std::int64_t VolumeImageSide = 8;
constexpr std::int64_t BlockShapes = 4;

using Block = std::array<std::uint8_t, Voxels>;

/// A ball (shape 0), or a rod along x, y or z.
Block DrawBlock(LearningRandom& random, std::int64_t shape)
{
  constexpr double noise = 0.1;
  std::array<double, 3> center = {};
  for (double& coordinate : center)
  {
    coordinate = random.Uniform(1.2, 1.8);
  }
  const double radius = shape == 0 ? random.Uniform(1.3, 1.8) : random.Uniform(0.8, 1.3);
  Block block = {};
  for (std::size_t voxel = 0; voxel < block.size(); ++voxel)
  {
    const auto place = static_cast<std::int64_t>(voxel);
    const std::array<std::int64_t, 3> index = { place % BlockSide, place / BlockSide % BlockSide,
      place / (BlockSide * BlockSide) };
    double square = 0;
    for (std::int64_t axis = 0; axis < 3; ++axis)
    {
      const double difference = static_cast<double>(index[axis]) - center[axis];
      square += axis + 1 == shape ? 0 : difference * difference;
    }
    const double density = std::clamp(radius + 0.5 - std::sqrt(square), 0., 1.);
    const double value = std::clamp(density + random.Uniform(-noise, noise), 0., 1.);
    block[voxel] = static_cast<std::uint8_t>(std::lround(255 * value));
  }
  return block;
}

struct Volume
{
  std::array<Block, Blocks> blocks;
  std::array<std::int64_t, Blocks> shapes;
};

Volume DrawVolume(LearningRandom& random)
{
  Volume volume = {};
  for (std::size_t p = 0; p < volume.blocks.size(); ++p)
  {
    volume.shapes[p] = random.Integer(BlockShapes);
    volume.blocks[p] = DrawBlock(random, volume.shapes[p]);
  }
  return volume;
}

void AddPixels(std::vector<float>& pixels, const Volume& volume)
{
  constexpr float half = 127.5F;
  for (std::int64_t voxel = 0; voxel < Voxels; ++voxel)
  {
    for (const Block& block : volume.blocks)
    {
      pixels.push_back(static_cast<float>(block[voxel]) / half - 1);
    }
  }
}

/// An array of the cells of a volume: value(block, voxel of the block).
template<class Function>
std::string CellArray(const std::string& name, const Function& value)
{
  std::string text =
    R"(        <DataArray type="UInt8" Name=")" + name + R"(" format="ascii">)" + "\n";
  constexpr std::int64_t size = BlockSide * BlockSide;
  for (std::int64_t z = 0; z < size; ++z)
  {
    for (std::int64_t y = 0; y < size; ++y)
    {
      for (std::int64_t x = 0; x < size; ++x)
      {
        const std::int64_t block =
          x / BlockSide + BlockSide * (y / BlockSide) + BlockSide * BlockSide * (z / BlockSide);
        const std::int64_t voxel =
          x % BlockSide + BlockSide * (y % BlockSide) + BlockSide * BlockSide * (z % BlockSide);
        text += std::to_string(value(block, voxel)) + (x + 1 < size ? " " : "\n");
      }
    }
  }
  return text + "        </DataArray>\n";
}

std::string VolumeText(const Volume& volume)
{
  return R"(<VTKFile type="ImageData" version="0.1">
  <ImageData WholeExtent="0 16 0 16 0 16" Origin="0 0 0" Spacing="1 1 1">
    <Piece Extent="0 16 0 16 0 16">
      <CellData Scalars="Density">
)" +
         CellArray("Density", [&](std::int64_t block, std::int64_t voxel)
           { return static_cast<int>(volume.blocks[block][voxel]); }) +
         CellArray("Token", [](std::int64_t block, std::int64_t /*voxel*/) { return block + 1; }) +
         R"(      </CellData>
    </Piece>
  </ImageData>
</VTKFile>
)";
}

class VolumePatchesTask : public SequenceTask
{
public:
  explicit VolumePatchesTask(const TaskOptions& options)
    : SequenceTask(options.seed, HeldOutVolumes)
    , Seed(options.seed)
  {
    RequireNoVocabulary(options, "VolumePatches");
    RequireFixed("Context", options.context, Blocks + 1);
  }

  void Configure(TransformerConfig& config) const override
  {
    SetImages(config, { Voxels, VolumeImageSide, BlockShapes });
  }

  std::vector<std::string> MeasureNames() const override
  {
    return { "Right Block", "Weight There" };
  }

  std::vector<double> Measure(const Transformer& model, int threads) const override
  {
    const TransformerInput input = this->MakeHeldOut().input;
    std::vector<std::int64_t> keys;
    for (std::int64_t image = 0; image < input.images; ++image)
    {
      keys.push_back(-1);
      for (std::int64_t p = 0; p < Blocks; ++p)
      {
        keys.push_back(Blocks - p);
      }
    }
    const KnownKeyAttention attention = MeasureKnownKeys(model, input, keys, threads);
    return { attention.first, attention.weight };
  }

  std::map<std::string, std::string> Files() const override
  {
    LearningRandom random(this->Seed, RandomPurpose::HeldOut);
    const Volume volume = DrawVolume(random);
    TransformerInput input;
    AddPixels(input.pixels, volume);
    return { { "volume.vti", VolumeText(volume) },
      { "pixel_values.safetensors",
        PixelFile(input, { 1, Voxels, VolumeImageSide, VolumeImageSide }) } };
  }

  std::vector<std::string> Labels() const override
  {
    return { "ball", "rod along x", "rod along y", "rod along z" };
  }

protected:
  void Add(TrainingBatch& batch, LearningRandom& random, std::int64_t /*index*/) const override
  {
    const Volume volume = DrawVolume(random);
    AddPixels(batch.input.pixels, volume);
    ++batch.input.images;
    batch.targets.push_back(-1);
    batch.targets.insert(batch.targets.end(), volume.shapes.rbegin(), volume.shapes.rend());
  }

private:
  static constexpr std::int64_t HeldOutVolumes = 64;
  std::uint64_t Seed;
};

}

std::unique_ptr<LearningTask> MakeVolumePatchesTask(const TaskOptions& options)
{
  return std::make_unique<VolumePatchesTask>(options);
}

}
