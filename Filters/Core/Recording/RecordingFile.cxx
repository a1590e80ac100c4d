#include "RecordingFile.h"

#include "Base/Error.h"
#include "Base/Utf8Text.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Internal/ForeignRecording.h"
#include "Internal/NativeRecording.h"
#include "Internal/RecordingArrays.h"

#include <memory>

namespace atlas
{
namespace
{

using nlohmann::json;

/// Appends the strings of an array, or of an array of arrays.
void AppendStrings(
  const json& value, bool nested, std::vector<std::string>& texts, const std::string& source)
{
  ThrowIf<FormatError>(!value.is_array(), source,
    ": expected token strings as an array of strings, or of such arrays, found ", Describe(value),
    ".");
  for (const json& item : value)
  {
    if (item.is_string())
    {
      texts.push_back(item.get<std::string>());
      continue;
    }
    ThrowIf<FormatError>(nested, source, ": expected a token string, found ", Describe(item), ".");
    AppendStrings(item, true, texts, source);
  }
}

std::vector<std::string> ParseTokenTexts(std::string_view text, const std::string& source)
{
  const json value = ParseJson(text, source, "the list of token strings");
  std::vector<std::string> texts;
  const bool inObject = value.is_object() && value.contains("tokens");
  AppendStrings(inObject ? value.at("tokens") : value, false, texts, source);
  return texts;
}

/// The file of token strings next to a recording, or an empty path.
std::filesystem::path TokensBeside(const std::filesystem::path& path)
{
  for (const char* ending : { ".tokens.json", ".tokens.txt" })
  {
    std::filesystem::path beside = path;
    beside.replace_extension();
    beside += ending;
    if (std::filesystem::exists(beside))
    {
      return beside;
    }
  }
  return {};
}

void CheckTexts(const Recording& recording, const std::string& origin)
{
  const std::int64_t found = recording.tokens.text.size();
  ThrowIf<ModelError>(found != recording.tokens.Count() && found != 0, origin,
    ": expected a string for each of the ", recording.tokens.Count(), " tokens, found ", found,
    ".");
}

std::string MetadataOr(const Metadata& metadata, const char* key, const std::string& otherwise)
{
  const auto found = metadata.find(key);
  return found == metadata.end() ? otherwise : found->second;
}

/// A native part with the strings of its tokens. Null if there is none.
std::shared_ptr<const Recording> WithTexts(const std::shared_ptr<const Recording>& part,
  const Metadata& metadata, AttentionKind kind, const std::string& source)
{
  const std::string key = std::string(Name(kind)) + ".tokens";
  const auto text = metadata.find(key);
  if (part == nullptr || text == metadata.end())
  {
    return part;
  }
  const std::string origin = source + ": metadata '" + key + "'";
  auto named = std::make_shared<Recording>(*part);
  named->tokens.text = ParseTokenTexts(text->second, origin);
  CheckTexts(*named, origin);
  return named;
}

/// The processing that the metadata name. Other software may use this entry for something else,
/// which gives a warning.
WeightProcessing ForeignProcessing(
  const Metadata& metadata, const std::string& source, std::vector<std::string>& warnings)
{
  const auto processing = metadata.find("processing");
  if (processing == metadata.end())
  {
    return WeightProcessing::Unknown;
  }
  try
  {
    return ParseNamed<ModelError>(
      WeightProcessings, processing->second, source + ": metadata 'processing'");
  }
  catch (const ModelError& e)
  {
    warnings.push_back(e.what() + std::string(" It is not used."));
    return WeightProcessing::Unknown;
  }
}

}

std::vector<std::string> ReadTokenTexts(const std::filesystem::path& path)
{
  const std::string text = ReadFile(path);
  if (path.extension() == ".json")
  {
    return ParseTokenTexts(text, path.string());
  }
  RequireUtf8(text, path.string());
  return SplitLines(text);
}

RecordingContent MakeRecording(
  const ArrayFile& file, const RecordingReadOptions& options, const std::string& source)
{
  RecordingContent content;
  RecordingArrays arrays(file, source);
  const Metadata& metadata = file.GetMetadata();
  Recording& recording = content.recording;
  const bool native = MetadataOr(metadata, "format", "") == RecordingFormat;
  UnpaddedRecording unpadded =
    native ? ReadNativeRecording(arrays, metadata)
           : MakeForeignRecording(arrays, metadata, options, content.warnings);
  recording = std::move(unpadded.recording);
  if (native)
  {
    recording.mask = options.mask.value_or(recording.mask);
    for (RecordedLayer& layer : recording.layers)
    {
      layer.scoreScale = options.scoreScale.value_or(layer.scoreScale);
    }
    recording.encoder = WithTexts(recording.encoder, metadata, AttentionKind::Encoder, source);
    recording.cross = WithTexts(recording.cross, metadata, AttentionKind::Cross, source);
  }
  else
  {
    recording.architecture =
      MetadataOr(metadata, "architecture", MetadataOr(metadata, "model", ""));
    if (!options.processing.has_value())
    {
      recording.processing = ForeignProcessing(metadata, source, content.warnings);
    }
  }
  recording.architecture =
    options.architecture.empty() ? recording.architecture : options.architecture;
  recording.processing = options.processing.value_or(recording.processing);

  const auto setTexts = [&](std::vector<std::string> texts, const std::string& origin)
  {
    const bool isOfRows = static_cast<std::int64_t>(texts.size()) == unpadded.rows;
    recording.tokens.text = isOfRows ? WithoutPadding(texts, unpadded.tokens) : std::move(texts);
    CheckTexts(recording, origin);
  };
  const auto text = metadata.find("tokens");
  if (!options.tokensFile.empty())
  {
    setTexts(ReadTokenTexts(options.tokensFile), options.tokensFile.string());
  }
  else if (text != metadata.end())
  {
    try
    {
      const std::string origin = source + ": metadata 'tokens'";
      setTexts(ParseTokenTexts(text->second, origin), origin);
    }
    catch (const Error& e)
    {
      if (native)
      {
        throw;
      }
      recording.tokens.text.clear(); // other software may use this entry for something else
      content.warnings.push_back(e.what() + std::string(" They are not used."));
    }
  }
  CheckRecording(recording, source);
  for (std::string& line : arrays.Unused())
  {
    content.warnings.push_back(std::move(line));
  }
  return content;
}

RecordingContent ReadRecording(
  const std::filesystem::path& path, const RecordingReadOptions& options)
{
  const ArrayFile file(path);
  RecordingReadOptions found = options;
  if (found.tokensFile.empty())
  {
    found.tokensFile = TokensBeside(path);
  }
  return ReadIntact(file, [&] { return MakeRecording(file, found, path.string()); });
}

void WriteRecording(
  const std::filesystem::path& path, const Recording& recording, const Progress& progress)
{
  CheckRecording(recording, path.string());
  const NativeArrays arrays = MakeNativeArrays(recording);
  WriteSafetensorViews(path, arrays.views, arrays.metadata, progress);
}

void WriteRecording(std::ostream& stream, const Recording& recording)
{
  CheckRecording(recording, "the recording");
  const NativeArrays arrays = MakeNativeArrays(recording);
  WriteSafetensorViews(stream, arrays.views, arrays.metadata);
}

}
