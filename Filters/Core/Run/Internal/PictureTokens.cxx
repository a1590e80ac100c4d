#include "PictureTokens.h"

#include "Index.h"
#include "Parallel.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

/// The first sequence of each image in the encoder, then their number.
std::vector<std::int64_t> FirstSequences(
  const TransformerConfig& config, const TransformerInput& input)
{
  if (config.vision->encoder->ReadsAnySize())
  {
    std::vector<std::int64_t> frames;
    frames.reserve(input.extents.size());
    for (const PatchExtent& extent : input.extents)
    {
      frames.push_back(extent.frames);
    }
    return SequenceOffsets(frames);
  }
  return SequenceOffsets(std::vector<std::int64_t>(input.images, 1));
}

/// Row and column of patch i of an image with so many columns, in the order of squares of merge x
/// merge patches.
std::pair<std::int64_t, std::int64_t> PlaceOfPatch(
  std::int64_t i, std::int64_t columns, std::int64_t merge)
{
  const std::int64_t across = columns / merge; // squares
  const std::int64_t square = i / (merge * merge);
  const std::int64_t inside = i % (merge * merge);
  return { square / across * merge + inside / merge, square % across * merge + inside % merge };
}

/// The position of a group of frames behind that of the first (Bai et al. 2025: Qwen2.5-VL).
std::int64_t FramePosition(
  const VisionConfig& vision, const PatchExtent& extent, std::int64_t frame)
{
  if (vision.positionsPerSecond == 0)
  {
    return frame;
  }
  // As in the original code: whole seconds, and none for pictures.
  const double seconds = extent.isFilm ? std::floor(extent.seconds) : 0;
  const double position = static_cast<double>(frame) * seconds * vision.positionsPerSecond;
  constexpr double most = 1e15; // is refused
  return static_cast<std::int64_t>(std::min(position, most));
}

}

std::vector<RotaryPlace> TextPlaces(const TransformerConfig& config, const TransformerInput& input)
{
  const VisionConfig& vision = *config.vision;
  const std::vector<ImageToken> tokens = ImageTokens(config, input);
  auto token = tokens.begin();
  std::vector<RotaryPlace> places;
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    std::int64_t next = 0;
    std::int64_t start = 0; // of the image
    for (std::size_t t = 0; t < input.tokens[s].size(); ++t)
    {
      if (token == tokens.end() || token->sequence != static_cast<std::int64_t>(s) ||
          token->position != static_cast<std::int64_t>(t))
      {
        places.push_back({ next, next, next });
        ++next;
        continue;
      }
      const bool isFirst = token == tokens.begin() || (token - 1)->image != token->image;
      start = isFirst ? next : start;
      const std::int64_t frame = FramePosition(vision, input.extents[token->image], token->frame);
      const RotaryPlace place = { start + frame, start + token->row, start + token->column };
      places.push_back(place);
      next = std::max(next, *std::max_element(place.begin(), place.end()) + 1);
      ++token;
    }
  }
  return places;
}

std::vector<RotaryPlace> PatchPlaces(const VisionConfig& vision, const TransformerInput& input)
{
  std::vector<RotaryPlace> places;
  for (const PatchExtent& extent : input.extents)
  {
    const std::int64_t patches = extent.rows * extent.columns;
    for (std::int64_t i = 0; i < extent.Count(); ++i)
    {
      const auto [row, column] = PlaceOfPatch(i % patches, extent.columns, vision.merge);
      places.push_back({ i / patches, row, column });
    }
  }
  return places;
}

SequenceRange EncoderRange(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, const SequenceRange& texts)
{
  const std::vector<std::int64_t> first = FirstSequences(config, input);
  const auto imagesBefore = [&](std::int64_t text)
  {
    const auto token = std::lower_bound(tokens.begin(), tokens.end(), text,
      [](const ImageToken& one, std::int64_t s) { return one.sequence < s; });
    return token == tokens.end() ? first.back() : first[token->image];
  };
  return { imagesBefore(texts.first), imagesBefore(texts.end) };
}

std::vector<std::int64_t> EncoderRows(
  const TransformerConfig& config, const TransformerInput& input)
{
  const std::vector<ImageToken> tokens = ImageTokens(config, input);
  const std::vector<std::int64_t> offsets =
    SequenceOffsets(SequenceLengths(*config.vision->encoder, input));
  std::vector<std::int64_t> rows;
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const auto text = static_cast<std::int64_t>(s);
    const SequenceRange range = EncoderRange(config, input, tokens, { text, text + 1 });
    rows.push_back(offsets[range.end] - offsets[range.first]);
  }
  return rows;
}

