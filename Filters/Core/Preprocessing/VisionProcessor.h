#pragma once

#include "Weights/ImageProcessor.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// How the pictures among words become the input of a model's encoder of images.
enum class PictureSteps
{
  Whole,   ///< each is one image: padded, resized, cropped (LLaVA; CLIP's processor)
  Grid,    ///< tiles of the grid whose proportions are nearest, then all of it in small (InternVL;
           ///< GOT-OCR2's processor)
  Split,   ///< the longer side gets a length, both are extended to whole tiles; then all of it in
           ///< small (SmolVLM, Idefics3)
  AnySize, ///< patches of a picture or video, whose sides are multiples of a token's (Qwen2-VL,
           ///< Pixtral)
  Padded   ///< tiles of the size, of several, that shows most of it, with black around it; then all
           ///< of it in small (LLaVA-OneVision)
};

/// The longest side of a picture that is split.
inline constexpr std::int64_t LongestSplit = 4096;

/// The settings of these steps, as in the image processors of Hugging Face. Sizes are rounded as
/// there. Tiles of a picture are by rows, from the top left, before all of it in small.
///
/// Whole: with padsToSquare a picture becomes the middle of a square of the mean color, rounded
/// down to bytes, before it is resized.
///
/// Grid: of all grids of minimumTiles to maximumTiles tiles that with the proportions nearest to
/// the picture's, to whose size it is resized, bicubic as in the original. Of two that are equally
/// near the larger one, if half of its area is less than the picture's. There is no small picture
/// beside one tile.
///
/// Split: the longer side becomes longestEdge, at most 4096, the other one keeps the proportions,
/// is rounded down, then up to an even number. Then both are resized up to whole tiles. There are
/// no tiles if `splits` is off or one would do; then the model sees the small picture alone.
///
/// AnySize: height and width become the nearest multiples of patchSize * merge. Pictures of more
/// than maximumPixels, or fewer than minimumPixels, are scaled to these numbers; sides are then
/// rounded down, or up. Proportions beyond 200 to 1 are refused. With countsFrames the numbers are
/// of all frames of a video. With longestHeight and longestWidth, pictures beyond are scaled down
/// to them, and both sides are rounded up.
///
/// Padded: of gridSizes that in which the most pixels of the picture are shown, or as many with the
/// least area. The longer side is scaled to it, the other in proportion and rounded up. An odd
/// difference leaves one more black pixel at the right or below.
struct VisionProcessor
{
  PictureSteps steps = PictureSteps::Whole;
  ImageProcessor image; ///< all steps of Whole; of the others the filter, rescaling and
                        ///< normalization, and the size of a tile, modelHeight x modelWidth

  bool padsToSquare = false; ///< Whole

  std::int64_t minimumTiles = 1; ///< Grid
  std::int64_t maximumTiles = 12;

  bool splits = true; ///< Split
  std::int64_t longestEdge = 0;

  std::int64_t patchSize = 0; ///< AnySize, like all below
  std::int64_t merge = 1;
  std::int64_t patchFrames = 1;
  std::int64_t minimumPixels = 0;
  std::int64_t maximumPixels = 0;
  bool countsFrames = false;
  std::int64_t longestHeight = 0; ///< of pictures of any size; 0: by their pixels
  std::int64_t longestWidth = 0;

  std::vector<ImageSize> gridSizes; ///< Padded
};

/// Whether a model reads videos: with a token of their own (Qwen2-VL), or frame by frame as
/// pictures of one image each (InternVL, SmolVLM).
bool ReadsVideos(const TransformerConfig& config);

/// The processor of a model with VisionConfig whose folder does not say: that of the original code
/// for its architecture, with the model's sizes. Throws ModelError unless images have 3 channels.
VisionProcessor DefaultVisionProcessor(const TransformerConfig& config);

/// Reads the text of a preprocessor_config.json, or of a processor_config.json with
/// `image_processor`, in which later versions keep the same settings: image_processor_type, and,
/// beside the settings of ParseImageProcessor, do_pad (of LlavaImageProcessor), min_patches,
/// max_patches (crop_to_patches is always on, as the original's processor of texts and pictures has
/// it), size with longest_edge, do_image_splitting, max_image_size; size with shortest_edge and
/// longest_edge or min_pixels and max_pixels, also outside of it, patch_size, merge_size and
/// temporal_patch_size. Missing settings have their default. Throws as ParseImageProcessor does,
/// also if sizes are not those of the model.
VisionProcessor ParseVisionProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config);

/// Where newer versions of the original keep the settings of all processors.
inline constexpr const char* ProcessorFile = "processor_config.json";

/// Reads ImageProcessorFile of a model's folder, or else ProcessorFile, or returns the default.
/// Throws as ParseVisionProcessor does, and FileError.
VisionProcessor ReadVisionProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config);

/// Where versions of the original from 4.52 on keep the settings for videos.
inline constexpr const char* VideoProcessorFile = "video_preprocessor_config.json";

/// Reads the text of such a file, or of a processor_config.json with `video_processor`: the
/// settings that ParseVisionProcessor names. What chooses frames is not read. Throws as
/// ParseVisionProcessor does, also if the model reads no videos.
///
/// AnySize: missing numbers of pixels are those of the original's processor of videos, 128 * 28 *
/// 28 and 768 * 28 * 28. Grid: a frame is one tile. Split: a frame is not split, and resized
/// bicubic where the file says Lanczos, as in the original; without `size` its longer side is that
/// of `video_size` in `video_sampling`.
VisionProcessor ParseVideoProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config);

/// Reads VideoProcessorFile of a model's folder, or `video_processor` of ProcessorFile. Without
/// them videos have the settings of pictures. Throws as ParseVideoProcessor and
/// ReadVisionProcessor.
VisionProcessor ReadVideoProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config);

/// All settings of a processor, in the form of a preprocessor_config.json; and the same processor
/// made from them without its model. The latter throws as ParseVisionProcessor.
std::string ToJson(const VisionProcessor& processor);
VisionProcessor ParseVisionProcessor(std::string_view text, const std::string& source);

}
