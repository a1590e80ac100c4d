#include "TransformerInput.h"

#include "Error.h"
#include "Index.h"
#include "PictureTokens.h"
#include "Tensor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

std::vector<std::int64_t> LengthsOf(const std::vector<std::vector<std::int64_t>>& sequences)
{
  std::vector<std::int64_t> lengths;
  lengths.reserve(sequences.size());
  for (const std::vector<std::int64_t>& sequence : sequences)
  {
    lengths.push_back(sequence.size());
  }
  return lengths;
}

/// Throws OptionError unless all of `values` are from 0 to count - 1.
void CheckIds(const char* name, std::size_t sequence, const std::vector<std::int64_t>& values,
  std::int64_t count)
{
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    if (values[i] < 0 || values[i] >= count)
    {
      throw OptionError("sequence " + std::to_string(sequence) + ", position " + std::to_string(i) +
                        ": expected a " + name + " from 0 to " + std::to_string(count - 1) +
                        ", found " + std::to_string(values[i]) + ".");
    }
  }
}

void CheckSequence(const TransformerConfig& config, const TransformerInput& input, std::size_t s)
{
  const std::vector<std::int64_t>& tokens = input.tokens[s];
  const std::string name = "sequence " + std::to_string(s);
  const std::int64_t length = tokens.size();
  if (length == 0)
  {
    throw OptionError(name + " is empty, expected at least one token.");
  }
  if (config.positions > 0 && length > config.positions)
  {
    throw OptionError(name + " has " + std::to_string(length) + " tokens, " +
                      std::to_string(length - config.positions) + " more than the " +
                      std::to_string(config.positions) + " positions of the model.");
  }
  CheckIds("token id", s, tokens, config.vocabulary);
  if (!input.segments.empty())
  {
    if (input.segments[s].size() != tokens.size())
    {
      throw OptionError(name + ": expected a segment for each of its " + std::to_string(length) +
                        " tokens, found " + std::to_string(input.segments[s].size()) + ".");
    }
    if (config.segments == 0)
    {
      throw OptionError(name + ": expected no segments, since a model of architecture " +
                        config.architecture + " has none, found " + std::to_string(length) + ".");
    }
    CheckIds("segment", s, input.segments[s], config.segments);
  }
}

void CheckSequences(const TransformerConfig& config, const TransformerInput& input)
{
  if (input.tokens.empty() || (input.images != 0 && config.vision == nullptr))
  {
    throw OptionError("expected at least one sequence of token ids for a model of architecture " +
                      config.architecture + ", found " + (input.images == 0 ? "none" : "images") +
                      ".");
  }
  if (!input.segments.empty() && input.segments.size() != input.tokens.size())
  {
    throw OptionError("expected segments for each of the " + std::to_string(input.tokens.size()) +
                      " sequences, found those of " + std::to_string(input.segments.size()) + ".");
  }
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    CheckSequence(config, input, s);
  }
}

void CheckImages(const TransformerConfig& config, const TransformerInput& input)
{
  if (input.images < 1 || !input.tokens.empty())
  {
    throw OptionError("expected at least one image for a model of architecture " +
                      config.architecture + ", found " +
                      (input.tokens.empty() ? "none" : "token ids") + ".");
  }
  const std::int64_t size = config.channels * config.imageHeight * config.imageWidth;
  if (input.pixels.size() != ToIndex(input.images) * ToIndex(size))
  {
    throw OptionError(
      "expected pixels of shape " +
      ToString({ input.images, config.channels, config.imageHeight, config.imageWidth }) +
      ", found " + std::to_string(input.pixels.size()) + " numbers.");
  }
}

void CheckFeatures(const TransformerConfig& encoder, const TransformerInput& input)
{
  const Shape shape = { input.sounds, encoder.melBands, 2 * encoder.positions };
  if (input.features.size() != ToIndex(shape[0] * shape[1] * shape[2]))
  {
    throw OptionError("expected log-mel features of shape " + ToString(shape) + ", found " +
                      std::to_string(input.features.size()) + " numbers.");
  }
}

/// What there is of sources.
std::string DescribeSource(const TransformerInput& input)
{
  if (input.sounds != 0)
  {
    return "log-mel features of " + std::to_string(input.sounds);
  }
  return input.source.empty() ? "none" : "source tokens of " + std::to_string(input.source.size());
}

