#include "RecordInput.h"

#include "Base/Error.h"
#include "Base/SystemLimits.h"
#include "Preprocessing/PatchGrid.h"
#include "Preprocessing/RecordPictures.h"

#include <algorithm>
#include <memory>

namespace atlas
{
namespace
{

/// How images became pixel values; the usual way if the model's folder does not say.
ImageProcessor ProcessorOf(const OpenTransformer& model, PixelMaker maker)
{
  ImageProcessor processor;
  try
  {
    processor = model.GetImageProcessor();
  }
  catch (const Error&) // matters only to images that are read from pictures
  {
    processor = DefaultImageProcessor(model.GetModel().GetConfig());
  }
  processor.maker = maker;
  return processor;
}

/// How the pictures, or videos, among words became pixels; the usual way if the model's folder does
/// not say.
VisionProcessor VisionProcessorOf(const OpenTransformer& model, const RecorderInput& input)
{
  const std::vector<PatchExtent>& extents = input.input.extents;
  const bool areVideos =
    !input.videoFrames.empty() || (!extents.empty() && extents.front().isVideo);
  VisionProcessor processor;
  try
  {
    processor = areVideos ? model.GetVideoProcessor() : model.GetVisionProcessor();
  }
  catch (const Error&) // without pictures it does not matter
  {
    processor = DefaultVisionProcessor(model.GetModel().GetConfig());
  }
  processor.image.maker = input.pixelMaker;
  return processor;
}

/// What users should know if the pixels of pictures would take too much memory.
std::string TooLarge(std::size_t pictures)
{
  return "the " + std::to_string(pictures) +
         " pictures take more than 256 MiB, so only the names of their files are recorded.";
}

/// Says of which videos pictures are the frames. To the model they are pictures.
void NameFrames(const std::vector<std::int64_t>& videoFrames, std::vector<PictureContent>& contents)
{
  auto content = contents.begin();
  for (std::size_t video = 0; video < videoFrames.size(); ++video)
  {
    for (std::int64_t frame = 0; frame < videoFrames[video]; ++frame, ++content)
    {
      content->picture = static_cast<std::int32_t>(video);
      content->frame = static_cast<std::int32_t>(frame);
    }
  }
}

/// Gives image tokens the labels "picture: row, column".
void LabelSquares(RecordedTokens& tokens)
{
  for (std::size_t i = 0; i < tokens.picture.size() && !tokens.text.empty(); ++i)
  {
    if (tokens.picture[i] >= 0)
    {
      tokens.text[i] = std::to_string(tokens.picture[i]) + ": " + std::to_string(tokens.row[i]) +
                       ", " + std::to_string(tokens.column[i]);
    }
  }
}

/// The encoder's part: its images are the tiles, or the groups of frames.
void AddEncoderPictures(const TransformerConfig& config, const VisionProcessor& processor,
  const TransformerInput& input, bool keepsPixels, Recording& recording)
{
  if (recording.encoder == nullptr)
  {
    return;
  }
  const TransformerConfig& images = *config.vision->encoder;
  auto encoder = std::make_shared<Recording>(*recording.encoder);
  RecordedTokens& tokens = encoder->tokens;
  if (images.ReadsAnySize())
  {
    RecordedTokens places = tokens; // groups are entries of the pictures
    places.picture = tokens.sequence;
    tokens.color =
      SquareColors(input, config, processor, places, images.patchHeight, images.patchWidth);
    encoder->pictures = keepsPixels ? recording.pictures : RecordedPictures();
  }
  else
  {
    tokens.color = PatchColors(input.pixels, images, processor.image, tokens);
    encoder->pictures = RecordPictures(input.pixels, images, processor.image, {}, keepsPixels);
  }
  recording.encoder = encoder;
}

/// The same as AddPictures for pictures among words.
std::string AddPicturesAmongWords(const OpenTransformer& model, const RecorderInput& input,
  bool wantsPictures, Recording& recording)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  LabelSquares(recording.tokens);
  if (input.input.tiles.empty() && input.input.extents.empty())
  {
    return {};
  }
  const VisionProcessor processor = VisionProcessorOf(model, input);
  const std::vector<PictureContent> contents = PictureContents(config, input.input);
  const bool fits = PictureBytes(contents) <= MaximumPictureBytes / 2; // the encoder has them, too
  recording.pictures =
    RecordPictures(input.input, config, processor, input.pictures, wantsPictures && fits);
  NameFrames(input.videoFrames, recording.pictures.contents);
  const VisionConfig& vision = *config.vision;
  recording.tokens.color = SquareColors(input.input, config, processor, recording.tokens,
    vision.merge * vision.encoder->patchHeight, vision.merge * vision.encoder->patchWidth);
  AddEncoderPictures(config, processor, input.input, wantsPictures && fits, recording);
  return wantsPictures && !fits ? TooLarge(contents.size()) : "";
}

/// Records the mean colors of the patches and, if wanted and small enough, the pictures of images
/// with three channels; nothing for other input. Returns what users should know, or nothing.
std::string AddPictures(const OpenTransformer& model, const RecorderInput& input,
  bool wantsPictures, Recording& recording)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  if (config.vision != nullptr)
  {
    return AddPicturesAmongWords(model, input, wantsPictures, recording);
  }
  if (config.input != InputKind::Images || config.channels != 3)
  {
    return {};
  }
  const ImageProcessor processor = ProcessorOf(model, input.pixelMaker);
  if (config.ReadsAnySize()) // pictures of several sizes are not kept
  {
    recording.tokens.color = ColorsOfPatches(input.input, config, processor);
    return {};
  }
  recording.tokens.color = PatchColors(input.input.pixels, config, processor, recording.tokens);
  const bool fits = PictureBytes(config, input.input.images) <= MaximumPictureBytes;
  recording.pictures =
    RecordPictures(input.input.pixels, config, processor, input.pictures, wantsPictures && fits);
  return wantsPictures && !fits ? TooLarge(input.input.images) : "";
}

