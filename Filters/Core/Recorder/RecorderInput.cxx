#include "RecorderInput.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Joined.h"
#include "EncodedPrompt.h"
#include "Files/ArrayFile.h"
#include "Files/MappedFile.h"
#include "Files/PictureFile.h"
#include "Files/SoundFile.h"
#include "PicturePrompts.h"
#include "Preprocessing/PatchGrid.h"
#include "Preprocessing/PreprocessPicture.h"
#include "Preprocessing/SoundProcessor.h"
#include "Text/TokenizerFile.h"
#include "Text/UnicodeText.h"
#include "Weights/ImageProcessor.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

using Sequences = std::vector<std::vector<std::int64_t>>;

/// The labels of all tokens; empty without a tokenizer, or one that does not have them all.
std::vector<std::string> LabelBy(const Tokenizer* tokenizer, const Sequences& sequences)
{
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

/// `hasPictures`: whether Images go with another source.
void RequireOneSource(const RecorderSources& sources, bool hasPictures)
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
  add(!sources.imageFiles.empty() && !hasPictures, "Images");
  add(!sources.soundFiles.empty(), "Sounds");
  add(sources.table.has_value(), "the table of token ids");
  ThrowIf<OptionError>(found.size() > 1,
    "expected one of Prompts, PromptFile, TokenIds, Images, Sounds and a table of token ids, "
    "found ",
    found.size(), ": ", Joined(found, [](const std::string& name) { return name; }), ".");
}

/// Opens a file that is not `other`, such as a PNG or JPEG image.
ArrayFile OpenArrays(const std::string& path, const std::string& other)
{
  try
  {
    return ArrayFile(path);
  }
  catch (const FormatError& e)
  {
    throw FormatError(e.what(), " It is not a ", other, " either.");
  }
}

/// An array of a file, or that of a .npy file, as numbers. `shape`: the names of its dimensions.
struct NamedArray
{
  std::string name;
  std::vector<std::string> shape;
  std::string other; ///< what else the file could be
};

/// The values of the array and the length of its first dimension.
std::pair<std::vector<float>, std::int64_t> ReadValues(
  const std::string& path, const NamedArray& wanted)
{
  const ArrayFile file = OpenArrays(path, wanted.other);
  const ArrayFile::Entries& entries = file.GetEntries();
  auto found = entries.find(wanted.name);
  found = found != entries.end() ? found : entries.find("array");
  if (found == entries.end() || found->second.shape.size() != wanted.shape.size() ||
      !IsFloating(found->second.dtype))
  {
    throw ModelError(path, ": expected an array '", wanted.name, "' [",
      Joined(wanted.shape, [](const std::string& side) { return side; }),
      "] of floating type, found ",
      found == entries.end() ? "none" : "one of shape " + ToString(found->second.shape), ".");
  }
  std::vector<float> values = ReadIntact(file,
    [&]
    {
      const LoadedArray array = found->second.load();
      std::vector<float> numbers(array.view.Count());
      array.view.ToFloat(0, numbers.size(), numbers.data());
      return numbers;
    });
  return { std::move(values), found->second.shape[0] };
}

/// Images that are normalized as in training: pixel_values [B,3,h,w], or the array of a .npy file.
void ReadPixelValues(const std::string& path, TransformerInput& input)
{
  std::tie(input.pixels, input.images) = ReadValues(
    path, { "pixel_values", { "images", "channels", "height", "width" }, "PNG or JPEG image" });
}

