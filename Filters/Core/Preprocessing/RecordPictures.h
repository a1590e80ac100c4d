#pragma once

#include "Recording/Recording.h"
#include "TransformerInput.h"
#include "VisionProcessor.h"
#include "Weights/ImageProcessor.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// The most bytes of pixels that a recording holds by default: 256 MiB, about 1,780 pictures of 224
/// x 224 pixels.
inline constexpr std::uint64_t MaximumPictureBytes = std::uint64_t{ 1 } << 28U;

/// The bytes of the pictures of this number of images.
std::uint64_t PictureBytes(const TransformerConfig& config, std::int64_t images);

/// The pictures that a model sees, from its input `pixels` [images, 3, height, width]: the
/// normalization of `processor` is taken back (Brightness) and each channel rounded to 8 bits.
/// Those of files are exactly the resized and cropped pixels; 16-bit files are rounded. The model's
/// images must have 3 channels. What patches do not cover, at the right and lower edge, is left
/// out.
///
/// With `keepPixels` the pixels themselves are recorded. Otherwise only the names of `files`, one
/// per image, with a hash of the pixels; nothing if `files` is empty.
RecordedPictures RecordPictures(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor, const std::vector<std::string>& files, bool keepPixels);

/// What the entries of RecordedPictures show for an input with pictures among words: each picture
/// with all its tiles, followed, if it is there, by all of it in small; or each group of frames.
/// `config` has `vision`.
std::vector<PictureContent> PictureContents(
  const TransformerConfig& config, const TransformerInput& input);

/// The bytes of these pictures.
std::uint64_t PictureBytes(const std::vector<PictureContent>& contents);

/// The same for pictures among words, with PictureContents: tiles are joined, and of a group of
/// frames the first one is shown. `files` are one per picture, or the frames of all videos, which
/// have equally many. Patches at the right and lower edge of a tile that no token covers are left
/// out.
RecordedPictures RecordPictures(const TransformerInput& input, const TransformerConfig& config,
  const VisionProcessor& processor, const std::vector<std::string>& files, bool keepPixels);

/// The mean colors of the squares of an input's pictures that tokens cover, [tokens, 3], by their
/// entry in PictureContents, row and column; -1 for tokens with entry -1. A square has `rows` x
/// `columns` pixels.
SharedMatrix SquareColors(const TransformerInput& input, const TransformerConfig& config,
  const VisionProcessor& processor, const RecordedTokens& tokens, std::int64_t rows,
  std::int64_t columns);

/// The mean colors of the patches of images, [tokens, 3]: red, green and blue from 0 to 1, of each
/// pixel clipped before; -1 for tokens with row -1. `pixels` are those of RecordPictures, and
/// `tokens` have their image as sequence.
SharedMatrix PatchColors(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor, const RecordedTokens& tokens);

/// The pixels [height, width, 3] of the picture of a sequence, or of an entry of `contents`, top
/// row first: those recorded, or those of its file, read and processed again. Throws OptionError,
/// with the file, if it is missing or no picture, or if its pixels have changed since they were
/// recorded; FileError if the file that the recording is mapped from was truncated or changed.
/// There must be pictures.
std::shared_ptr<const std::uint8_t> FindPicture(
  const RecordedPictures& pictures, std::int64_t sequence);

/// A hash of the size and the pixels of a picture, of 64 bits in hexadecimal (FNV-1a).
std::string PictureHash(const std::uint8_t* pixels, std::int64_t height, std::int64_t width);

}