/// Gives the parts of a recording the labels of source and target.
void LabelParts(const RecorderInput& input, Recording& recording)
{
  if (recording.cross == nullptr || input.labels.empty() || input.sourceLabels.empty())
  {
    return;
  }
  auto encoder = std::make_shared<Recording>(*recording.encoder);
  encoder->tokens.text = input.sourceLabels;
  auto cross = std::make_shared<Recording>(*recording.cross);
  auto source = input.sourceLabels.begin();
  auto target = input.labels.begin();
  for (std::int64_t s = 0; s < cross->SequenceCount(); ++s)
  {
    std::vector<std::string>& texts = cross->tokens.text;
    const std::int64_t sources = cross->sourceLengths[s];
    const std::int64_t targets = cross->SequenceLength(s) - sources;
    texts.insert(texts.end(), source, source + sources);
    texts.insert(texts.end(), target, target + targets);
    source += sources;
    target += targets;
  }
  recording.encoder = encoder;
  recording.cross = cross;
}

}

void LeaveOutMissing(const Transformer& model, RecordChoice& choice)
{
  if (std::all_of(RecordedQuantities.begin(), RecordedQuantities.end(),
        [&](const RecordedQuantity& quantity) { return choice.*quantity.option; }))
  {
    choice.logits = model.HasLogits();
    choice.routing = model.GetConfig().experts > 0;
  }
}

void RequireRecordingMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const MemoryEstimate memory = EstimateMemory(model, input, options);
  RequireMemory(static_cast<double>(memory.recording + memory.working), "the recording",
    "give fewer or shorter sequences, or record fewer layers or quantities.");
}

Recording RecordInput(const OpenTransformer& model, const RecorderInput& input,
  const RecordOptions& options, bool wantsPictures, std::string& warning)
{
  Recording recording = RecordTransformer(model.GetModel(), input.input, options);
  recording.tokens.text = input.labels;
  recording.pixels = input.pictures.empty() ? "" : std::string(Name(input.pixelMaker));
  LabelParts(input, recording);
  warning = AddPictures(model, input, wantsPictures, recording);
  return recording;
}

}
