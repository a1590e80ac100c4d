#include "TransformerInput.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/SoundFile.h"
#include "Files/Tensor.h"
#include "PictureTokens.h"

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
    ThrowIf<OptionError>(values[i] < 0 || values[i] >= count, "sequence ", sequence, ", position ",
      i, ": expected a ", name, " from 0 to ", count - 1, ", found ", values[i], ".");
  }
}

void CheckSequence(const TransformerConfig& config, const TransformerInput& input, std::size_t s)
{
  const std::vector<std::int64_t>& tokens = input.tokens[s];
  const std::string name = "sequence " + std::to_string(s);
  const std::int64_t length = tokens.size();
  ThrowIf<OptionError>(length == 0, name, " is empty, expected at least one token.");
  ThrowIf<OptionError>(config.positions > 0 && length > config.positions, name, " has ", length,
    " tokens, ", length - config.positions, " more than the ", config.positions,
    " positions of the model.");
  CheckIds("token id", s, tokens, config.vocabulary);
  if (!input.segments.empty())
  {
    ThrowIf<OptionError>(input.segments[s].size() != tokens.size(), name,
      ": expected a segment for each of its ", length, " tokens, found ", input.segments[s].size(),
      ".");
    ThrowIf<OptionError>(config.segments == 0, name,
      ": expected no segments, since a model of architecture ", config.architecture,
      " has none, found ", length, ".");
    CheckIds("segment", s, input.segments[s], config.segments);
  }
  if (!input.prompts.empty())
  {
    const std::int64_t prompt = input.prompts[s];
    ThrowIf<OptionError>(prompt < 0 || prompt > length, name, ": expected a prompt of 0 to ",
      length, " tokens, found ", prompt, ".");
  }
}

void CheckSequences(const TransformerConfig& config, const TransformerInput& input)
{
  ThrowIf<OptionError>(input.tokens.empty() || (input.images != 0 && config.vision == nullptr),
    "expected at least one sequence of token ids for a model of architecture ", config.architecture,
    ", found ", input.images == 0 ? "none" : "images", ".");
  ThrowIf<OptionError>(!input.segments.empty() && input.segments.size() != input.tokens.size(),
    "expected segments for each of the ", input.tokens.size(), " sequences, found those of ",
    input.segments.size(), ".");
  ThrowIf<OptionError>(!input.prompts.empty() && input.prompts.size() != input.tokens.size(),
    "expected the length of the prompt of each of the ", input.tokens.size(),
    " sequences, found those of ", input.prompts.size(), ".");
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    CheckSequence(config, input, s);
  }
}

/// Throws OptionError unless there are as many numbers as a shape has.
void CheckNumbers(const char* what, const std::vector<float>& numbers, const Shape& shape)
{
  std::uint64_t count = 1;
  for (const std::int64_t side : shape)
  {
    count *= ToIndex(side);
  }
  ThrowIf<OptionError>(numbers.size() != count, "expected ", what, " of shape ", ToString(shape),
    ", found ", numbers.size(), " numbers.");
}

/// Throws OptionError unless there are features of each sound, or waveforms long enough for a
/// token.
void CheckSounds(const TransformerConfig& config, const TransformerInput& input)
{
  ThrowIf<OptionError>(input.sounds < 1 || (config.sound != nullptr) == input.samples.empty(),
    "expected at least one sound, as ", config.sound != nullptr ? "a waveform" : "log-mel features",
    ", for a model of architecture ", config.architecture, ", found ",
    input.sounds < 1 ? "none" : "the other", ".");
  if (config.sound == nullptr)
  {
    CheckNumbers(
      "log-mel features", input.features, { input.sounds, config.melBands, config.SoundFrames() });
    return;
  }
  ThrowIf<OptionError>(input.samples.size() != ToIndex(input.sounds),
    "expected the number of samples of each of the ", input.sounds, " sounds, found those of ",
    input.samples.size(), ".");
  std::int64_t count = 0;
  for (std::size_t i = 0; i < input.samples.size(); ++i)
  {
    const std::int64_t samples = input.samples[i];
    ThrowIf<OptionError>(samples > MaximumSamples || config.sound->Places(samples) < 1, "sound ", i,
      ": expected a waveform that the convolutions of the model reduce to at least one token, of "
      "up "
      "to ",
      MaximumSamples, " samples, found ", samples, ".");
    count += samples;
  }
  CheckNumbers("waveforms", input.features, { count });
}

