#include "FuzzTarget.h"
#include "RecordTransformer.h"
#include "Safetensors.h"

#include <optional>

using namespace atlas;

namespace
{

TransformerInput InputFor(const TransformerConfig& config)
{
  TransformerInput input;
  if (config.input == InputKind::Tokens)
  {
    input.tokens = { { 0, config.vocabulary - 1 }, { config.vocabulary / 2 } };
    return input;
  }
  input.images = 1;
  constexpr std::int64_t largest = 64; // an image is given, in a program
  if (config.imageHeight <= largest && config.imageWidth <= largest && config.channels <= largest)
  {
    input.pixels.resize(config.channels * config.imageHeight * config.imageWidth, 0.5F);
  }
  return input;
}

}

/// A config.json, NUL, and the weights: the reader of transformers, and running one.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  std::string_view rest = fuzz::Text(data, size);
  const std::string_view config = fuzz::NextPart(rest);
  std::optional<Transformer> model;
  fuzz::Read(
    [&]
    {
      SafetensorsContent content = ParseSafetensors(
        reinterpret_cast<const std::byte*>(rest.data()), rest.size(), fuzz::Source);
      model.emplace(ParseTransformerConfig(config, fuzz::Source),
        WeightFiles(std::move(content.tensors), fuzz::Source));
    });
  if (!model)
  {
    return 0;
  }
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = model->HasLogits();
  options.threads = 1;
  fuzz::Use(
    [&]
    {
      CheckRecording(
        RecordTransformer(*model, InputFor(model->GetConfig()), options), fuzz::Source);
    });
  return 0;
}
