#include "PictureTokens.h"

#include "Base/Error.h"
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
      const bool isFirst = token == tokens.begin() || (token - 1)->image != token->image ||
                           (vision.interleavesSections && (token - 1)->frame != token->frame);
      start = isFirst ? next : start;
      const std::int64_t frame =
        vision.interleavesSections
          ? 0
          : FramePosition(vision, input.extents[token->image], token->frame);
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
    std::int64_t image = token == tokens.end() ? 0 : token->image;
    while (image > 0 && !input.tiles.empty() &&
           input.tiles[image - 1].picture == input.tiles[image].picture)
    {
      --image;
    }
    return token == tokens.end() ? first.back() : first[image];
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

namespace
{

/// A number rounded to 7 decimals, then down, as in the original code.
std::int64_t NearlyWhole(double number)
{
  constexpr double digits = 1e7;
  return static_cast<std::int64_t>(std::round(number * digits) / digits);
}

/// Python's a // b of floating-point numbers.
std::int64_t WholeQuotient(double a, double b)
{
  return static_cast<std::int64_t>(std::round((a - std::fmod(a, b)) / b));
}

}

std::vector<TiledPicture> TiledPictures(
  const TransformerConfig& config, const std::vector<TilePlace>& tiles)
{
  const std::int64_t side = config.vision->encoder->PatchRows();
  std::vector<TiledPicture> pictures;
  for (std::size_t i = 0; i < tiles.size(); ++i)
  {
    const TilePlace& tile = tiles[i];
    if (i == 0 || tiles[i - 1].picture != tile.picture)
    {
      pictures.emplace_back().first = static_cast<std::int64_t>(i);
    }
    TiledPicture& picture = pictures.back();
    if (tile.IsWhole())
    {
      picture.whole = static_cast<std::int64_t>(i);
      continue;
    }
    picture.first = picture.rows == 0 ? static_cast<std::int64_t>(i) : picture.first;
    picture.tileColumns = tile.columns;
    std::int64_t rows = tile.rows * side;
    std::int64_t columns = tile.columns * side;
    const auto height = static_cast<double>(tile.height);
    const auto width = static_cast<double>(tile.width);
    if (width / height > static_cast<double>(columns) / static_cast<double>(rows))
    {
      picture.top = (rows - NearlyWhole(height * (static_cast<double>(columns) / width))) / 2;
      rows -= 2 * picture.top;
    }
    else
    {
      picture.left = (columns - NearlyWhole(width * (static_cast<double>(rows) / height))) / 2;
      columns -= 2 * picture.left;
    }
    picture.rows = picture.tokenRows = rows;
    picture.columns = picture.tokenColumns = columns;
    const double ratio = std::sqrt(static_cast<double>(rows * columns) /
                                   static_cast<double>(config.vision->mostTiles * side * side));
    constexpr double most = 1.1;
    if (ratio > most)
    {
      picture.tokenRows = WholeQuotient(static_cast<double>(rows), ratio);
      picture.tokenColumns = WholeQuotient(static_cast<double>(columns), ratio);
    }
  }
  return pictures;
}

std::vector<std::int32_t> KeyEnds(const TransformerConfig& config, const TransformerInput& input)
{
  std::vector<std::int32_t> ends;
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const std::vector<std::int64_t>& sequence = input.tokens[s];
    std::size_t end = 0;
    if (config.vision->seesWholePrompts)
    {
      end = input.prompts.empty() ? sequence.size() : ToIndex(input.prompts[s]);
      for (std::int64_t l = 0; l < config.layers; ++l)
      {
        const std::int64_t window = config.Window(l);
        ThrowIf<OptionError>(window > 0 && end > ToIndex(window), "sequence ", s,
          ": expected a prompt of at most ", window, " tokens, the window of layer ", l, " of ",
          config.architecture, ", found ", end, ".");
      }
    }
    for (std::size_t t = 0; t < sequence.size(); ++t)
    {
      end = std::max(end, t + 1);
      while (sequence[t] == config.vision->imageToken && end < sequence.size() &&
             sequence[end] == sequence[t])
      {
        ++end;
      }
      ends.push_back(static_cast<std::int32_t>(end));
    }
  }
  return ends;
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
    if (token.row < 0) // the end of a row
    {
      continue;
    }
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
