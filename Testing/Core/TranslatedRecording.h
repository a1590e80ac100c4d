#pragma once

#include "LongRecording.h"
#include "Recording/Recording.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace atlas::test
{

/// Random numbers, [rows, columns], that are 0 in rows where `isThere` is false.
inline SharedMatrix RowsWhere(
  const std::vector<bool>& isThere, std::int64_t columns, std::mt19937& generator)
{
  SharedMatrix matrix = RandomRows(static_cast<std::int64_t>(isThere.size()), columns, generator);
  for (std::size_t row = 0; row < isThere.size(); ++row)
  {
    if (!isThere[row])
    {
      std::fill_n(matrix.Row(static_cast<std::int64_t>(row)), columns, 0.0F);
    }
  }
  return matrix;
}

/// A part of a recording with an encoder and a decoder: sequences whose tokens are of the source
/// and of the target. `layers` layers of two heads.
inline Recording TranslatedPart(AttentionMask mask, const std::vector<std::int64_t>& sources,
  const std::vector<std::int64_t>& targets, std::int32_t layers, unsigned int seed)
{
  std::mt19937 generator(seed);
  Recording part;
  part.architecture = "hand-made";
  part.mask = mask;
  part.layerCount = layers;
  part.sequenceOffsets = { 0 };
  std::vector<bool> ofSource;
  std::vector<bool> ofTarget;
  for (std::size_t s = 0; s < sources.size(); ++s)
  {
    for (std::int64_t t = 0; t < sources[s] + targets[s]; ++t)
    {
      const bool isSource = t < sources[s];
      ofSource.push_back(isSource || mask != AttentionMask::Cross);
      ofTarget.push_back(!isSource || mask != AttentionMask::Cross);
      part.tokens.sequence.push_back(static_cast<std::int32_t>(s));
      part.tokens.position.push_back(static_cast<std::int32_t>(isSource ? t : t - sources[s]));
      part.tokens.text.push_back(
        (isSource ? "s" : "t") + std::to_string(isSource ? t : t - sources[s]));
    }
    part.sequenceOffsets.push_back(static_cast<std::int64_t>(ofSource.size()));
  }
  if (mask == AttentionMask::Cross)
  {
    part.sourceLengths = sources;
  }
  for (std::int32_t index = 0; index < layers; ++index)
  {
    RecordedLayer layer;
    layer.index = index;
    layer.scoreScale = 0.5 + index;
    for (std::size_t h = 0; h < 2; ++h)
    {
      RecordedHead head;
      head.query = RowsWhere(ofTarget, 5, generator);
      head.key = RowsWhere(ofSource, 5, generator);
      head.value = RowsWhere(ofSource, 3, generator);
      head.valueNorm = RowsWhere(ofSource, 1, generator);
      head.output = RowsWhere(ofTarget, 6, generator);
      layer.heads.push_back(head);
    }
    part.layers.push_back(layer);
  }
  return part;
}

/// Sources of 4 and 2 tokens, targets of 3 and 5; 2 layers of the encoder, 3 of the decoder. Scores
/// of encoder and decoder have biases of distances of -2 ... 2.
inline Recording TranslatedRecording()
{
  const std::vector<std::int64_t> sources = { 4, 2 };
  const std::vector<std::int64_t> targets = { 3, 5 };
  const std::vector<std::int64_t> none = { 0, 0 };
  std::mt19937 generator(9);
  Recording recording = TranslatedPart(AttentionMask::Causal, none, targets, 3, 1);
  recording.distanceBias = RandomRows(2, 5, generator);
  Recording encoder = TranslatedPart(AttentionMask::Bidirectional, sources, none, 2, 2);
  encoder.distanceBias = RandomRows(2, 5, generator);
  recording.encoder = std::make_shared<const Recording>(encoder);
  recording.cross =
    std::make_shared<const Recording>(TranslatedPart(AttentionMask::Cross, sources, targets, 3, 3));
  CheckRecording(recording, "recording");
  return recording;
}

}