void DescribePictures(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, Recording& recording)
{
  const VisionConfig& vision = *config.vision;
  const TransformerConfig& encoder = *vision.encoder;
  std::vector<PictureContent>& contents = recording.pictures.contents;
  std::vector<std::int64_t> first; // the content of each image, or of its first group of frames
  const auto add = [&](std::int64_t picture, std::int64_t rows, std::int64_t columns)
  {
    PictureContent& content = contents.emplace_back();
    content.picture = static_cast<std::int32_t>(picture);
    content.height = static_cast<std::int32_t>(rows * encoder.patchHeight);
    content.width = static_cast<std::int32_t>(columns * encoder.patchWidth);
    return static_cast<std::int64_t>(contents.size()) - 1;
  };
  for (std::size_t i = 0; i < input.extents.size(); ++i)
  {
    const PatchExtent& extent = input.extents[i];
    first.push_back(static_cast<std::int64_t>(contents.size()));
    for (std::int64_t frame = 0; frame < extent.frames; ++frame)
    {
      add(static_cast<std::int64_t>(i), extent.rows, extent.columns);
      contents.back().frame = static_cast<std::int32_t>(frame * encoder.patchFrames);
      contents.back().frames = extent.isFilm ? static_cast<std::int32_t>(encoder.patchFrames) : 1;
    }
  }
  for (std::size_t i = 0; i < input.tiles.size(); ++i) // first the tiles of a picture, then all
  {
    const TilePlace& tile = input.tiles[i];
    const bool isFirst = i == 0 || input.tiles[i - 1].picture != tile.picture;
    if (!isFirst)
    {
      continue;
    }
    std::size_t end = i;
    bool hasWhole = false;
    bool hasTiles = false;
    for (; end < input.tiles.size() && input.tiles[end].picture == tile.picture; ++end)
    {
      (input.tiles[end].IsWhole() ? hasWhole : hasTiles) = true;
    }
    const std::int64_t joined = hasTiles ? add(tile.picture, tile.rows * encoder.PatchRows(),
                                             tile.columns * encoder.PatchColumns())
                                         : -1;
    const std::int64_t whole =
      hasWhole ? add(tile.picture, encoder.PatchRows(), encoder.PatchColumns()) : -1;
    contents.back().isSmall = hasWhole && hasTiles;
    for (std::size_t j = i; j < end; ++j)
    {
      first.push_back(input.tiles[j].IsWhole() ? whole : joined);
    }
  }
  recording.pictures.count = static_cast<std::int64_t>(contents.size());
  RecordedTokens& recorded = recording.tokens;
  recorded.picture.assign(recorded.Count(), -1);
  recorded.row.assign(recorded.Count(), -1);
  recorded.column.assign(recorded.Count(), -1);
  for (const ImageToken& token : tokens)
  {
    const std::int64_t row = recording.sequenceOffsets[token.sequence] + token.position;
    std::int64_t top = 0;
    std::int64_t left = 0;
    if (!input.tiles.empty() && !input.tiles[token.image].IsWhole())
    {
      const TilePlace& tile = input.tiles[token.image];
      top = tile.row * (encoder.PatchRows() / vision.merge);
      left = tile.column * (encoder.PatchColumns() / vision.merge);
    }
    recorded.picture[row] = static_cast<std::int32_t>(first[token.image] + token.frame);
    recorded.row[row] = static_cast<std::int32_t>(top + token.row);
    recorded.column[row] = static_cast<std::int32_t>(left + token.column);
  }
}

SharedMatrix ProjectPictures(
  const Transformer& model, const PackedSequences& sequences, const float* encoded, int threads)
{
  using Norm = VisionConfig::ProjectorNorm;
  const VisionConfig& vision = *model.GetConfig().vision;
  const VisionWeights& weights = *model.GetWeights().vision;
  TransformerConfig encoder = *vision.encoder;
  const std::int64_t d = encoder.modelDimension;
  const std::int64_t square = vision.merge * vision.merge;
  std::int64_t tokens = 0;
  std::vector<float> joined;
  joined.reserve(ToIndex(sequences.Rows() * d));
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    const float* rows = encoded + (sequences.offsets[s] - sequences.FirstRow()) * d;
    const std::int64_t patches = sequences.Length(s) - encoder.TokensBeforePatches();
    tokens += patches / square;
    for (std::int64_t i = 0; i < patches; ++i)
    {
      std::int64_t patch = i;
      if (!encoder.ReadsAnySize()) // their patches are in order of squares
      {
        const auto [row, column] = PlaceOfPatch(i, encoder.PatchColumns(), vision.merge);
        patch = row * encoder.PatchColumns() + column;
      }
      const float* from = rows + (encoder.TokensBeforePatches() + patch) * d;
      joined.insert(joined.end(), from, from + d);
    }
  }
  encoder.epsilon = vision.projectorEpsilon;
  if (vision.projectorNorm == Norm::OfMerged)
  {
    encoder.norm = NormKind::LayerNorm;
  }
  if (vision.projectorNorm != Norm::None)
  {
    const bool isOfPatches = vision.projectorNorm == Norm::OfPatches;
    TransformerNorm(encoder, weights.projectorNorm)
      .Apply(isOfPatches ? tokens * square : tokens, isOfPatches ? d : d * square, joined.data(),
        joined.data(), threads);
  }
  const std::int64_t outputs = model.GetConfig().modelDimension;
  SharedMatrix features = SharedMatrix::Zero(tokens, outputs);
  if (!vision.projectorHasTwo)
  {
    ApplyLinear(Linear(weights.projectorIn), tokens, joined.data(), features.Row(0), {}, threads);
    return features;
  }
  std::vector<float> hidden(ToIndex(tokens * weights.projectorIn.outputs));
  ApplyLinear(Linear(weights.projectorIn), tokens, joined.data(), hidden.data(),
    { vision.projectorActivation, nullptr, false }, threads);
  ApplyLinear(Linear(weights.projectorOut), tokens, hidden.data(), features.Row(0), {}, threads);
  return features;
}

std::int64_t ProjectFloats(const TransformerConfig& config, const PackedSequences& sequences)
{
  const VisionConfig& vision = *config.vision;
  const std::int64_t inputs = sequences.Rows() * vision.encoder->modelDimension; // as joined
  const std::int64_t tokens = sequences.Rows() / (vision.merge * vision.merge);
  return inputs + std::max(inputs, tokens * config.modelDimension) + tokens * config.modelDimension;
}

}
