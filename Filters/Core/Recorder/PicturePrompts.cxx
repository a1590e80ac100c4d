#include "PicturePrompts.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "EncodedPrompt.h"
#include "Internal/VideoText.h"
#include "Preprocessing/PictureTokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::string_view ImageMarker = "<image>";
constexpr std::string_view VideoMarker = "<video>";

constexpr const char* FakeToken = "<fake_token_around_image>";
constexpr const char* GlobalToken = "<global-img>";
constexpr const char* VisionStart = "<|vision_start|>";
constexpr const char* VisionEnd = "<|vision_end|>";

std::string RowColumnToken(const TilePlace& tile)
{
  return "<row_" + std::to_string(tile.row + 1) + "_col_" + std::to_string(tile.column + 1) + ">";
}

/// The place of the next of several markers in a text, and its length.
std::pair<std::size_t, std::size_t> FindMarker(
  std::string_view text, std::size_t from, const std::vector<std::string>& markers)
{
  std::pair<std::size_t, std::size_t> found = { std::string_view::npos, 0 };
  for (const std::string& marker : markers)
  {
    const std::size_t place = marker.empty() ? std::string_view::npos : text.find(marker, from);
    if (place < found.first || (place == found.first && marker.size() > found.second))
    {
      found = { place, marker.size() };
    }
  }
  return found;
}

std::int64_t CountMarkers(
  const std::vector<std::string>& texts, const std::vector<std::string>& markers)
{
  std::int64_t count = 0;
  for (const std::string& text : texts)
  {
    for (auto marker = FindMarker(text, 0, markers); marker.first != std::string_view::npos;
      marker = FindMarker(text, marker.first + marker.second, markers))
    {
      ++count;
    }
  }
  return count;
}

/// "1 picture", "2 pictures"
std::string Counted(std::int64_t count, const std::string& what)
{
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// The number of tokens of each picture.
std::vector<std::int64_t> TokensOf(const TransformerConfig& config, const VisionPixels& pixels)
{
  const VisionConfig& vision = *config.vision;
  const std::int64_t square = vision.merge * vision.merge;
  const std::int64_t ofImage = vision.encoder->ReadsAnySize()
                                 ? 0
                                 : vision.encoder->PatchRows() / vision.merge *
                                     (vision.encoder->PatchColumns() / vision.merge);
  std::vector<std::int64_t> tokens;
  tokens.reserve(pixels.extents.size());
  for (const PatchExtent& extent : pixels.extents)
  {
    tokens.push_back(extent.Count() / square);
  }
  if (!vision.gridSizes.empty())
  {
    for (const TiledPicture& picture : TiledPictures(config, pixels.tiles))
    {
      tokens.push_back(ofImage + picture.Tokens());
    }
    return tokens;
  }
  for (const TilePlace& tile : pixels.tiles)
  {
    tokens.resize(static_cast<std::size_t>(tile.picture) + 1);
    tokens.back() += ofImage;
  }
  return tokens;
}

/// The beginning of the group of frames of a video, which has `perGroup`: the middle of its first
/// and last frame.
std::string SecondsText(
  std::int64_t group, std::int64_t perGroup, std::int64_t frames, double framesPerSecond)
{
  const auto secondsOf = [&](std::int64_t frame)
  { return static_cast<double>(std::min(frame, frames - 1)) / framesPerSecond; };
  const double seconds =
    (secondsOf(group * perGroup) + secondsOf(group * perGroup + perGroup - 1)) / 2;
  std::array<char, 64> text = {};
  std::snprintf(text.data(), text.size(), "<%.1f seconds>", seconds);
  return text.data();
}

}

PicturePrompts::PicturePrompts(
  const OpenTransformer& model, const VisionPixels& pixels, double framesPerSecond)
  : Model(model)
  , Pixels(pixels)
  , FramesPerSecond(framesPerSecond)
  , AreVideos(
      !pixels.videoFrames.empty() || (!pixels.extents.empty() && pixels.extents.front().isVideo))
  , Tokens(TokensOf(model.GetModel().GetConfig(), pixels))
{
}

