#pragma once

// Internal to Core: pictures among words.

#include "PackedSequences.h"
#include "Recording.h"
#include "Transformer.h"

#include <vector>

namespace atlas
{

/// The places by which the tokens of all texts are rotated: a word has the same position for frame,
/// row and column; tokens of a picture or film have positions of their own behind those of the
/// words before; then positions go on from the largest + 1 (Wang et al. 2024: Qwen2-VL). For a
/// model with rotarySections.
std::vector<RotaryPlace> TextPlaces(const TransformerConfig& config, const TransformerInput& input);

/// The places of all patches, for an encoder of any size: group of frames, row and column.
std::vector<RotaryPlace> PatchPlaces(const VisionConfig& vision, const TransformerInput& input);

/// The sequences of the encoder that the pictures of texts first <= s < end are.
SequenceRange EncoderRange(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, const SequenceRange& texts);

/// The rows that the encoder runs for the pictures of each text.
std::vector<std::int64_t> EncoderRows(
  const TransformerConfig& config, const TransformerInput& input);

/// Adds what the pictures show to a recording of texts, and which parts of them tokens cover.
void DescribePictures(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, Recording& recording);

/// What the projector makes of the vectors [rows to run, d of the encoder] of some sequences of the
/// encoder: [image tokens, d_model]. Runs in parallel.
SharedMatrix ProjectPictures(
  const Transformer& model, const PackedSequences& sequences, const float* encoded, int threads);

/// The floats that ProjectPictures allocates, those of its result included.
std::int64_t ProjectFloats(const TransformerConfig& config, const PackedSequences& sequences);

}
