#pragma once

#include "Files/PictureFile.h"
#include "OpenTransformer.h"
#include "Preprocessing/VisionPixels.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// How the pictures, or videos, among words are written in the texts of a model. A marker stands
/// for the next one: <image>, or <video> for a video, or the spelling of the model's own token.
/// Each becomes what the original's processor makes of it:
///
/// LLaVA and LLaVA-OneVision: an image token for each token of the picture. Gemma 3: the same,
/// between the tokens that begin and end pictures, of which the first is also its marker, and two
/// new lines on both sides. Mistral 3: the same, with [IMG_BREAK] behind each row and [IMG_END]
/// behind the last. Qwen2-VL and Qwen3-VL: the same, between <|vision_start|> and <|vision_end|>
/// unless the marker is the model's own. InternVL: the same, between <img> and </img>. SmolVLM: the
/// tokens of each tile after <fake_token_around_image> and <row_R_col_C>, a new line after each
/// row, another one, and those of the whole picture between <fake_token_around_image><global-img>
/// and <fake_token_around_image>; the last alone if there are no tiles. PaliGemma: the tokens of
/// the pictures, <bos>, the text and a line break.
///
/// A video of Qwen2-VL is written as its picture. One of Qwen3-VL has, for each group of frames,
/// "<0.5 seconds>", the mean time of its first and last frame, then its picture. One of InternVL
/// has a line "Frame1: " for each frame, followed by its picture. One of SmolVLM begins with "You
/// are provided the following series of three frames from a 0:00:01 [H:MM:SS] video.", where the
/// time is that of the last frame, rounded down; then come, each in a line, "Frame from 00:01:" and
/// the picture.
class PicturePrompts
{
public:
  /// `pixels` are those of all texts, `model` has VisionConfig, both must outlive this object.
  PicturePrompts(const OpenTransformer& model, const VisionPixels& pixels, double framesPerSecond);

  /// The number of pictures, or videos.
  std::int64_t Count() const
  {
    return this->AreTiledVideos() ? this->Pixels.videoFrames.size() : this->Tokens.size();
  }

  /// The texts with the model's own tokens. Without markers the pictures come first in a single
  /// text. Throws OptionError, which begins with `name`, if there are not as many markers as
  /// pictures, or the tokenizer lacks a token.
  std::vector<std::string> Expand(
    const std::vector<std::string>& texts, const std::string& name) const;

  /// The same for sequences of token ids, whose markers are the model's own token. They are kept if
  /// it is there as often as the pictures have tokens.
  void Expand(std::vector<std::vector<std::int64_t>>& sequences, const std::string& name) const;

  /// The ids of image tokens in a sequence.
  std::int64_t CountTokens(const std::vector<std::int64_t>& sequence) const;

private:
  const OpenTransformer& Model;
  const VisionPixels& Pixels;
  double FramesPerSecond = 1;
  bool AreVideos = false;
  std::vector<std::int64_t> Tokens; ///< of each picture; of videos in tiles, of each frame

  bool AreTiledVideos() const { return !this->Pixels.videoFrames.empty(); }
  std::int64_t TokenId() const;
  PictureSteps Steps() const;
  std::string What() const { return this->AreVideos ? "video" : "picture"; }
  std::int64_t MarkerId() const;
  std::string Spelled(std::int64_t id) const;
  std::string Repeated(std::int64_t count) const;
  std::string Tiles(std::int64_t picture) const;
  std::string Rows(std::int64_t picture) const;
  std::string Groups(std::int64_t video) const;
  std::string PictureText(std::int64_t picture, bool isOwnMarker) const;
  std::string VideoText(std::int64_t video) const;
  std::string Begun(const std::string& text) const;
  /// A picture or video in the text of the model.
  std::string Written(std::int64_t number, bool isOwnMarker) const
  {
    return this->AreTiledVideos() ? this->VideoText(number)
                                  : this->PictureText(number, isOwnMarker);
  }
  void RequireTokens(const std::vector<std::string>& tokens) const;
};

/// Says that the pixels of a picture are resized or cropped for a model, if `isFitted`, and that
/// its transparency is ignored; empty if neither.
std::string ChangesOf(
  const std::string& path, const PictureFile& file, const ImageProcessor& processor, bool isFitted);

/// The pictures of files, or the videos that they are frames of, as the input of a model with
/// VisionConfig. Appends to `warnings` what it does not see of them. `framesPerVideo` 0: pictures.
/// Throws OptionError if a file is no picture, or cannot be read as the model's processor demands,
/// if the model reads no videos, or if the frames do not make whole videos.
VisionPixels ReadVisionPixels(const std::vector<std::string>& files, std::int64_t framesPerVideo,
  double framesPerSecond, const OpenTransformer& model, std::vector<std::string>& warnings,
  PixelMaker maker = PixelMaker::Pillow);

}