/// Patches of pictures of any grid: pixel_values [B, patches, values of a patch], of which the
/// first rows x columns of spatial_shapes [B, 2] count.
void ReadPatches(const std::string& path, const TransformerConfig& config, TransformerInput& input)
{
  const auto [values, images] =
    ReadValues(path, { "pixel_values", { "images", "patches", "values" }, "PNG or JPEG image" });
  const ArrayFile file = OpenArrays(path, "PNG or JPEG image");
  const auto found = file.GetEntries().find("spatial_shapes");
  ThrowIf<ModelError>(found == file.GetEntries().end() || IsFloating(found->second.dtype), path,
    ": expected an array 'spatial_shapes' [images, 2] of integers.");
  const std::vector<std::int64_t> shapes =
    ReadIntact(file, [&] { return found->second.load().view.ToInteger(); });
  const std::int64_t size = config.patchHeight * config.patchWidth * config.channels;
  const std::int64_t patches = static_cast<std::int64_t>(values.size()) / images / size;
  ThrowIf<ModelError>(static_cast<std::int64_t>(shapes.size()) != 2 * images, path,
    ": expected spatial_shapes [", images, ", 2], found ", shapes.size(), " numbers.");
  for (std::int64_t image = 0; image < images; ++image)
  {
    PatchExtent extent;
    extent.rows = shapes[2 * image];
    extent.columns = shapes[2 * image + 1];
    ThrowIf<ModelError>(
      extent.rows < 1 || extent.columns < 1 || extent.rows > patches / extent.columns, path,
      ": spatial_shapes: expected a grid of 1 to ", patches, " patches, found ", extent.rows, " x ",
      extent.columns, ".");
    const auto first = values.begin() + image * patches * size;
    input.pixels.insert(input.pixels.end(), first, first + extent.Count() * size);
    input.extents.push_back(extent);
  }
}

/// What a model of sound reads, of one file: [sounds, bands, frames], of AST with its last axes the
/// other way round; or waveforms [sounds, samples].
void ReadFeatures(const std::string& path, const TransformerConfig& config, TransformerInput& input)
{
  const std::string name =
    config.sound != nullptr || config.HasPatches() ? "input_values" : "input_features";
  std::vector<std::string> shape = { "sounds", "bands", "frames" };
  if (config.sound != nullptr)
  {
    shape = { "sounds", "samples" };
  }
  else if (config.HasPatches())
  {
    std::swap(shape[1], shape[2]);
  }
  std::tie(input.features, input.sounds) = ReadValues(path, { name, shape, "sound" });
  const std::int64_t size =
    static_cast<std::int64_t>(input.features.size()) / std::max<std::int64_t>(input.sounds, 1);
  if (config.sound != nullptr)
  {
    input.samples.assign(ToIndex(input.sounds), size);
  }
  else if (config.HasPatches())
  {
    const std::vector<float> stored = input.features;
    const std::int64_t frames = size / config.melBands;
    for (std::int64_t i = 0; i < input.sounds * frames * config.melBands; ++i)
    {
      const std::int64_t place = i % (frames * config.melBands);
      input.features[i - place + place % config.melBands * frames + place / config.melBands] =
        stored[i];
    }
  }
}

/// The times of tokens.
std::vector<std::string> TimesOf(const std::vector<std::int64_t>& lengths, double secondsPerPlace)
{
  std::vector<std::string> labels;
  for (const std::int64_t length : lengths)
  {
    for (std::int64_t place = 0; place < length; ++place)
    {
      std::array<char, 32> text = {};
      std::snprintf(
        text.data(), text.size(), "%.2f s", static_cast<double>(place) * secondsPerPlace);
      labels.emplace_back(text.data());
    }
  }
  return labels;
}

