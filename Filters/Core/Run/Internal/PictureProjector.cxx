#include "PictureProjector.h"

#include "Base/Index.h"
#include "Preprocessing/PictureTokens.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"
#include "Weights/ResizedPositions.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace atlas
{
namespace
{

using Norm = VisionConfig::ProjectorNorm;

/// What a projector reads: one or several matrices of vectors of patches.
using Encoded = std::vector<SharedMatrix>;

/// The vectors of the patches of each token, one after another, or their means.
std::vector<float> JoinPatches(
  const VisionConfig& vision, const PackedSequences& sequences, const Encoded& encoded)
{
  const TransformerConfig& encoder = *vision.encoder;
  const std::int64_t d = encoder.modelDimension;
  const std::int64_t square = vision.merge * vision.merge;
  std::vector<float> joined;
  joined.reserve(sequences.Rows() * d * static_cast<std::int64_t>(encoded.size()));
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    const std::int64_t first =
      sequences.offsets[s] - sequences.FirstRow() + encoder.TokensBeforePatches();
    const bool isAnySize = encoder.ReadsAnySize(); // their patches are in order of squares
    const std::int64_t columns = encoder.PatchColumns() / vision.merge * vision.merge;
    const std::int64_t patches =
      isAnySize ? sequences.Length(s) : encoder.PatchRows() / vision.merge * vision.merge * columns;
    for (std::int64_t i = 0; i < patches; ++i)
    {
      std::int64_t patch = i;
      if (!isAnySize)
      {
        const auto [row, column] = PlaceOfPatch(i, columns, vision.merge);
        patch = row * encoder.PatchColumns() + column;
      }
      for (const SharedMatrix& matrix : encoded)
      {
        const float* from = matrix.Row(first + patch);
        if (!vision.averages || i % square == 0)
        {
          joined.insert(joined.end(), from, from + d);
        }
        else
        {
          std::transform(from, from + d, joined.end() - d, joined.end() - d, std::plus<>());
        }
      }
    }
  }
  if (vision.averages)
  {
    for (float& sum : joined)
    {
      sum /= static_cast<float>(square);
    }
  }
  return joined;
}

/// The same components of all patches of a token one after another, in place of their vectors.
void ByComponents(std::int64_t d, std::vector<float>& joined, std::int64_t square)
{
  std::vector<float> vectors(d * square);
  for (auto token = joined.begin(); token != joined.end(); token += d * square)
  {
    std::copy_n(token, d * square, vectors.begin());
    for (std::int64_t i = 0; i < d * square; ++i)
    {
      token[i] = vectors[i % square * d + i / square];
    }
  }
}

SharedMatrix Project(const Transformer& model, const ProjectorTensors& tensors, Norm norm,
  const PackedSequences& sequences, const Encoded& encoded, int threads)
{
  const VisionConfig& vision = *model.GetConfig().vision;
  TransformerConfig encoder = *vision.encoder;
  const std::int64_t d = encoder.modelDimension * static_cast<std::int64_t>(encoded.size());
  const std::int64_t square = vision.merge * vision.merge;
  std::vector<float> joined = JoinPatches(vision, sequences, encoded);
  const std::int64_t width = vision.averages ? d : d * square;
  const std::int64_t tokens = static_cast<std::int64_t>(joined.size()) / width;
  encoder.epsilon = vision.projectorEpsilon;
  encoder.gainOffset = vision.averages ? 1 : 0;
  if (norm != Norm::None)
  {
    const bool isOfPatches = norm == Norm::OfPatches;
    const NormKind kind = isOfPatches       ? encoder.norm
                          : vision.averages ? NormKind::RmsNorm
                                            : NormKind::LayerNorm;
    TransformerNorm(encoder, tensors.norm, kind)
      .Apply(isOfPatches ? tokens * square : tokens, isOfPatches ? d : width, joined.data(),
        joined.data(), threads);
  }
  const auto apply = [&](const LinearTensors& linear, const LinearFinish& finish)
  {
    std::vector<float> products(ToIndex(tokens * linear.outputs));
    ApplyLinear(Linear(linear), tokens, joined.data(), products.data(), finish, threads);
    joined = std::move(products);
  };
  if (vision.joinsByMatrix)
  {
    ByComponents(d, joined, square);
    apply(tensors.join, {});
  }
  const LinearTensors& last = vision.projectorHasTwo ? tensors.out : tensors.in;
  if (vision.projectorHasTwo)
  {
    apply(tensors.in, { vision.projectorActivation, nullptr, false });
  }
  SharedMatrix features = SharedMatrix::Zero(tokens, last.outputs);
  ApplyLinear(Linear(last), tokens, joined.data(), features.Row(0), {}, threads);
  return features;
}

/// The vectors of the tokens of pictures in tiles, whose tiles have `features`: those of all of a
/// picture, then those of its tiles by rows, each with `newline` behind it.
SharedMatrix ArrangeTiles(const TransformerConfig& config, const TransformerInput& input,
  const SequenceRange& images, const SharedMatrix& features, const TensorView& newline)
{
  const std::int64_t side = config.vision->encoder->PatchRows();
  const std::int64_t d = features.columns;
  std::vector<float> end(d);
  newline.ToFloat(0, end.size(), end.data());
  std::vector<float> all;
  for (const TiledPicture& picture : TiledPictures(config, input.tiles))
  {
    if (picture.whole < images.first || picture.whole >= images.end)
    {
      continue;
    }
    const float* whole = features.Row((picture.whole - images.first) * side * side);
    all.insert(all.end(), whole, whole + side * side * d);
    std::vector<float> grid;
    for (std::int64_t i = 0; i < picture.rows * picture.columns; ++i)
    {
      const std::int64_t row = picture.top + i / picture.columns;
      const std::int64_t column = picture.left + i % picture.columns;
      const std::int64_t tile =
        picture.first + row / side * picture.tileColumns + column / side - images.first;
      const float* from = features.Row((tile * side + row % side) * side + column % side);
      grid.insert(grid.end(), from, from + d);
    }
    if (picture.tokenRows != picture.rows || picture.tokenColumns != picture.columns)
    {
      grid = ResizedGrid(grid, picture.rows, picture.columns, picture.tokenRows,
        picture.tokenColumns, d, GridKernel::Bilinear);
    }
    for (std::int64_t row = 0; row < picture.tokenRows; ++row)
    {
      const auto from = grid.begin() + row * picture.tokenColumns * d;
      all.insert(all.end(), from, from + picture.tokenColumns * d);
      all.insert(all.end(), end.begin(), end.end());
    }
    if (picture.tokenRows == 0)
    {
      all.insert(all.end(), end.begin(), end.end());
    }
  }
  SharedMatrix arranged = SharedMatrix::Zero(static_cast<std::int64_t>(all.size()) / d, d);
  std::copy(all.begin(), all.end(), arranged.values.get());
  return arranged;
}

}