/// What the encoder reads: one source per sequence.
void CheckSource(const TransformerConfig& config, const TransformerInput& input)
{
  const bool isSound = config.encoder->input == InputKind::Sound;
  const std::size_t found = isSound ? ToIndex(input.sounds) : input.source.size();
  if (found != input.tokens.size() || (!isSound && input.sounds != 0))
  {
    throw OptionError(std::string("expected ") + (isSound ? "log-mel features" : "source tokens") +
                      " for each of the " + std::to_string(input.tokens.size()) +
                      " sequences, since a model of architecture " + config.architecture +
                      " has an encoder, found " + DescribeSource(input) + ".");
  }
  try
  {
    if (isSound)
    {
      CheckFeatures(*config.encoder, input);
    }
    else
    {
      TransformerInput source;
      source.tokens = input.source;
      CheckSequences(*config.encoder, source);
    }
  }
  catch (const OptionError& e)
  {
    throw OptionError("source: " + std::string(e.what()));
  }
}

/// The tokens of an entry of `tiles` or `extents`.
struct TokenGrid
{
  std::int64_t frames = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::int64_t Count() const { return this->frames * this->rows * this->columns; }
};

TokenGrid GridOf(const TransformerConfig& config, const TransformerInput& input, std::size_t image)
{
  const VisionConfig& vision = *config.vision;
  const TransformerConfig& encoder = *vision.encoder;
  if (encoder.ReadsAnySize())
  {
    const PatchExtent& extent = input.extents[image];
    return { extent.frames, extent.rows / vision.merge, extent.columns / vision.merge };
  }
  return { 1, encoder.PatchRows() / vision.merge, encoder.PatchColumns() / vision.merge };
}

/// The images, of which each is a sequence of the encoder or, of any size, several.
std::size_t ImageCount(const TransformerConfig& config, const TransformerInput& input)
{
  return config.vision->encoder->ReadsAnySize() ? input.extents.size() : input.tiles.size();
}

bool IsFilm(const TransformerConfig& config, const TransformerInput& input, std::size_t image)
{
  return config.vision->encoder->ReadsAnySize() && input.extents[image].isFilm;
}

/// Throws OptionError unless the tiles of each picture are complete.
void CheckTiles(const TransformerInput& input)
{
  if (input.tiles.size() != ToIndex(input.images) || !input.extents.empty())
  {
    throw OptionError("expected a tile for each of the " + std::to_string(input.images) +
                      " images, and no extents, found " + std::to_string(input.tiles.size()) +
                      " tiles and " + std::to_string(input.extents.size()) + " extents.");
  }
  std::size_t first = 0; // of the picture
  for (std::size_t i = 0; i < input.tiles.size(); ++i)
  {
    const TilePlace& tile = input.tiles[i];
    const TilePlace& begin = input.tiles[first];
    const std::string name = "image " + std::to_string(i);
    const std::int64_t next = i == 0 ? 0 : input.tiles[i - 1].picture + 1;
    if (tile.picture != next && (i == 0 || tile.picture != next - 1))
    {
      throw OptionError(name + ": expected it to be of picture " + std::to_string(next) +
                        (i == 0 ? "" : ", or of that of the image before") + ", found " +
                        std::to_string(tile.picture) + ".");
    }
    first = tile.picture == next ? i : first;
    const bool isIn = tile.rows > 0 && tile.columns > 0 && tile.row < tile.rows &&
                      tile.column < tile.columns && tile.row >= -1 && tile.column >= -1 &&
                      (tile.row < 0) == (tile.column < 0);
    const bool isSame = first == i || (tile.rows == begin.rows && tile.columns == begin.columns);
    if (!isIn || !isSame)
    {
      throw OptionError(
        name + ": expected a tile of its picture, or the whole picture, found row " +
        std::to_string(tile.row) + " and column " + std::to_string(tile.column) + " of " +
        std::to_string(tile.rows) + " x " + std::to_string(tile.columns) + " tiles.");
    }
    const bool isLast = i + 1 == input.tiles.size() || input.tiles[i + 1].picture != tile.picture;
    if (isLast)
    {
      std::set<std::pair<std::int64_t, std::int64_t>> places;
      for (std::size_t j = first; j <= i; ++j)
      {
        places.insert({ input.tiles[j].row, input.tiles[j].column });
      }
      const bool hasWhole = places.count({ -1, -1 }) != 0;
      const auto tiles = static_cast<std::int64_t>(places.size()) - (hasWhole ? 1 : 0);
      const bool isComplete =
        tiles == 0 || (tiles % tile.rows == 0 && tiles / tile.rows == tile.columns);
      if (places.size() != i + 1 - first || !isComplete)
      {
        throw OptionError("picture " + std::to_string(tile.picture) + ": expected each of its " +
                          std::to_string(tile.rows) + " x " + std::to_string(tile.columns) +
                          " tiles once, and the whole picture at most once, found " +
                          std::to_string(i + 1 - first) + " images of " + std::to_string(tiles) +
                          " tiles.");
      }
    }
  }
}

