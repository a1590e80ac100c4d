#include "RecordInput.h"

#include "Error.h"
#include "PatchColors.h"
#include "RecordPictures.h"
#include "SystemLimits.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{
namespace
{

/// How images became pixel values; the usual way if the model's folder does not say.
ImageProcessor ProcessorOf(const OpenTransformer& model)
{
  try
  {
    return model.GetImageProcessor();
  }
  catch (const Error&) // matters only to images that are read from pictures
  {
    return DefaultImageProcessor(model.GetModel().GetConfig());
  }
}

/// Records the mean colors of patches, for views that show images as points.
void AddPatchColors(const TransformerConfig& config, const ImageProcessor& processor,
  const TransformerInput& input, Recording& recording)
{
  const std::vector<float> colors = PatchColors(input.pixels, input.images, config, processor);
  const std::int64_t patches = config.PatchRows() * config.PatchColumns();
  RecordedTokens& tokens = recording.tokens;
  tokens.color = SharedMatrix::Zero(tokens.Count(), 3);
  for (std::int64_t i = 0; i < tokens.Count(); ++i)
  {
    const std::size_t row = i;
    const std::int64_t patch = tokens.row[row] * config.PatchColumns() + tokens.column[row];
    const std::int64_t first = 3 * (tokens.sequence[row] * patches + patch);
    for (std::int64_t c = 0; c < 3; ++c)
    {
      tokens.color.Row(i)[c] = tokens.row[row] < 0 ? -1 : colors[first + c];
    }
  }
}

/// How the pictures, or films, among words became pixels; the usual way if the model's folder does
/// not say.
VisionProcessor VisionProcessorOf(const OpenTransformer& model, const RecorderInput& input)
{
  const std::vector<PatchExtent>& extents = input.input.extents;
  const bool areFilms = !input.filmFrames.empty() || (!extents.empty() && extents.front().isFilm);
  try
  {
    return areFilms ? model.GetFilmProcessor() : model.GetVisionProcessor();
  }
  catch (const Error&) // without pictures it does not matter
  {
    return DefaultVisionProcessor(model.GetModel().GetConfig());
  }
}

/// What users should know if the pixels of pictures would take too much memory.
std::string TooLarge(std::size_t pictures)
{
  return "the " + std::to_string(pictures) +
         " pictures take more than 256 MiB, so only the names of their files are recorded.";
}

/// Says of which films pictures are the frames. To the model they are pictures.
void NameFrames(const std::vector<std::int64_t>& filmFrames, std::vector<PictureContent>& contents)
{
  auto content = contents.begin();
  for (std::size_t film = 0; film < filmFrames.size(); ++film)
  {
    for (std::int64_t frame = 0; frame < filmFrames[film]; ++frame, ++content)
    {
      content->picture = static_cast<std::int32_t>(film);
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
    AddPatchColors(images, processor.image, input, *encoder);
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
  NameFrames(input.filmFrames, recording.pictures.contents);
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
  const ImageProcessor processor = ProcessorOf(model);
  AddPatchColors(config, processor, input.input, recording);
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

std::vector<SequenceRange> EncoderRanges(const TransformerConfig& config,
  const TransformerInput& input, const std::vector<SequenceRange>& texts)
{
  std::vector<std::int64_t> first = { 0 }; // sequence of each picture, then their number
  first.reserve(static_cast<std::size_t>(input.images) + input.extents.size() + 1);
  for (std::int64_t image = 0; image < input.images; ++image)
  {
    first.push_back(first.back() + 1);
  }
  for (const PatchExtent& extent : input.extents)
  {
    first.push_back(first.back() + extent.frames);
  }
  const std::vector<ImageToken> tokens = ImageTokens(config, input);
  const auto before = [&](std::int64_t text)
  {
    const auto token = std::find_if(
      tokens.begin(), tokens.end(), [&](const ImageToken& one) { return one.sequence >= text; });
    return token == tokens.end() ? first.back() : first[token->image];
  };
  std::vector<SequenceRange> ranges;
  ranges.reserve(texts.size());
  for (const SequenceRange& range : texts)
  {
    ranges.push_back({ before(range.first), before(range.end) });
  }
  return ranges;
}

Recording RecordInput(const OpenTransformer& model, const RecorderInput& input,
  const RecordOptions& options, bool wantsPictures, std::string& warning)
{
  Recording recording = RecordTransformer(model.GetModel(), input.input, options);
  recording.tokens.text = input.labels;
  LabelParts(input, recording);
  warning = AddPictures(model, input, wantsPictures, recording);
  return recording;
}

}