/// Sounds, or one file of what is made of them, for a model that reads them, or whose encoder does.
void ReadSounds(
  const std::vector<std::string>& paths, const OpenTransformer& model, RecorderInput& result)
{
  const TransformerConfig& whole = model.GetModel().GetConfig();
  const TransformerConfig& config = whole.encoder != nullptr ? *whole.encoder : whole;
  ThrowIf<OptionError>(config.input != InputKind::Sound,
    "Sounds: expected a model that reads sound, found one of architecture ", whole.architecture,
    ".");
  const auto other = std::find_if_not(paths.begin(), paths.end(), IsSound);
  if (other != paths.end() && paths.size() > 1)
  {
    throw OptionError("Sounds: expected sounds, or one file with input_features, found ",
      paths.size(), " files, of which ", *other, " is no sound.");
  }
  const SoundProcessor processor = model.GetSoundProcessor();
  TransformerInput& input = result.input;
  if (other != paths.end())
  {
    ReadFeatures(*other, config, input);
  }
  for (const std::string& path : other != paths.end() ? std::vector<std::string>() : paths)
  {
    const Sound sound = ReadSound(path);
    const std::vector<float> features =
      AtPlace<OptionError>(path, [&] { return SoundFeatures(sound, processor); });
    input.features.insert(input.features.end(), features.begin(), features.end());
    ++input.sounds;
    const auto length = static_cast<std::int64_t>(sound.samples.size());
    if (config.sound != nullptr)
    {
      input.samples.push_back(length);
    }
    if (processor.MostSamples() > 0 && length > processor.MostSamples())
    {
      const auto seconds = [&](std::int64_t samples)
      {
        const std::int64_t tenths = samples * 10 / processor.rate;
        return Concat(tenths / 10, ".", tenths % 10);
      };
      result.warnings.push_back(Concat(path, ": the model reads its first ",
        seconds(processor.MostSamples()), " of ", seconds(length), " seconds."));
    }
  }
  if (config.HasPatches()) // they have rows and columns
  {
    return;
  }
  const double seconds = config.sound == nullptr ? processor.SecondsPerPlace()
                                                 : static_cast<double>(config.sound->Step()) /
                                                     static_cast<double>(processor.rate);
  std::vector<std::string>& labels = whole.encoder != nullptr ? result.sourceLabels : result.labels;
  labels = TimesOf(SequenceLengths(config, input), seconds);
}

void ReadPictures(
  const std::vector<std::string>& paths, const ImageProcessor& processor, RecorderInput& result)
{
  for (const std::string& path : paths)
  {
    PictureFile file = ReadPicture(path);
    const std::string changes = ChangesOf(path, file, processor,
      file.picture.width != processor.modelWidth || file.picture.height != processor.modelHeight);
    const std::vector<float> pixels =
      AtPlace<OptionError>(path, [&] { return Preprocess(std::move(file.picture), processor); });
    result.input.pixels.insert(result.input.pixels.end(), pixels.begin(), pixels.end());
    ++result.input.images;
    result.pictures.push_back(std::filesystem::absolute(path).string());
    if (!changes.empty())
    {
      result.warnings.push_back(changes);
    }
  }
}

/// Reads one file of pixel values or any number of images. The first bytes of a file decide.
void ReadImages(const std::vector<std::string>& paths, const OpenTransformer& model,
  PixelMaker maker, RecorderInput& result)
{
  const auto other = std::find_if_not(paths.begin(), paths.end(), IsPicture);
  if (other != paths.end() && paths.size() > 1)
  {
    throw OptionError("Images: expected PNG or JPEG images, or one file with pixel_values, found ",
      paths.size(), " files, of which ", *other, " is no image.");
  }
  const TransformerConfig& config = model.GetModel().GetConfig();
  if (other != paths.end())
  {
    if (config.ReadsAnySize())
    {
      ReadPatches(*other, config, result.input);
    }
    else
    {
      ReadPixelValues(*other, result.input);
    }
    return;
  }
  ThrowIf<OptionError>(config.input != InputKind::Images,
    "Images: expected a model of images, found one of architecture ", config.architecture, ".");
  if (config.ReadsAnySize())
  {
    for (const std::string& path : paths)
    {
      PictureFile file = ReadPicture(path);
      ImageProcessor processor = model.GetImageProcessor();
      processor.maker = maker;
      const std::string changes = ChangesOf(path, file, processor, processor.resize);
      AtPlace<OptionError>(
        path, [&] { AddPatches(std::move(file.picture), config, processor, result.input); });
      result.pictures.push_back(std::filesystem::absolute(path).string());
      if (!changes.empty())
      {
        result.warnings.push_back(changes);
      }
    }
    return;
  }
  ImageProcessor processor = model.GetImageProcessor();
  processor.maker = maker;
  ReadPictures(paths, processor, result);
}

