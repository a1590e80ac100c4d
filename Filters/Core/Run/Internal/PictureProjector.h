#pragma once

#include "PackedSequences.h"
#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstdint>

namespace atlas
{

/// What the projector makes of the vectors [rows to run, d of the encoder] of some sequences of the
/// encoder: [image tokens, d_model]. Runs in parallel.
SharedMatrix ProjectPictures(
  const Transformer& model, const PackedSequences& sequences, const float* encoded, int threads);

/// The floats that ProjectPictures allocates, those of its result included.
std::int64_t ProjectFloats(const TransformerConfig& config, const PackedSequences& sequences);

}
