#include "RecordedPictures.h"

#include "Error.h"
#include "PatchColors.h"
#include "RecordPictures.h"

namespace AttentionAtlas
{
namespace
{

/// How images became pixel values; the usual way if the model's folder does not say.
atlas::ImageProcessor ProcessorOf(const AttentionAtlas::OpenTransformer& model)
{
  try
  {
    return model.GetImageProcessor();
  }
  catch (const atlas::Error&) // matters only to images that are read from pictures
  {
    return atlas::DefaultImageProcessor(model.GetModel().GetConfig());
  }
}

/// Records the mean colors of patches, for views that show images as points.
void AddPatchColors(const atlas::TransformerConfig& config, const atlas::ImageProcessor& processor,
  const atlas::TransformerInput& input, atlas::Recording& recording)
{
  const std::vector<float> colors =
    atlas::PatchColors(input.pixels, input.images, config, processor);
  const std::int64_t patches = config.PatchRows() * config.PatchColumns();
  atlas::RecordedTokens& tokens = recording.tokens;
  tokens.color = atlas::SharedMatrix::Zero(tokens.Count(), 3);
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

}

std::string AddPictures(const OpenTransformer& model, const RecorderInput& input,
  bool wantsPictures, atlas::Recording& recording)
{
  const atlas::TransformerConfig& config = model.GetModel().GetConfig();
  if (config.input != atlas::InputKind::Images || config.channels != 3)
  {
    return {};
  }
  const atlas::ImageProcessor processor = ProcessorOf(model);
  AddPatchColors(config, processor, input.input, recording);
  const bool fits = atlas::PictureBytes(config, input.input.images) <= atlas::MaximumPictureBytes;
  recording.pictures = atlas::RecordPictures(
    input.input.pixels, config, processor, input.pictures, wantsPictures && fits);
  return wantsPictures && !fits
           ? "the " + std::to_string(input.input.images) +
               " pictures take more than 256 MiB, so only the names of their files are recorded."
           : "";
}

}