/// Whether a tokenizer is of residues, but splits texts at spaces, as those of ProtBERT and ProtT5.
bool NeedsSpaces(const Tokenizer& tokenizer)
{
  constexpr std::int64_t most = 256; // tokens; more are of texts, or of several residues
  const std::optional<std::int64_t> a = tokenizer.IdOf("A");
  const std::optional<std::int64_t> c = tokenizer.IdOf("C");
  if (tokenizer.VocabularySize() > most || !a || !c)
  {
    return false;
  }
  try
  {
    const std::vector<std::int64_t> ids = tokenizer.EncodePrompt("AC", false).ids;
    return ids != std::vector<std::int64_t>{ *a, *c };
  }
  catch (const Error&) // no such word
  {
    return true;
  }
}

/// The residues of a protein with spaces between them.
std::string Spaced(const std::string& letters)
{
  std::string text;
  for (const char letter : letters)
  {
    text += text.empty() ? "" : " ";
    text += letter;
  }
  return text;
}

/// Encodes each text, which may have all special tokens; an error message gives its number.
void Encode(const RecorderSources& sources, const std::vector<std::string>& texts,
  const std::string& name, const Tokenizer& tokenizer, RecorderInput& result,
  bool areComplete = false)
{
  const bool adds = sources.addSpecialTokens && !areComplete;
  const PromptFormat format =
    sources.prompts.empty() ? FormatOfFile(sources.promptFile) : sources.promptFormat;
  const bool spaces =
    (format == PromptFormat::Fasta || format == PromptFormat::A3m) && NeedsSpaces(tokenizer);
  for (const std::string& text : texts)
  {
    const std::string place = Concat(name, ", prompt ", result.input.tokens.size() + 1);
    const Encoding encoding = AtPlace<Error>(
      place, [&] { return tokenizer.EncodePrompt(spaces ? Spaced(text) : text, adds); });
    ThrowIf<OptionError>(encoding.ids.empty(), place, ": expected a text, found no tokens.");
    result.input.tokens.push_back(encoding.ids);
    if (tokenizer.HasSegments())
    {
      result.input.segments.emplace_back(encoding.types.begin(), encoding.types.end());
    }
  }
}

bool HasTexts(const RecorderSources& sources)
{
  return !sources.prompts.empty() || !sources.promptFile.empty();
}

/// Texts, and what messages call them.
struct NamedTexts
{
  std::vector<std::string> texts;
  std::string name;
};

/// The prompts of Prompts or of the file, of which there is at least one.
NamedTexts TextsOf(const RecorderSources& sources, std::vector<std::string>& warnings)
{
  const std::string& file = sources.promptFile;
  const bool isFile = sources.prompts.empty();
  NamedTexts found{ {}, isFile ? file : "Prompts" };
  const std::string kind = isFile ? std::filesystem::path(file).extension().string() : "";
  ThrowIf<OptionError>(kind == ".json", file,
    ": expected a text with one prompt per line, or JSON lines (.jsonl), found .json.");
  found.texts = isFile ? ParsePrompts(ReadFile(file), FormatOfFile(file), file, warnings)
                       : ParsePrompts(sources.prompts, sources.promptFormat, found.name, warnings);
  ThrowIf<OptionError>(
    found.texts.empty(), found.name, ": expected at least one prompt, found none.");
  return found;
}

void ReadIds(const RecorderSources& sources, RecorderInput& result)
{
  result.input.tokens =
    sources.table ? *sources.table : ParseIntegerLines(sources.tokenIds, "TokenIds");
  result.input.segments = ParseIntegerLines(sources.segments, "Segments");
}

/// The tokens of a target without the start token.
std::vector<std::int64_t> EncodeTarget(const RecorderSources& sources, const std::string& text,
  std::size_t number, const OpenTransformer& model)
{
  std::vector<std::int64_t> ids = AtPlace<Error>(Concat("Targets, prompt ", number + 1),
    [&] { return model.GetTargetTokenizer().EncodePrompt(text, sources.addSpecialTokens).ids; });
  const std::vector<std::int64_t>& ends = model.GetModel().GetConfig().endTokens;
  if (!ids.empty() && std::find(ends.begin(), ends.end(), ids.back()) != ends.end())
  {
    ids.pop_back();
  }
  return ids;
}