/// What there is of sources.
std::string DescribeSource(const TransformerInput& input)
{
  if (input.sounds != 0)
  {
    return (input.samples.empty() ? "log-mel features of " : "waveforms of ") +
           std::to_string(input.sounds);
  }
  return input.source.empty() ? "none" : "source tokens of " + std::to_string(input.source.size());
}

/// What the encoder reads: one source per sequence.
void CheckSource(const TransformerConfig& config, const TransformerInput& input)
{
  const bool isSound = config.encoder->input == InputKind::Sound;
  const std::size_t found = isSound ? ToIndex(input.sounds) : input.source.size();
  ThrowIf<OptionError>(found != input.tokens.size() || (!isSound && input.sounds != 0), "expected ",
    isSound ? "log-mel features" : "source tokens", " for each of the ", input.tokens.size(),
    " sequences, since a model of architecture ", config.architecture, " has an encoder, found ",
    DescribeSource(input), ".");
  try
  {
    if (isSound)
    {
      CheckSounds(*config.encoder, input);
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
    throw OptionError("source: ", e.what());
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

bool IsVideo(const TransformerConfig& config, const TransformerInput& input, std::size_t image)
{
  return config.vision->encoder->ReadsAnySize() && input.extents[image].isVideo;
}

/// Throws OptionError unless the tiles of each picture are complete.
void CheckTiles(const TransformerInput& input, bool joinsTiles)
{
  ThrowIf<OptionError>(input.tiles.size() != ToIndex(input.images) || !input.extents.empty(),
    "expected a tile for each of the ", input.images, " images, and no extents, found ",
    input.tiles.size(), " tiles and ", input.extents.size(), " extents.");
  std::size_t first = 0; // of the picture
  for (std::size_t i = 0; i < input.tiles.size(); ++i)
  {
    const TilePlace& tile = input.tiles[i];
    const TilePlace& begin = input.tiles[first];
    const std::string name = "image " + std::to_string(i);
    const std::int64_t next = i == 0 ? 0 : input.tiles[i - 1].picture + 1;
    ThrowIf<OptionError>(tile.picture != next && (i == 0 || tile.picture != next - 1), name,
      ": expected it to be of picture ", next, i == 0 ? "" : ", or of that of the image before",
      ", found ", tile.picture, ".");
    first = tile.picture == next ? i : first;
    const bool isIn = tile.rows > 0 && tile.columns > 0 && tile.row < tile.rows &&
                      tile.column < tile.columns && tile.row >= -1 && tile.column >= -1 &&
                      (tile.row < 0) == (tile.column < 0);
    const bool isSame = first == i || (tile.rows == begin.rows && tile.columns == begin.columns);
    ThrowIf<OptionError>(!isIn || !isSame, name,
      ": expected a tile of its picture, or the whole picture, found row ", tile.row,
      " and column ", tile.column, " of ", tile.rows, " x ", tile.columns, " tiles.");
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
      const bool isPadded = tile.height > 0 && tile.width > 0;
      ThrowIf<OptionError>(joinsTiles && !(isPadded && hasWhole), "picture ", tile.picture,
        ": expected all of it, and the size of its file, found ", hasWhole ? "it" : "no such image",
        " and ", tile.width, " x ", tile.height, " (width x height).");
      ThrowIf<OptionError>(places.size() != i + 1 - first || !isComplete, "picture ", tile.picture,
        ": expected each of its ", tile.rows, " x ", tile.columns,
        " tiles once, and the whole picture at most once, found ", i + 1 - first, " images of ",
        tiles, " tiles.");
    }
  }
}

/// The same for an encoder of any size; returns the number of patches.
std::uint64_t CheckExtents(std::int64_t merge, bool readsVideos, const TransformerInput& input)
{
  constexpr std::int64_t largest = 65'536;
  ThrowIf<OptionError>(!input.tiles.empty() || input.images != 0,
    "expected extents of pictures, as they have any size, found ", input.images, " images and ",
    input.tiles.size(), " tiles.");
  std::uint64_t patches = 0;
  for (std::size_t i = 0; i < input.extents.size(); ++i)
  {
    const PatchExtent& extent = input.extents[i];
    const std::string name = (extent.isVideo ? "video " : "picture ") + std::to_string(i);
    const auto isSide = [&](std::int64_t side)
    { return side >= merge && side <= largest && side % merge == 0; };
    ThrowIf<OptionError>(!isSide(extent.rows) || !isSide(extent.columns), name,
      ": expected rows and columns of patches to be multiples of ", merge, " up to ", largest,
      ", found ", extent.rows, " x ", extent.columns, ".");
    ThrowIf<OptionError>(extent.frames < 1 || extent.frames > (extent.isVideo ? largest : 1), name,
      ": expected ",
      extent.isVideo ? "1 to " + std::to_string(largest) + " groups of frames"
                     : std::string("one group of frames"),
      ", found ", extent.frames, ".");
    ThrowIf<OptionError>(!std::isfinite(extent.seconds) || extent.seconds < 0, name,
      ": expected its groups of frames to be a finite number of seconds apart, of at least 0, "
      "found ",
      extent.seconds, ".");
    ThrowIf<OptionError>(extent.isVideo && !readsVideos, name,
      ": expected a picture, as the model has no token for videos.");
    patches += ToIndex(extent.Count());
    if (patches > input.pixels.size())
    {
      break; // there are too few pixels
    }
  }
  return patches;
}

void CheckImages(const TransformerConfig& config, const TransformerInput& input)
{
  const bool hasAnySize = config.ReadsAnySize();
  ThrowIf<OptionError>(
    (hasAnySize ? input.extents.empty() : input.images < 1) || !input.tokens.empty(),
    "expected at least one image for a model of architecture ", config.architecture, ", found ",
    input.tokens.empty() ? "none" : "token ids", ".");
  Shape shape = { input.images, config.channels, config.imageHeight, config.imageWidth };
  if (hasAnySize)
  {
    const auto patches = static_cast<std::int64_t>(CheckExtents(1, false, input));
    shape = { patches, config.patchHeight, config.patchWidth, config.channels };
  }
  CheckNumbers("pixels", input.pixels, shape);
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
    const auto patches =
      static_cast<std::int64_t>(CheckExtents(vision.merge, vision.videoToken >= 0, input));
    shape = { patches, encoder.channels, encoder.patchFrames, encoder.patchHeight,
      encoder.patchWidth };
  }
  else
  {
    CheckTiles(input, !vision.gridSizes.empty());
  }
  CheckNumbers("pixels", input.pixels, shape);
  ImageTokens(config, input);
  if (!vision.rotarySections.empty() && config.positions != 0)
  {
    const std::int64_t last = EndOfPlaces(TextPlaces(config, input)) - 1;
    ThrowIf<OptionError>(last >= config.positions, "the rotation of a token is by position ", last,
      ", beyond the ", config.positions,
      " of the model; expected a shorter video, or fewer seconds from frame to frame.");
  }
}

}