std::int64_t PicturePrompts::TokenId() const
{
  const VisionConfig& vision = *this->Model.GetModel().GetConfig().vision;
  return this->AreVideos && !this->AreTiledVideos() ? vision.videoToken : vision.imageToken;
}

PictureSteps PicturePrompts::Steps() const
{
  return this->AreVideos ? this->Model.GetVideoProcessor().steps
                         : this->Model.GetVisionProcessor().steps;
}

/// The id that stands for a picture in texts: that of the tokens, or of what begins them.
std::int64_t PicturePrompts::MarkerId() const
{
  const VisionConfig& vision = *this->Model.GetModel().GetConfig().vision;
  return vision.startToken >= 0 ? vision.startToken : this->TokenId();
}

/// The spelling of a token; empty if the tokenizer does not know it.
std::string PicturePrompts::Spelled(std::int64_t id) const
{
  const Tokenizer& tokenizer = this->Model.GetTokenizer();
  if (id < 0 || id >= tokenizer.VocabularySize())
  {
    return {};
  }
  std::string label = tokenizer.Label(id);
  return tokenizer.IdOf(label) == id ? label : std::string();
}

/// Throws OptionError unless the tokenizer has all tokens.
void PicturePrompts::RequireTokens(const std::vector<std::string>& tokens) const
{
  const Tokenizer& tokenizer = this->Model.GetTokenizer();
  for (const std::string& token : tokens)
  {
    ThrowIf<OptionError>(!tokenizer.IdOf(token), "expected a tokenizer with the token '", token,
      "', which a model of architecture ", this->Model.GetModel().GetConfig().architecture,
      " has around pictures, found none; give Token Ids instead.");
  }
}

/// The image token, repeated `count` times.
std::string PicturePrompts::Repeated(std::int64_t count) const
{
  const std::string token = this->Spelled(this->TokenId());
  ThrowIf<OptionError>(token.empty(), "expected a tokenizer in which token ", this->TokenId(),
    " stands for a part of a ", this->What(), ", found none; give Token Ids instead.");
  std::string text;
  for (std::int64_t i = 0; i < count; ++i)
  {
    text += token;
  }
  return text;
}

/// The tiles of a picture and all of it in small, with the tokens around them (SmolVLM).
std::string PicturePrompts::Tiles(std::int64_t picture) const
{
  this->RequireTokens({ FakeToken, GlobalToken });
  const std::vector<TilePlace>& tiles = this->Pixels.tiles;
  const std::int64_t images = std::count_if(
    tiles.begin(), tiles.end(), [&](const TilePlace& tile) { return tile.picture == picture; });
  const std::string tokens =
    this->Repeated(this->Tokens[picture] / std::max<std::int64_t>(images, 1));
  std::string text;
  for (const TilePlace& tile : tiles)
  {
    if (tile.picture != picture)
    {
      continue;
    }
    if (tile.IsWhole())
    {
      text += (images > 1 ? "\n" : "") + std::string(FakeToken) + GlobalToken + tokens + FakeToken;
      continue;
    }
    this->RequireTokens({ RowColumnToken(tile) });
    text += FakeToken + RowColumnToken(tile) + tokens;
    text += tile.column + 1 == tile.columns ? "\n" : "";
  }
  return text;
}

/// The rows of a picture, with a token between them and one at the end (Pixtral).
std::string PicturePrompts::Rows(std::int64_t picture) const
{
  constexpr const char* between = "[IMG_BREAK]";
  constexpr const char* end = "[IMG_END]";
  this->RequireTokens({ between, end });
  const std::int64_t merge = this->Model.GetModel().GetConfig().vision->merge;
  const PatchExtent& extent = this->Pixels.extents[picture];
  const std::string row = this->Repeated(extent.columns / merge);
  std::string text;
  for (std::int64_t i = merge; i <= extent.rows; i += merge)
  {
    text += row;
    text += i == extent.rows ? end : between;
  }
  return text;
}

