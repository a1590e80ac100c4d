#pragma once

// Internal to Core: positions of images of another size.

#include "Files/Tensor.h"
#include "Weights/TransformerConfig.h"

#include <vector>

namespace atlas
{

/// Whether the stored positions are of images of another size than the model's.
bool ResizesPositions(const TransformerConfig& config);

/// The positions [1, classTokens + patches, d_model] of the model's images. Those of patches are
/// interpolated from the stored ones [1, classTokens + positionSide^2, d_model] as in Hugging
/// Face's code of DINOv2, bicubic and without aligned corners: of four neighbors on each axis, with
/// a = -3/4 (Keys 1981). With registers, a is -1/2 and the kernel widens with the factor by which
/// the grid shrinks (antialias).
std::vector<float> ResizedPositions(const TensorView& stored, const TransformerConfig& config);

}