bool TransformerInput::operator==(const TransformerInput& other) const
{
  return this->tokens == other.tokens && this->segments == other.segments &&
         this->images == other.images && this->pixels == other.pixels &&
         this->tiles == other.tiles && this->extents == other.extents &&
         this->source == other.source && this->sounds == other.sounds &&
         this->features == other.features && this->samples == other.samples &&
         this->prompts == other.prompts;
}

void CheckInput(
  const TransformerConfig& config, const TransformerInput& input, const std::string& name)
{
  try
  {
    CheckInput(config, input);
  }
  catch (const OptionError& e)
  {
    throw OptionError(name, e.what());
  }
}

void CheckInput(const TransformerConfig& config, const TransformerInput& input)
{
  if (config.input == InputKind::Images)
  {
    CheckImages(config, input);
  }
  else if (config.input == InputKind::Sound)
  {
    ThrowIf<OptionError>(!input.tokens.empty() || input.images != 0,
      "expected sounds for a model of architecture ", config.architecture, ", found ",
      input.images != 0 ? "images" : "token ids", ".");
    CheckSounds(config, input);
  }
  else
  {
    CheckSequences(config, input);
  }
  if (config.encoder == nullptr)
  {
    const bool isSource = input.sounds != 0 && config.input != InputKind::Sound;
    ThrowIf<OptionError>(!input.source.empty() || isSource,
      "expected no source, since a model of architecture ", config.architecture,
      " has no encoder, found ", DescribeSource(input), ".");
  }
  else
  {
    CheckSource(config, input);
  }
  if (config.vision == nullptr)
  {
    const std::size_t among =
      input.tiles.size() + (config.ReadsAnySize() ? 0 : input.extents.size());
    ThrowIf<OptionError>(among != 0,
      "expected no pictures among words, since a model of architecture ", config.architecture,
      " reads none, found ", among, ".");
  }
  else
  {
    CheckPictures(config, input);
  }
}