EncodedSource ProjectPictures(const Transformer& model, const TransformerInput& input,
  const PackedSequences& sequences, const std::vector<SharedMatrix>& encoded, int threads)
{
  const TransformerConfig& config = model.GetConfig();
  const VisionConfig& vision = *config.vision;
  const VisionWeights& weights = *model.GetWeights().vision;
  EncodedSource source;
  const auto first = encoded.end() - static_cast<std::ptrdiff_t>(weights.deep.size());
  source.tokens = Project(
    model, weights.projector, vision.projectorNorm, sequences, { encoded.begin(), first }, threads);
  for (std::size_t i = 0; i < weights.deep.size(); ++i)
  {
    source.deep.push_back(Project(model, weights.deep[i], Norm::OfMerged, sequences,
      { *(first + static_cast<std::ptrdiff_t>(i)) }, threads));
  }
  if (!vision.gridSizes.empty())
  {
    source.tokens = ArrangeTiles(config, input, sequences.run, source.tokens, weights.newline);
  }
  return source;
}

std::int64_t ProjectFloats(const TransformerConfig& config, const PackedSequences& sequences)
{
  const VisionConfig& vision = *config.vision;
  const auto read = static_cast<std::int64_t>(vision.moreLayersRead.size()) + 1;
  const std::int64_t inputs = sequences.Rows() * vision.encoder->modelDimension * read; // as joined
  const std::int64_t tokens = sequences.Rows() / (vision.merge * vision.merge);
  const std::int64_t features = tokens * config.modelDimension;
  const auto projectors = static_cast<std::int64_t>(vision.deepLayers.size()) + 1;
  const std::int64_t arranged = vision.gridSizes.empty() ? 0 : 4; // a grid twice, and all twice
  return inputs + std::max(inputs, features) + (projectors + arranged) * features;
}

}
