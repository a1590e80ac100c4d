#include "Files/Safetensors.h"
#include "FuzzTarget.h"
#include "Run/RecordTransformer.h"

#include <algorithm>
#include <optional>

using namespace atlas;

namespace
{

/// What an encoder reads, if there is one.
void AddSource(const TransformerConfig& config, TransformerInput& input)
{
  if (config.encoder == nullptr)
  {
    return;
  }
  const TransformerConfig& encoder = *config.encoder;
  if (encoder.input == InputKind::Tokens)
  {
    input.source = { { encoder.vocabulary - 1 }, { 0, encoder.vocabulary / 2 } };
    return;
  }
  input.sounds = 2;
  constexpr std::int64_t largest = 64; // sound is given, in a program
  if (encoder.melBands <= largest && encoder.positions <= largest)
  {
    input.features.resize(input.sounds * encoder.melBands * 2 * encoder.positions, 0.5F);
  }
}

/// A picture behind the first words, if the model reads any.
void AddPicture(const TransformerConfig& config, TransformerInput& input)
{
  if (config.vision == nullptr)
  {
    return;
  }
  const VisionConfig& vision = *config.vision;
  const TransformerConfig& encoder = *vision.encoder;
  const bool isAnySize = encoder.ReadsAnySize();
  constexpr std::int64_t largest = 16; // a picture is given, in a program
  const std::int64_t height = isAnySize ? vision.merge * encoder.patchHeight : encoder.imageHeight;
  const std::int64_t width = isAnySize ? vision.merge * encoder.patchWidth : encoder.imageWidth;
  if (std::max({ encoder.channels, encoder.patchFrames, height, width }) > largest)
  {
    return;
  }
  std::int64_t tokens = 1;
  if (isAnySize)
  {
    input.extents = { { 1, vision.merge, vision.merge, false, 1 } };
  }
  else
  {
    input.tiles.resize(1);
    input.images = 1;
    tokens = encoder.PatchRows() / vision.merge * (encoder.PatchColumns() / vision.merge);
  }
  input.pixels.resize(encoder.channels * encoder.patchFrames * height * width, 0.5F);
  input.tokens[0].insert(input.tokens[0].end(), tokens, vision.imageToken);
}

TransformerInput InputFor(const TransformerConfig& config)
{
  TransformerInput input;
  if (config.input == InputKind::Tokens)
  {
    input.tokens = { { 0, config.vocabulary - 1 }, { config.vocabulary / 2 } };
    AddSource(config, input);
    AddPicture(config, input);
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
