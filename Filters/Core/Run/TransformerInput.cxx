#include "TransformerInput.h"

#include "Error.h"
#include "Index.h"
#include "Tensor.h"

#include <string>

namespace atlas
{
namespace
{

std::vector<std::int64_t> LengthsOf(const std::vector<std::vector<std::int64_t>>& sequences)
{
  std::vector<std::int64_t> lengths;
  lengths.reserve(sequences.size());
  for (const std::vector<std::int64_t>& sequence : sequences)
  {
    lengths.push_back(sequence.size());
  }
  return lengths;
}

/// Throws OptionError unless all of `values` are from 0 to count - 1.
void CheckIds(const char* name, std::size_t sequence, const std::vector<std::int64_t>& values,
  std::int64_t count)
{
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    if (values[i] < 0 || values[i] >= count)
    {
      throw OptionError("sequence " + std::to_string(sequence) + ", position " + std::to_string(i) +
                        ": expected a " + name + " from 0 to " + std::to_string(count - 1) +
                        ", found " + std::to_string(values[i]) + ".");
    }
  }
}

void CheckSequence(const TransformerConfig& config, const TransformerInput& input, std::size_t s)
{
  const std::vector<std::int64_t>& tokens = input.tokens[s];
  const std::string name = "sequence " + std::to_string(s);
  const std::int64_t length = tokens.size();
  if (length == 0)
  {
    throw OptionError(name + " is empty, expected at least one token.");
  }
  if (config.positions > 0 && length > config.positions)
  {
    throw OptionError(name + " has " + std::to_string(length) + " tokens, " +
                      std::to_string(length - config.positions) + " more than the " +
                      std::to_string(config.positions) + " positions of the model.");
  }
  CheckIds("token id", s, tokens, config.vocabulary);
  if (!input.segments.empty())
  {
    if (input.segments[s].size() != tokens.size())
    {
      throw OptionError(name + ": expected a segment for each of its " + std::to_string(length) +
                        " tokens, found " + std::to_string(input.segments[s].size()) + ".");
    }
    if (config.segments == 0)
    {
      throw OptionError(name + ": expected no segments, since a model of architecture " +
                        config.architecture + " has none, found " + std::to_string(length) + ".");
    }
    CheckIds("segment", s, input.segments[s], config.segments);
  }
}

void CheckSequences(const TransformerConfig& config, const TransformerInput& input)
{
  if (input.tokens.empty() || input.images != 0)
  {
    throw OptionError("expected at least one sequence of token ids for a model of architecture " +
                      config.architecture + ", found " + (input.images == 0 ? "none" : "images") +
                      ".");
  }
  if (!input.segments.empty() && input.segments.size() != input.tokens.size())
  {
    throw OptionError("expected segments for each of the " + std::to_string(input.tokens.size()) +
                      " sequences, found those of " + std::to_string(input.segments.size()) + ".");
  }
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    CheckSequence(config, input, s);
  }
}

void CheckImages(const TransformerConfig& config, const TransformerInput& input)
{
  if (input.images < 1 || !input.tokens.empty())
  {
    throw OptionError("expected at least one image for a model of architecture " +
                      config.architecture + ", found " +
                      (input.tokens.empty() ? "none" : "token ids") + ".");
  }
  const std::int64_t size = config.channels * config.imageHeight * config.imageWidth;
  if (input.pixels.size() != ToIndex(input.images) * ToIndex(size))
  {
    throw OptionError(
      "expected pixels of shape " +
      ToString({ input.images, config.channels, config.imageHeight, config.imageWidth }) +
      ", found " + std::to_string(input.pixels.size()) + " numbers.");
  }
}

void CheckFeatures(const TransformerConfig& encoder, const TransformerInput& input)
{
  const Shape shape = { input.sounds, encoder.melBands, 2 * encoder.positions };
  if (input.features.size() != ToIndex(shape[0] * shape[1] * shape[2]))
  {
    throw OptionError("expected log-mel features of shape " + ToString(shape) + ", found " +
                      std::to_string(input.features.size()) + " numbers.");
  }
}

/// What there is of sources.
std::string DescribeSource(const TransformerInput& input)
{
  if (input.sounds != 0)
  {
    return "log-mel features of " + std::to_string(input.sounds);
  }
  return input.source.empty() ? "none" : "source tokens of " + std::to_string(input.source.size());
}

/// What the encoder reads: one source per sequence.
void CheckSource(const TransformerConfig& config, const TransformerInput& input)
{
  const bool isSound = config.encoder->input == InputKind::Sound;
  const std::size_t found = isSound ? ToIndex(input.sounds) : input.source.size();
  if (found != input.tokens.size() || (!isSound && input.sounds != 0))
  {
    throw OptionError(std::string("expected ") + (isSound ? "log-mel features" : "source tokens") +
                      " for each of the " + std::to_string(input.tokens.size()) +
                      " sequences, since a model of architecture " + config.architecture +
                      " has an encoder, found " + DescribeSource(input) + ".");
  }
  try
  {
    if (isSound)
    {
      CheckFeatures(*config.encoder, input);
    }
    else
    {
      TransformerInput source;
      source.tokens = input.source;
      CheckSequences(*config.encoder, source);
    }
  }
  catch (const OptionError& e)
  {
    throw OptionError("source: " + std::string(e.what()));
  }
}

void RefuseSource(const TransformerConfig& config, const TransformerInput& input)
{
  if (!input.source.empty() || input.sounds != 0)
  {
    throw OptionError("expected no source, since a model of architecture " + config.architecture +
                      " has no encoder, found " + DescribeSource(input) + ".");
  }
}

}

bool TransformerInput::operator==(const TransformerInput& other) const
{
  return this->tokens == other.tokens && this->segments == other.segments &&
         this->images == other.images && this->pixels == other.pixels &&
         this->tiles == other.tiles && this->extents == other.extents &&
         this->source == other.source && this->sounds == other.sounds &&
         this->features == other.features;
}

void CheckInput(const TransformerConfig& config, const TransformerInput& input)
{
  if (config.input == InputKind::Images)
  {
    CheckImages(config, input);
  }
  else
  {
    CheckSequences(config, input);
  }
  if (config.encoder == nullptr)
  {
    RefuseSource(config, input);
  }
  else
  {
    CheckSource(config, input);
  }
}

std::vector<std::int64_t> SequenceLengths(
  const TransformerConfig& config, const TransformerInput& input)
{
  if (config.input == InputKind::Images)
  {
    return std::vector<std::int64_t>(input.images, config.positions);
  }
  if (config.input == InputKind::Sound)
  {
    return std::vector<std::int64_t>(input.sounds, config.positions);
  }
  return LengthsOf(input.tokens);
}

std::vector<std::int64_t> SourceLengths(
  const TransformerConfig& config, const TransformerInput& input)
{
  if (config.encoder == nullptr)
  {
    return {};
  }
  return config.encoder->input == InputKind::Sound ? SequenceLengths(*config.encoder, input)
                                                   : LengthsOf(input.source);
}

}