/// What the decoder reads beside `count` sources, without start tokens.
Sequences ReadTargets(const RecorderSources& sources, const OpenTransformer& model,
  std::size_t count, std::vector<std::string>& warnings)
{
  Sequences targets;
  const bool ofSounds = !sources.soundFiles.empty() && FindTokenizer(model) != nullptr;
  const std::vector<std::string> texts =
    ParsePrompts(sources.targets, sources.promptFormat, "Targets", warnings);
  if (sources.targets.empty())
  {
    targets.resize(count);
  }
  else if (HasTexts(sources) || ofSounds)
  {
    for (std::size_t i = 0; i < texts.size(); ++i)
    {
      targets.push_back(EncodeTarget(sources, texts[i], i, model));
    }
  }
  else
  {
    targets = ParseIntegerLines(
      Joined(texts, [](const std::string& text) { return text; }, "\n"), "Targets");
  }
  ThrowIf<OptionError>(targets.size() != count, "Targets: expected one of each of the ", count,
    " sequences, found ", targets.size(), ".");
  return targets;
}

/// Makes the sequences of a model with an encoder its source, and adds the targets.
void AddTargets(const RecorderSources& sources, const OpenTransformer& model, RecorderInput& result)
{
  const TransformerConfig& config = model.GetModel().GetConfig();
  if (config.encoder == nullptr)
  {
    ThrowIf<OptionError>(!sources.targets.empty(),
      "Targets: expected a model with an encoder and a decoder, found one of architecture ",
      config.architecture, ".");
    return;
  }
  ThrowIf<OptionError>(config.decoderStart < 0,
    "expected a token with which targets begin, decoder_start_token_id of "
    "config.json, found none in the vocabulary.");
  const bool isSound = config.encoder->input == InputKind::Sound;
  ThrowIf<OptionError>(isSound && !result.input.tokens.empty(),
    "expected Sounds for a model that reads sound, found texts or token ids.");
  result.input.source = std::move(result.input.tokens);
  result.input.tokens = ReadTargets(
    sources, model, isSound ? result.input.sounds : result.input.source.size(), result.warnings);
  for (std::vector<std::int64_t>& target : result.input.tokens)
  {
    target.insert(target.begin(), config.decoderStart);
  }
  if (!isSound)
  {
    result.sourceLabels = LabelBy(FindTokenizer(model), result.input.source);
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

/// Throws OptionError, which says what to do, unless each sequence has positions in the model.
void RequirePositions(const TransformerConfig& config, const RecorderInput& result)
{
  const std::int64_t positions =
    config.encoder != nullptr ? config.encoder->positions : config.positions;
  for (std::size_t s = 0; positions > 0 && s < result.input.tokens.size(); ++s)
  {
    const auto length = static_cast<std::int64_t>(result.input.tokens[s].size());
    ThrowIf<OptionError>(length > positions, "sequence ", s, " has ", length, " tokens, ",
      length - positions, " more than the ", positions,
      " positions of the model; shorten it, or set MaximumLength to cut it off.");
  }
}

/// Throws OptionError unless each sequence has as many image tokens as `expected`, so that a
/// picture is neither written otherwise nor cut.
void RequirePictures(const PicturePrompts& pictures, const std::vector<std::int64_t>& expected,
  const RecorderInput& result, const std::string& reason)
{
  for (std::size_t s = 0; s < expected.size(); ++s)
  {
    const std::int64_t found = pictures.CountTokens(result.input.tokens[s]);
    ThrowIf<OptionError>(found != expected[s], "sequence ", s, ": expected ", expected[s],
      " image tokens, found ", found, reason);
  }
}

/// Reads words and the pictures among them.
void ReadWords(const RecorderSources& sources, const OpenTransformer& model, RecorderInput& result)
{
  const bool hasTexts = HasTexts(sources);
  if (!hasTexts && sources.tokenIds.empty() && !sources.table)
  {
    ThrowIf<OptionError>(!sources.imageFiles.empty(),
      "expected Prompts, PromptFile, TokenIds or a table of token ids beside Images for a model of "
      "architecture ",
      model.GetModel().GetConfig().architecture, ", found none.");
    return;
  }
  VisionPixels pixels = ReadVisionPixels(sources.imageFiles, sources.framesPerVideo,
    sources.framesPerSecond, model, result.warnings, sources.pixels);
  const PicturePrompts pictures(model, pixels, sources.framesPerSecond);
  if (hasTexts)
  {
    const Tokenizer& tokenizer = model.GetTokenizer(); // without one the text is not read
    const NamedTexts found = TextsOf(sources, result.warnings);
    Encode(sources, pictures.Expand(found.texts, found.name), found.name, tokenizer, result,
      model.GetModel().GetConfig().vision->seesWholePrompts);
  }
  else
  {
    ReadIds(sources, result);
    pictures.Expand(result.input.tokens, sources.table ? "table of token ids" : "TokenIds");
  }
  std::vector<std::int64_t> counts;
  counts.reserve(result.input.tokens.size());
  for (const std::vector<std::int64_t>& sequence : result.input.tokens)
  {
    counts.push_back(pictures.CountTokens(sequence));
  }
  Truncate(sources.maximumLength, result);
  RequirePositions(model.GetModel().GetConfig(), result);
  RequirePictures(pictures, counts, result, "; MaximumLength would cut off a picture.");
  for (const std::string& file : sources.imageFiles)
  {
    result.pictures.push_back(std::filesystem::absolute(file).string());
  }
  result.videoFrames = pixels.videoFrames;
  result.input.pixels = std::move(pixels.pixels);
  result.input.images = pixels.images;
  result.input.tiles = std::move(pixels.tiles);
  result.input.extents = std::move(pixels.extents);
}

}

std::vector<std::string> LabelTokens(const Sequences& sequences, const OpenTransformer& model)
{
  try
  {
    return LabelBy(&model.GetTargetTokenizer(), sequences);
  }
  catch (const Error&)
  {
    return {};
  }
}

RecorderInput GatherInput(const RecorderSources& sources, const OpenTransformer& model)
{
  const bool hasPictures = model.GetModel().GetConfig().vision != nullptr;
  RequireOneSource(sources, hasPictures);
  RecorderInput result;
  result.pixelMaker = sources.pixels;
  if (hasPictures)
  {
    ReadWords(sources, model, result);
    result.labels = LabelTokens(result.input.tokens, model);
    return result;
  }
  ThrowIf<OptionError>(sources.framesPerVideo != 0,
    "FramesPerFilm: expected 0, since a model of architecture ",
    model.GetModel().GetConfig().architecture, " reads no videos, found ", sources.framesPerVideo,
    ".");
  if (!sources.imageFiles.empty())
  {
    ReadImages(sources.imageFiles, model, sources.pixels, result);
    return result;
  }
  if (!sources.soundFiles.empty())
  {
    ReadSounds(sources.soundFiles, model, result);
    if (model.GetModel().GetConfig().encoder == nullptr)
    {
      AddTargets(sources, model, result); // refuses them
      return result;
    }
  }
  else if (HasTexts(sources))
  {
    const Tokenizer& tokenizer = model.GetTokenizer(); // without one the text is not read
    const NamedTexts found = TextsOf(sources, result.warnings);
    Encode(sources, found.texts, found.name, tokenizer, result);
  }
  else
  {
    ReadIds(sources, result);
  }
  Truncate(sources.maximumLength, result);
  RequirePositions(model.GetModel().GetConfig(), result);
  AddTargets(sources, model, result);
  result.labels = LabelTokens(result.input.tokens, model);
  return result;
}

}