/// The groups of frames of a video, each behind its time (Qwen3-VL).
std::string PicturePrompts::Groups(std::int64_t video) const
{
  this->RequireTokens({ VisionStart, VisionEnd });
  const PatchExtent& extent = this->Pixels.extents[video];
  const std::int64_t perGroup = this->Model.GetModel().GetConfig().vision->encoder->patchFrames;
  std::string text;
  for (std::int64_t group = 0; group < extent.frames; ++group)
  {
    text += SecondsText(group, perGroup, extent.givenFrames, this->FramesPerSecond);
    text += VisionStart + this->Repeated(this->Tokens[video] / extent.frames) + VisionEnd;
  }
  return text;
}

/// A picture, or a video of any size, in the text of the model.
std::string PicturePrompts::PictureText(std::int64_t picture, bool isOwnMarker) const
{
  const TransformerConfig& config = this->Model.GetModel().GetConfig();
  switch (this->Steps())
  {
    case PictureSteps::Split:
      return this->Tiles(picture);
    case PictureSteps::Grid:
      this->RequireTokens({ "<img>", "</img>" });
      return "<img>" + this->Repeated(this->Tokens[picture]) + "</img>";
    case PictureSteps::AnySize:
      if (config.vision->joinsByMatrix)
      {
        return this->Rows(picture);
      }
      if (this->AreVideos && config.vision->interleavesSections)
      {
        return this->Groups(picture);
      }
      if (!isOwnMarker)
      {
        this->RequireTokens({ VisionStart, VisionEnd });
        return VisionStart + this->Repeated(this->Tokens[picture]) + VisionEnd;
      }
      break;
    case PictureSteps::Whole:
      if (config.vision->startToken >= 0)
      {
        const std::string start = this->Spelled(config.vision->startToken);
        const std::string end = this->Spelled(config.vision->endToken);
        ThrowIf<OptionError>(start.empty() || end.empty(), "expected a tokenizer with the tokens ",
          config.vision->startToken, " and ", config.vision->endToken,
          ", which are around pictures; give Token Ids instead.");
        return "\n\n" + start + this->Repeated(this->Tokens[picture]) + end + "\n\n";
      }
      break;
    case PictureSteps::Padded:
      break;
  }
  return this->Repeated(this->Tokens[picture]);
}

/// A video whose frames are pictures, in the text of the model.
std::string PicturePrompts::VideoText(std::int64_t video) const
{
  const std::vector<std::int64_t>& videos = this->Pixels.videoFrames;
  const std::int64_t first =
    std::accumulate(videos.begin(), videos.begin() + video, std::int64_t{ 0 });
  const std::int64_t frames = videos[video];
  const auto secondsOf = [this](std::int64_t frame)
  { return static_cast<double>(frame) / this->FramesPerSecond; };
  const bool isGrid = this->Steps() == PictureSteps::Grid;
  std::string text = isGrid ? ""
                            : "You are provided the following series of " + InWords(frames) +
                                " frames from a " + DurationText(secondsOf(frames - 1)) +
                                " [H:MM:SS] video.\n";
  for (std::int64_t frame = 0; frame < frames; ++frame)
  {
    text += isGrid ? (frame == 0 ? "" : "\n") + ("Frame" + std::to_string(frame + 1) + ": ")
                   : "\nFrame from " + MinutesText(secondsOf(frame)) + ":";
    text += this->PictureText(first + frame, false);
  }
  return isGrid ? text : text + "\n\n";
}

