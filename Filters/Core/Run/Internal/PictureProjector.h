#pragma once

#include "PackedSequences.h"
#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// What a text reads of pictures, or of what an encoder returns: one row per token.
struct EncodedSource
{
  SharedMatrix tokens;
  std::vector<SharedMatrix> deep; ///< added behind the first layers of the text
};

/// What the projectors make of the vectors [rows to run, d of the encoder] of some sequences of the
/// encoder: [image tokens, d_model]. `encoded` are those of VisionConfig::layersRead,
/// moreLayersRead and deepLayers. Runs in parallel.
EncodedSource ProjectPictures(const Transformer& model, const TransformerInput& input,
  const PackedSequences& sequences, const std::vector<SharedMatrix>& encoded, int threads);

/// The floats that ProjectPictures allocates, those of its result included.
std::int64_t ProjectFloats(const TransformerConfig& config, const PackedSequences& sequences);

}
