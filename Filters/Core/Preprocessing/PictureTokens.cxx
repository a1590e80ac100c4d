#include "PictureTokens.h"

#include "Base/Index.h"
#include "RecordPictures.h"

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

/// The position of a group of frames behind that of the first (Bai et al. 2025: Qwen2.5-VL).
std::int64_t FramePosition(
  const VisionConfig& vision, const PatchExtent& extent, std::int64_t frame)
{
  if (vision.positionsPerSecond == 0)
  {
    return frame;
  }
  // As in the original code: whole seconds, and none for pictures.
  const double seconds = extent.isVideo ? std::floor(extent.seconds) : 0;
  const double position = static_cast<double>(frame) * seconds * vision.positionsPerSecond;
  constexpr double most = 1e15; // is refused
  return static_cast<std::int64_t>(std::min(position, most));
}

}

std::pair<std::int64_t, std::int64_t> PlaceOfPatch(
  std::int64_t i, std::int64_t columns, std::int64_t merge)
{
  const std::int64_t across = columns / merge; // squares
  const std::int64_t square = i / (merge * merge);
  const std::int64_t inside = i % (merge * merge);
  return { square / across * merge + inside / merge, square % across * merge + inside % merge };
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

std::int64_t EndOfPlaces(const std::vector<RotaryPlace>& places)
{
  std::int64_t end = 0;
  for (const RotaryPlace& place : places)
  {
    end = std::max(end, *std::max_element(place.begin(), place.end()) + 1);
  }
  return end;
}

std::vector<RotaryPlace> PatchPlaces(std::int64_t merge, const TransformerInput& input)
{
  std::vector<RotaryPlace> places;
  for (const PatchExtent& extent : input.extents)
  {
    const std::int64_t patches = extent.rows * extent.columns;
    for (std::int64_t i = 0; i < extent.Count(); ++i)
    {
      const auto [row, column] = PlaceOfPatch(i % patches, extent.columns, merge);
      places.push_back({ i / patches, row, column });
    }
  }
  return places;
}

std::vector<RotaryPlace> GridPlaces(const TransformerConfig& config, std::int64_t images)
{
  const std::int64_t beyond = std::max(config.PatchRows(), config.PatchColumns());
  std::vector<RotaryPlace> places;
  for (std::int64_t i = 0; i < images * config.positions; ++i)
  {
    const std::int64_t patch = i % config.positions - config.TokensBeforePatches();
    const std::int64_t columns = config.PatchColumns();
    places.push_back(patch < 0 ? RotaryPlace{ 0, beyond, beyond }
                               : RotaryPlace{ 0, patch / columns, patch % columns });
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
  recording.pictures.contents = PictureContents(config, input);
  recording.pictures.count = recording.pictures.contents.size();
  std::vector<std::int64_t> first; // the content of each image, or of its first group of frames
  std::int64_t next = 0;
  for (const PatchExtent& extent : input.extents)
  {
    first.push_back(next);
    next += extent.frames;
  }
  for (std::size_t i = 0; i < input.tiles.size(); ++i) // first the tiles of a picture, then all
  {
    const TilePlace& tile = input.tiles[i];
    const bool isFirst = i == 0 || input.tiles[i - 1].picture != tile.picture;
    next += isFirst || tile.IsWhole() ? 1 : 0;
    first.push_back(next - 1);
  }
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

}