std::vector<std::string> PicturePrompts::Expand(
  const std::vector<std::string>& texts, const std::string& name) const
{
  const std::string own = this->AreTiledVideos() ? std::string() : this->Spelled(this->MarkerId());
  const std::string common(this->AreVideos ? VideoMarker : ImageMarker);
  const std::vector<std::string> markers = { common, own };
  const std::string spelled = common + (own.empty() || own == common ? "" : " or " + own);
  ThrowIf<OptionError>(
    this->Count() > 0 && !this->AreVideos && CountMarkers(texts, { std::string(VideoMarker) }) > 0,
    name, ": expected the marker ", spelled,
    " for pictures, found <video>; set FramesPerFilm if Images are the frames of videos.");
  const std::string picture(ImageMarker);
  ThrowIf<OptionError>(this->AreVideos && CountMarkers(texts, { picture }) > 0, name,
    ": expected the marker ", spelled, " for videos, found ", picture,
    "; set FramesPerFilm to 0 if Images are pictures.");
  const std::int64_t found = CountMarkers(texts, markers);
  std::vector<std::string> expanded;
  if (found == 0 && this->Count() > 0 && texts.size() == 1)
  {
    std::string text;
    for (std::int64_t number = 0; number < this->Count(); ++number)
    {
      text += this->Written(number, false);
    }
    expanded.push_back(text + this->Begun(texts.front()));
    return expanded;
  }
  ThrowIf<OptionError>(found != this->Count(), name, ": expected a marker, ", spelled,
    ", for each ", this->What(), " of Images, of which there ", this->Count() == 1 ? "is " : "are ",
    this->Count(), ", found ", found, " in ",
    Counted(static_cast<std::int64_t>(texts.size()), "prompt"), ".");
  std::int64_t number = 0;
  for (const std::string& text : texts)
  {
    std::string& line = expanded.emplace_back();
    std::size_t end = 0;
    for (auto marker = FindMarker(text, 0, markers); marker.first != std::string_view::npos;
      marker = FindMarker(text, end, markers))
    {
      line += text.substr(end, marker.first - end);
      line += this->Written(
        number++, !own.empty() && text.compare(marker.first, marker.second, own) == 0);
      end = marker.first + marker.second;
    }
    line += this->Begun(text.substr(end));
  }
  return expanded;
}

/// What follows the pictures of a prompt: with the token that begins texts, and a line break
/// (PaliGemma), unless it is there.
std::string PicturePrompts::Begun(const std::string& text) const
{
  if (!this->Model.GetModel().GetConfig().vision->seesWholePrompts)
  {
    return text;
  }
  const bool isOther =
    !this->Model.GetTokenizer().IdOf("<bos>") && this->Model.GetTokenizer().IdOf("<s>");
  const std::string begin = isOther ? "<s>" : "<bos>";
  this->RequireTokens({ begin });
  return BeginsWith(text, begin) ? text : begin + text + "\n";
}

void PicturePrompts::Expand(
  std::vector<std::vector<std::int64_t>>& sequences, const std::string& name) const
{
  const std::int64_t marker = this->MarkerId();
  std::int64_t given = 0;
  std::int64_t found = 0;
  for (const std::vector<std::int64_t>& sequence : sequences)
  {
    given += this->CountTokens(sequence);
    found += std::count(sequence.begin(), sequence.end(), marker);
  }
  const std::int64_t all =
    std::accumulate(this->Tokens.begin(), this->Tokens.end(), std::int64_t{ 0 });
  if (given == all)
  {
    return;
  }
  ThrowIf<OptionError>(found != this->Count(), name, ": expected the token ", marker,
    " once for each ", this->What(), " of Images, ", this->Count(),
    ", or for each of their tokens, ", all, ", found it ", Counted(found, "time"), ".");
  const PictureSteps steps = this->Steps();
  const VisionConfig& vision = *this->Model.GetModel().GetConfig().vision;
  const bool hasMore = vision.startToken >= 0 || vision.joinsByMatrix ||
                       (this->AreVideos && vision.interleavesSections);
  const bool isPlain =
    !hasMore && (steps == PictureSteps::Whole || steps == PictureSteps::AnySize ||
                  steps == PictureSteps::Padded);
  std::int64_t picture = 0;
  for (std::vector<std::int64_t>& sequence : sequences)
  {
    std::vector<std::int64_t> expanded;
    for (const std::int64_t id : sequence)
    {
      if (id != marker)
      {
        expanded.push_back(id);
        continue;
      }
      const std::vector<std::int64_t> tokens =
        isPlain ? std::vector<std::int64_t>(this->Tokens[picture], id)
                : this->Model.GetTokenizer().Encode(this->Written(picture, true), false).ids;
      expanded.insert(expanded.end(), tokens.begin(), tokens.end());
      ++picture;
    }
    sequence = std::move(expanded);
  }
}

