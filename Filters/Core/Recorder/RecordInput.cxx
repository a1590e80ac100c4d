#include "RecordInput.h"

#include "Error.h"
#include "PatchColors.h"
#include "RecordPictures.h"
#include "SystemLimits.h"

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

/// Records the mean colors of the patches and, if wanted and small enough, the pictures of images
/// with three channels; nothing for other input. Returns what users should know, or nothing.
std::string AddPictures(const OpenTransformer& model, const RecorderInput& input,
  bool wantsPictures, Recording& recording)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  if (config.input != InputKind::Images || config.channels != 3)
  {
    return {};
  }
  const ImageProcessor processor = ProcessorOf(model);
  AddPatchColors(config, processor, input.input, recording);
  const bool fits = PictureBytes(config, input.input.images) <= MaximumPictureBytes;
  recording.pictures =
    RecordPictures(input.input.pixels, config, processor, input.pictures, wantsPictures && fits);
  return wantsPictures && !fits
           ? "the " + std::to_string(input.input.images) +
               " pictures take more than 256 MiB, so only the names of their files are recorded."
           : "";
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
  LabelParts(input, recording);
  warning = AddPictures(model, input, wantsPictures, recording);
  return recording;
}

}