/// The same for an encoder of any size; returns the number of patches.
std::uint64_t CheckExtents(const VisionConfig& vision, const TransformerInput& input)
{
  constexpr std::int64_t largest = 65'536;
  if (!input.tiles.empty() || input.images != 0)
  {
    throw OptionError("expected extents of pictures, as they have any size, found " +
                      std::to_string(input.images) + " images and " +
                      std::to_string(input.tiles.size()) + " tiles.");
  }
  std::uint64_t patches = 0;
  for (std::size_t i = 0; i < input.extents.size(); ++i)
  {
    const PatchExtent& extent = input.extents[i];
    const std::string name = (extent.isFilm ? "film " : "picture ") + std::to_string(i);
    const auto isSide = [&](std::int64_t side)
    { return side >= vision.merge && side <= largest && side % vision.merge == 0; };
    if (!isSide(extent.rows) || !isSide(extent.columns))
    {
      throw OptionError(name + ": expected rows and columns of patches to be multiples of " +
                        std::to_string(vision.merge) + " up to " + std::to_string(largest) +
                        ", found " + std::to_string(extent.rows) + " x " +
                        std::to_string(extent.columns) + ".");
    }
    if (extent.frames < 1 || extent.frames > (extent.isFilm ? largest : 1))
    {
      throw OptionError(name + ": expected " +
                        (extent.isFilm ? "1 to " + std::to_string(largest) + " groups of frames"
                                       : std::string("one group of frames")) +
                        ", found " + std::to_string(extent.frames) + ".");
    }
    if (!std::isfinite(extent.seconds) || extent.seconds < 0)
    {
      throw OptionError(name +
                        ": expected its groups of frames to be a finite number of seconds "
                        "apart, of at least 0, found " +
                        std::to_string(extent.seconds) + ".");
    }
    if (extent.isFilm && vision.filmToken < 0)
    {
      throw OptionError(name + ": expected a picture, as the model has no token for films.");
    }
    patches += ToIndex(extent.Count());
    if (patches > input.pixels.size())
    {
      break; // there are too few pixels
    }
  }
  return patches;
}

/// Throws OptionError unless the pictures among words are complete, and of the sizes that the
/// encoder reads.
void CheckPictures(const TransformerConfig& config, const TransformerInput& input)
{
  const VisionConfig& vision = *config.vision;
  const TransformerConfig& encoder = *vision.encoder;
  Shape shape = { input.images, encoder.channels, encoder.imageHeight, encoder.imageWidth };
  if (encoder.ReadsAnySize())
  {
    const auto patches = static_cast<std::int64_t>(CheckExtents(vision, input));
    shape = { patches, encoder.channels, encoder.patchFrames, encoder.patchHeight,
      encoder.patchWidth };
  }
  else
  {
    CheckTiles(input);
  }
  std::uint64_t count = 1;
  for (const std::int64_t side : shape)
  {
    count *= ToIndex(side);
  }
  if (input.pixels.size() != count)
  {
    throw OptionError("expected pixels of shape " + ToString(shape) + ", found " +
                      std::to_string(input.pixels.size()) + " numbers.");
  }
  ImageTokens(config, input);
  if (vision.rotarySections.empty() || config.positions == 0)
  {
    return;
  }
  const std::vector<RotaryPlace> places = TextPlaces(config, input);
  for (const RotaryPlace& place : places)
  {
    const std::int64_t last = *std::max_element(place.begin(), place.end());
    if (last >= config.positions)
    {
      throw OptionError("the rotation of a token is by position " + std::to_string(last) +
                        ", beyond the " + std::to_string(config.positions) +
                        " of the model; expected a shorter film, or fewer seconds from frame to "
                        "frame.");
    }
  }
}

void RefusePictures(const TransformerConfig& config, const TransformerInput& input)
{
  if (!input.tiles.empty() || !input.extents.empty())
  {
    throw OptionError("expected no pictures among words, since a model of architecture " +
                      config.architecture + " reads none, found " +
                      std::to_string(input.tiles.size() + input.extents.size()) + ".");
  }
}

void RefuseSource(const TransformerConfig& config, const TransformerInput& input)
{
  if (!input.source.empty() || input.sounds != 0)
  {
    throw OptionError("expected no source, since a model of architecture " + config.architecture +
                      " has no encoder, found " + DescribeSource(input) + ".");
  }
}

}