std::int64_t PicturePrompts::CountTokens(const std::vector<std::int64_t>& sequence) const
{
  return std::count(sequence.begin(), sequence.end(), this->TokenId());
}

namespace
{

/// "40 x 30"
std::string SidesText(std::int64_t width, std::int64_t height)
{
  return Concat(width, " x ", height);
}

/// Whether a model does not see all of a picture.
bool IsCropped(const Picture& picture, const VisionProcessor& processor)
{
  const ImageProcessor& image = processor.image;
  return processor.steps == PictureSteps::Whole && image.crop && !processor.padsToSquare &&
         picture.width * image.modelHeight != picture.height * image.modelWidth;
}

/// Throws OptionError unless Images are whole videos for the model.
void CheckVideos(const std::vector<std::string>& files, std::int64_t framesPerVideo,
  double framesPerSecond, const TransformerConfig& config)
{
  if (framesPerVideo == 0)
  {
    return;
  }
  ThrowIf<OptionError>(!ReadsVideos(config),
    "FramesPerFilm: expected 0, since a model of architecture ", config.architecture,
    " reads no videos, found ", framesPerVideo, ".");
  ThrowIf<OptionError>(
    framesPerVideo < 0 || files.size() % static_cast<std::size_t>(framesPerVideo) != 0,
    "FramesPerFilm: expected a number of frames that makes whole videos of the ", files.size(),
    " files of Images, found ", framesPerVideo, ".");
  constexpr double slowest = 1e-6; // so that the seconds of all frames are numbers
  ThrowIf<OptionError>(!(std::isfinite(framesPerSecond) && framesPerSecond >= slowest),
    "FramesPerSecond: expected a number of at least 0.000001, found ", framesPerSecond, ".");
}

}

std::string ChangesOf(
  const std::string& path, const PictureFile& file, const ImageProcessor& processor, bool isFitted)
{
  const Picture& picture = file.picture;
  std::string changes;
  if (isFitted)
  {
    changes = "its " + SidesText(picture.width, picture.height) + " pixels (width x height) are " +
              (processor.crop ? "resized and cropped to " : "resized to ") +
              SidesText(processor.modelWidth, processor.modelHeight);
  }
  if (file.hasTransparency)
  {
    changes += std::string(changes.empty() ? "" : ", and ") + "its transparency is ignored";
  }
  return changes.empty() ? changes : path + ": " + changes + ".";
}

VisionPixels ReadVisionPixels(const std::vector<std::string>& files, std::int64_t framesPerVideo,
  double framesPerSecond, const OpenTransformer& model, std::vector<std::string>& warnings,
  PixelMaker maker)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  const auto other = std::find_if_not(files.begin(), files.end(), IsPicture);
  if (other != files.end())
  {
    throw OptionError("Images: expected PNG or JPEG images for a model of architecture ",
      config.architecture, ", found ", *other, ", which is neither.");
  }
  CheckVideos(files, framesPerVideo, framesPerSecond, config);
  VisionPixels pixels;
  if (files.empty())
  {
    return pixels;
  }
  VisionProcessor processor =
    framesPerVideo == 0 ? model.GetVisionProcessor() : model.GetVideoProcessor();
  processor.image.maker = maker;
  std::vector<Picture> frames;
  for (const std::string& path : files)
  {
    const PictureFile file = ReadPicture(path);
    const std::string losses =
      ChangesOf(path, file, processor.image, IsCropped(file.picture, processor));
    if (!losses.empty())
    {
      warnings.push_back(losses);
    }
    frames.push_back(file.picture);
    if (static_cast<std::int64_t>(frames.size()) < framesPerVideo)
    {
      continue;
    }
    AtPlace<OptionError>(path,
      [&]
      {
        return framesPerVideo == 0 ? AddPicture(frames.front(), processor, pixels)
                                   : AddVideo(frames, 1 / framesPerSecond, processor, pixels);
      });
    frames.clear();
  }
  return pixels;
}

}
