#pragma once

// Internal to Core.

#include "Preprocessing/TransformerInput.h"
#include "Weights/TransformerWeights.h"

#include <cstdint>

namespace atlas
{

/// Writes the tokens of some of the sounds, one after another: what convolutions make of log-mel
/// features (Radford et al. 2023: Whisper) or of waveforms, with their positions (SoundConfig).
void EmbedSounds(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const SequenceRange& sounds, float* x, int threads);

/// The floats that EmbedSounds allocates.
std::int64_t SoundFloats(
  const TransformerConfig& config, const TransformerInput& input, const SequenceRange& sounds);

}