namespace
{

/// The tokens of all pictures and videos, in order, whose places in texts are not known.
std::vector<ImageToken> TokensOfPictures(
  const TransformerConfig& config, const TransformerInput& input)
{
  std::vector<ImageToken> tokens;
  const auto addGrid = [&](std::size_t image)
  {
    const TokenGrid grid = GridOf(config, input, image);
    const std::int64_t perFrame = grid.rows * grid.columns;
    for (std::int64_t i = 0; i < grid.Count(); ++i)
    {
      tokens.push_back({ 0, 0, static_cast<std::int64_t>(image), i / perFrame,
        i % perFrame / grid.columns, i % grid.columns });
    }
  };
  if (config.vision->gridSizes.empty())
  {
    for (std::size_t image = 0; image < ImageCount(config, input); ++image)
    {
      addGrid(image);
    }
    return tokens;
  }
  for (const TiledPicture& picture : TiledPictures(config, input.tiles))
  {
    addGrid(ToIndex(picture.whole));
    for (std::int64_t i = 0; i < picture.Tokens(); ++i)
    {
      // Of interpolated vectors the nearest patch.
      const auto nearest = [](std::int64_t place, std::int64_t from, std::int64_t to)
      { return (2 * place + 1) * from / (2 * to); };
      const std::int64_t row = i / (picture.tokenColumns + 1);
      const std::int64_t column = i % (picture.tokenColumns + 1);
      const bool isEnd = column == picture.tokenColumns;
      tokens.push_back({ 0, 0, picture.first, 0,
        isEnd ? -1 : picture.top + nearest(row, picture.rows, picture.tokenRows),
        isEnd ? -1 : picture.left + nearest(column, picture.columns, picture.tokenColumns) });
    }
  }
  return tokens;
}

}

std::vector<ImageToken> ImageTokens(const TransformerConfig& config, const TransformerInput& input)
{
  const VisionConfig& vision = *config.vision;
  std::vector<ImageToken> tokens = TokensOfPictures(config, input);
  const auto isOfVideo = [&](const ImageToken& token)
  { return IsVideo(config, input, ToIndex(token.image)); };
  for (const bool video : { false, true })
  {
    const std::int64_t id = video ? vision.videoToken : vision.imageToken;
    const std::int64_t expected = std::count_if(tokens.begin(), tokens.end(),
      [&](const ImageToken& token) { return isOfVideo(token) == video; });
    std::int64_t entries = 0;
    for (std::size_t image = 0; image < ImageCount(config, input); ++image)
    {
      entries += IsVideo(config, input, image) == video ? 1 : 0;
    }
    std::int64_t found = 0;
    for (const std::vector<std::int64_t>& sequence : input.tokens)
    {
      found += std::count(sequence.begin(), sequence.end(), id);
    }
    ThrowIf<OptionError>(found != expected && (!video || id >= 0), "expected ", expected,
      " tokens with the id ", id, " for ", entries, video ? " video" : " image",
      entries == 1 ? "" : "s", ", found ", found, ".");
  }
  const auto pictureOf = [&](const ImageToken& token)
  { return input.tiles.empty() ? token.image : input.tiles[token.image].picture; };
  const bool joinsTiles = !vision.gridSizes.empty();
  std::size_t next = 0;
  std::int64_t within = 0; // tokens of the image before
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    for (std::size_t t = 0; t < input.tokens[s].size(); ++t)
    {
      const std::int64_t id = input.tokens[s][t];
      const bool isVideoToken = vision.videoToken >= 0 && id == vision.videoToken;
      if (id != vision.imageToken && !isVideoToken)
      {
        continue;
      }
      ImageToken& token = tokens[next];
      const bool goesOn = next > 0 && (joinsTiles ? pictureOf(tokens[next - 1]) == pictureOf(token)
                                                  : tokens[next - 1].image == token.image);
      within = goesOn ? within + 1 : 0;
      token.sequence = static_cast<std::int64_t>(s);
      token.position = static_cast<std::int64_t>(t);
      ThrowIf<OptionError>(
        isOfVideo(token) != isVideoToken || (goesOn && tokens[next - 1].sequence != token.sequence),
        "sequence ", s, ", position ", t,
        ": expected the tokens of each picture or video together, in the order of pictures and "
        "videos, found one of a ",
        isVideoToken ? "video" : "picture", " in place of token ", within, " of image ",
        token.image, ".");
      ++next;
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
  if (config.sound != nullptr)
  {
    std::vector<std::int64_t> lengths;
    lengths.reserve(input.samples.size());
    for (const std::int64_t samples : input.samples)
    {
      lengths.push_back(config.sound->Places(samples));
    }
    return lengths;
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

std::vector<std::int64_t> SequenceOffsets(const std::vector<std::int64_t>& lengths)
{
  std::vector<std::int64_t> offsets = { 0 };
  for (const std::int64_t length : lengths)
  {
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

}
