#pragma once

#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstdint>

namespace atlas
{

/// What a layer without attention adds in its place at each token of a sequence [length, d_model],
/// given the residual stream before it. Throws ModelError if the layer has attention, or
/// normalizes what it adds.
SharedMatrix MixerOutputs(
  const Transformer& model, std::int64_t layer, const SharedMatrix& residual, int threads = 0);

}