bool TransformerInput::operator==(const TransformerInput& other) const
{
  return this->tokens == other.tokens && this->segments == other.segments &&
         this->images == other.images && this->pixels == other.pixels &&
         this->tiles == other.tiles && this->extents == other.extents &&
         this->source == other.source && this->sounds == other.sounds &&
         this->features == other.features;
}

void CheckInput(const TransformerConfig& config, const TransformerInput& input)
{
  if (config.input == InputKind::Images)
  {
    CheckImages(config, input);
  }
  else
  {
    CheckSequences(config, input);
  }
  if (config.encoder == nullptr)
  {
    RefuseSource(config, input);
  }
  else
  {
    CheckSource(config, input);
  }
  if (config.vision == nullptr)
  {
    RefusePictures(config, input);
  }
  else
  {
    CheckPictures(config, input);
  }
}

std::vector<ImageToken> ImageTokens(const TransformerConfig& config, const TransformerInput& input)
{
  const VisionConfig& vision = *config.vision;
  const std::size_t images = ImageCount(config, input);
  for (const bool film : { false, true })
  {
    const std::int64_t id = film ? vision.filmToken : vision.imageToken;
    std::int64_t expected = 0;
    std::int64_t entries = 0;
    for (std::size_t image = 0; image < images; ++image)
    {
      const bool counts = IsFilm(config, input, image) == film;
      expected += counts ? GridOf(config, input, image).Count() : 0;
      entries += counts ? 1 : 0;
    }
    std::int64_t found = 0;
    for (const std::vector<std::int64_t>& sequence : input.tokens)
    {
      found += std::count(sequence.begin(), sequence.end(), id);
    }
    if (found != expected && (!film || id >= 0))
    {
      throw OptionError("expected " + std::to_string(expected) + " tokens with the id " +
                        std::to_string(id) + " for " + std::to_string(entries) +
                        (film ? " film" : " image") + (entries == 1 ? "" : "s") + ", found " +
                        std::to_string(found) + ".");
    }
  }
  std::vector<ImageToken> tokens;
  std::size_t image = 0;
  std::int64_t within = 0; // tokens of the image before
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    for (std::size_t t = 0; t < input.tokens[s].size(); ++t)
    {
      const std::int64_t id = input.tokens[s][t];
      const bool isOfFilm = vision.filmToken >= 0 && id == vision.filmToken;
      if (id != vision.imageToken && !isOfFilm)
      {
        continue;
      }
      const TokenGrid grid = GridOf(config, input, image);
      if (IsFilm(config, input, image) != isOfFilm ||
          (within > 0 && tokens.back().sequence != static_cast<std::int64_t>(s)))
      {
        throw OptionError("sequence " + std::to_string(s) + ", position " + std::to_string(t) +
                          ": expected the tokens of each picture or film together, in the order "
                          "of pictures and films, found one of a " +
                          (isOfFilm ? "film" : "picture") + " in place of token " +
                          std::to_string(within) + " of image " + std::to_string(image) + ".");
      }
      const std::int64_t columns = std::max(grid.columns, std::int64_t{ 1 });
      const std::int64_t perFrame = std::max(grid.rows, std::int64_t{ 1 }) * columns;
      tokens.push_back({ static_cast<std::int64_t>(s), static_cast<std::int64_t>(t),
        static_cast<std::int64_t>(image), within / perFrame, within % perFrame / columns,
        within % columns });
      ++within;
      if (within == grid.Count())
      {
        within = 0;
        ++image;
      }
    }
  }
  return tokens;
}

std::vector<std::int64_t> SequenceLengths(
  const TransformerConfig& config, const TransformerInput& input)
{
  if (config.ReadsAnySize())
  {
    std::vector<std::int64_t> lengths;
    for (const PatchExtent& extent : input.extents)
    {
      lengths.insert(lengths.end(), ToIndex(extent.frames), extent.rows * extent.columns);
    }
    return lengths;
  }
  if (config.input == InputKind::Images)
  {
    return std::vector<std::int64_t>(input.images, config.positions);
  }
  if (config.input == InputKind::Sound)
  {
    return std::vector<std::int64_t>(input.sounds, config.positions);
  }
  return LengthsOf(input.tokens);
}

std::vector<std::int64_t> SourceLengths(
  const TransformerConfig& config, const TransformerInput& input)
{
  if (config.encoder == nullptr)
  {
    return {};
  }
  return config.encoder->input == InputKind::Sound ? SequenceLengths(*config.encoder, input)
                                                   : LengthsOf(input.source);
}

}
