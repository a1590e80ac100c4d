#include "RecorderInput.h"

#include "ArrayFile.h"
#include "EncodedPrompt.h"
#include "Error.h"
#include "ImageProcessor.h"
#include "Joined.h"
#include "MappedFile.h"
#include "PictureFile.h"
#include "Prompts.h"
#include "TokenizerFile.h"
#include "UnicodeText.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace atlas
{
namespace
{

using Sequences = std::vector<std::vector<std::int64_t>>;

void RequireOneSource(const RecorderSources& sources)
{
  std::vector<std::string> found;
  const auto add = [&](bool isGiven, const char* name)
  {
    if (isGiven)
    {
      found.emplace_back(name);
    }
  };
  add(!sources.prompts.empty(), "Prompts");
  add(!sources.promptFile.empty(), "PromptFile");
  add(!sources.tokenIds.empty(), "TokenIds");
  add(!sources.imageFiles.empty(), "Images");
  add(sources.table.has_value(), "the table of token ids");
  if (found.size() > 1)
  {
    throw OptionError(
      "expected one of Prompts, PromptFile, TokenIds, Images and a table of token ids, found " +
      std::to_string(found.size()) + ": " +
      Joined(found, [](const std::string& name) { return name; }) + ".");
  }
}

/// Opens a file that is not a PNG or JPEG image.
ArrayFile OpenArrays(const std::string& path)
{
  try
  {
    return ArrayFile(path);
  }
  catch (const FormatError& e)
  {
    throw FormatError(std::string(e.what()) + " It is not a PNG or JPEG image either.");
  }
}

/// Images that are normalized as in training: pixel_values [B,3,h,w], or the array of a .npy file.
void ReadPixelValues(const std::string& path, TransformerInput& input)
{
  const ArrayFile file = OpenArrays(path);
  const ArrayFile::Entries& entries = file.GetEntries();
  auto found = entries.find("pixel_values");
  found = found != entries.end() ? found : entries.find("array");
  if (found == entries.end() || found->second.shape.size() != 4 || !IsFloating(found->second.dtype))
  {
    throw ModelError(
      path +
      ": expected an array 'pixel_values' [images, channels, height, "
      "width] of floating type, found " +
      (found == entries.end() ? "none" : "one of shape " + ToString(found->second.shape)) + ".");
  }
  input.images = found->second.shape[0];
  input.pixels = ReadIntact(file,
    [&]
    {
      const LoadedArray array = found->second.load();
      std::vector<float> pixels(array.view.Count());
      array.view.ToFloat(0, pixels.size(), pixels.data());
      return pixels;
    });
}

/// "40 x 30"
std::string ToText(std::int64_t width, std::int64_t height)
{
  return std::to_string(width) + " x " + std::to_string(height);
}

/// Describes how an image is changed for the model; empty if it is not.
std::string ChangesOf(
  const std::string& path, const PictureFile& file, const ImageProcessor& processor)
{
  const Picture& picture = file.picture;
  std::string changes;
  if (picture.width != processor.modelWidth || picture.height != processor.modelHeight)
  {
    changes = "its " + ToText(picture.width, picture.height) + " pixels (width x height) are " +
              (processor.crop ? "resized and cropped to " : "resized to ") +
              ToText(processor.modelWidth, processor.modelHeight);
  }
  if (file.hasTransparency)
  {
    changes += std::string(changes.empty() ? "" : ", and ") + "its transparency is ignored";
  }
  return changes.empty() ? changes : path + ": " + changes + ".";
}

void ReadPictures(
  const std::vector<std::string>& paths, const ImageProcessor& processor, RecorderInput& result)
{
  for (const std::string& path : paths)
  {
    PictureFile file = ReadPicture(path);
    const std::string changes = ChangesOf(path, file, processor);
    try
    {
      const std::vector<float> pixels = Preprocess(std::move(file.picture), processor);
      result.input.pixels.insert(result.input.pixels.end(), pixels.begin(), pixels.end());
    }
    catch (const OptionError& e)
    {
      throw OptionError(path + ": " + e.what());
    }
    ++result.input.images;
    result.pictures.push_back(std::filesystem::absolute(path).string());
    if (!changes.empty())
    {
      result.warnings.push_back(changes);
    }
  }
}

/// Reads one file of pixel values or any number of images. The first bytes of a file decide.
void ReadImages(
  const std::vector<std::string>& paths, const OpenTransformer& model, RecorderInput& result)
{
  const auto other = std::find_if_not(paths.begin(), paths.end(), IsPicture);
  if (other != paths.end() && paths.size() > 1)
  {
    throw OptionError("Images: expected PNG or JPEG images, or one file with "
                      "pixel_values, found " +
                      std::to_string(paths.size()) + " files, of which " + *other +
                      " is no image.");
  }
  if (other != paths.end())
  {
    ReadPixelValues(*other, result.input);
    return;
  }
  const TransformerConfig& config = model.GetModel().GetConfig();
  if (config.input != InputKind::Images)
  {
    throw OptionError(
      "Images: expected a model of images, found one of architecture " + config.architecture + ".");
  }
  ReadPictures(paths, model.GetImageProcessor(), result);
}

/// Encodes each line; an error message gives the line.
void Encode(const RecorderSources& sources, const std::string& text, const std::string& name,
  const Tokenizer& tokenizer, RecorderInput& result)
{
  for (const std::string& line : SplitLines(text))
  {
    const std::string place =
      name + ", line " + std::to_string(result.input.tokens.size() + 1) + ": ";
    Encoding encoding;
    try
    {
      encoding = tokenizer.EncodePrompt(line, sources.addSpecialTokens);
    }
    catch (const Error& e)
    {
      throw OptionError(place + e.what());
    }
    if (encoding.ids.empty())
    {
      throw OptionError(place + "expected a text, found no tokens.");
    }
    result.input.tokens.push_back(encoding.ids);
    if (tokenizer.HasSegments())
    {
      result.input.segments.emplace_back(encoding.types.begin(), encoding.types.end());
    }
  }
}

/// Cuts sequences off at the maximum length, with a warning.
void Truncate(std::int64_t maximum, RecorderInput& result)
{
  for (std::size_t s = 0; maximum > 0 && s < result.input.tokens.size(); ++s)
  {
    const std::size_t length = result.input.tokens[s].size();
    const std::size_t most = maximum;
    if (length <= most)
    {
      continue;
    }
    result.input.tokens[s].resize(most);
    if (s < result.input.segments.size())
    {
      result.input.segments[s].resize(std::min(most, result.input.segments[s].size()));
    }
    result.warnings.push_back("sequence " + std::to_string(s) + " has " + std::to_string(length) +
                              " tokens; the last " + std::to_string(length - most) +
                              " are left out, since MaximumLength is " + std::to_string(maximum) +
                              ".");
  }
}

}

std::vector<std::string> LabelTokens(const Sequences& sequences, const OpenTransformer& model)
{
  const Tokenizer* tokenizer = FindTokenizer(model);
  std::vector<std::string> labels;
  for (const std::vector<std::int64_t>& sequence : sequences)
  {
    for (const std::int64_t id : sequence)
    {
      if (tokenizer == nullptr || id < 0 || id >= tokenizer->VocabularySize())
      {
        return {};
      }
      labels.push_back(tokenizer->Label(id));
    }
  }
  return labels;
}

RecorderInput GatherInput(const RecorderSources& sources, const OpenTransformer& model)
{
  RequireOneSource(sources);
  RecorderInput result;
  if (!sources.imageFiles.empty())
  {
    ReadImages(sources.imageFiles, model, result);
    return result;
  }
  if (!sources.prompts.empty() || !sources.promptFile.empty())
  {
    const bool isFile = sources.prompts.empty();
    Encode(sources, isFile ? ReadFile(sources.promptFile) : sources.prompts,
      isFile ? sources.promptFile : "Prompts", model.GetTokenizer(), result);
  }
  else
  {
    result.input.tokens =
      sources.table ? *sources.table : ParseIntegerLines(sources.tokenIds, "TokenIds");
    result.input.segments = ParseIntegerLines(sources.segments, "Segments");
  }
  Truncate(sources.maximumLength, result);
  result.labels = LabelTokens(result.input.tokens, model);
  return result;
}

}
