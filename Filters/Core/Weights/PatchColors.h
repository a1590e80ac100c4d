#pragma once

#include "ImageProcessor.h"
#include "TransformerConfig.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The mean colors of the patches of images, [images, rows of patches, columns, 3]: red, green and
/// blue from 0 to 1. `pixels` is the input of the model, [images, 3, height, width]; the
/// normalization of `processor` is taken back, and each pixel is clipped to 0 ... 1 before the
/// mean. Pixels that no patch covers are left out. The model's images must have 3 channels.
std::vector<float> PatchColors(const std::vector<float>& pixels, std::int64_t images,
  const TransformerConfig& config, const ImageProcessor& processor);

}
