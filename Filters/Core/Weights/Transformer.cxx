#include "Transformer.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "TransformerRecorder.h"

#include <system_error>

namespace atlas
{
namespace
{

/// The weights file of a folder.
std::filesystem::path FindWeights(const std::filesystem::path& folder)
{
  constexpr const char* single = "model.safetensors";
  constexpr const char* index = "model.safetensors.index.json";
  std::error_code ignored;
  for (const char* name : { single, index })
  {
    if (std::filesystem::exists(folder / name, ignored))
    {
      return folder / name;
    }
  }
  const bool pickled = std::filesystem::exists(folder / "pytorch_model.bin", ignored);
  throw FileError(folder.string() + ": expected the weights in " + single + " or in shards that " +
                  index + " names, found neither" +
                  (pickled ? "; pytorch_model.bin is a pickle, which is not read, as it may hold "
                             "any program."
                           : "."));
}

}

Transformer::Transformer(TransformerConfig config, WeightFiles files)
  : Config(std::move(config))
  , Files(std::move(files))
  , Weights(BindTransformerWeights(this->Config, this->Files))
{
}

Transformer Transformer::Read(const std::filesystem::path& path, const std::string& architecture)
{
  std::error_code ignored;
  const bool isFolder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path folder = isFolder ? path : path.parent_path();
  const bool isConfig = isFolder || path.filename() == "config.json";
  TransformerConfig config = ReadTransformerConfig(folder / "config.json", architecture);
  return { std::move(config), WeightFiles::Read(isConfig ? FindWeights(folder) : path) };
}

void CheckInput(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  CheckInput(config, input);
  for (const std::int64_t layer : options.layers)
  {
    if (layer < 0 || layer >= config.layers)
    {
      throw OptionError("expected layers from 0 to " + std::to_string(config.layers - 1) +
                        ", found " + std::to_string(layer) + ".");
    }
  }
  if (options.logits && !model.HasLogits())
  {
    throw OptionError("the model has no unembedding, so that it has no logits to record.");
  }
}

std::vector<SequenceRange> SplitSequences(
  const Transformer& model, const TransformerInput& input, int parts)
{
  const std::vector<std::int64_t> offsets =
    SequenceOffsets(SequenceLengths(model.GetConfig(), input));
  const auto count = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<SequenceRange> ranges;
  std::int64_t first = 0;
  for (int part = 1; part <= parts; ++part)
  {
    // Up to the sequence whose middle lies beyond this part of all tokens.
    std::int64_t end = first;
    while (end < count && (offsets[ToIndex(end)] + offsets[ToIndex(end + 1)]) * parts <=
                            std::int64_t{ 2 } * part * offsets.back())
    {
      ++end;
    }
    ranges.push_back({ first, end });
    first = end;
  }
  return ranges;
}

MemoryEstimate EstimateMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  return TransformerRecorder(model, input, options).EstimateMemory();
}

std::optional<Recording> RecordTransformer(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options)
{
  CheckInput(model, input, options);
  return ReadIntact(
    model.GetFiles(), [&] { return TransformerRecorder(model, input, options).Run(); });
}

}
