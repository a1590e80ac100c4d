#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// Volumes of 16 x 16 x 16 voxels in blocks of 4 x 4 x 4, each of which must name what the block
/// opposite the center shows: a query has one key that it needs. A ViT whose patches are blocks
/// learns them: images of 8 x 8 pixels with 64 channels. Block (i, j, k), i along x, is pixel
/// p = i + 4 j + 16 k, counted by rows, and token p + 1; its voxels are the channels, x first. Its
/// key is token 64 - p.
///
/// A block shows a ball, or a rod along x, y or z, of random size and place. Voxels are dark where
/// nothing is, 1 inside, with noise, in 256 steps from -1 to 1.
///
/// Measures, on 64 held-out volumes, of the attention of the last layer, the mean of its heads:
/// Right Block, the share of blocks whose strongest key is the block opposite; Weight There, the
/// mean weight on it. Beside the model stand volume.vti, the first held-out volume with cell arrays
/// Density, 0 to 255, and Token; and pixel_values.safetensors, with which it is recorded.
///
/// Throws OptionError for a vocabulary, or another context than that of the blocks.
std::unique_ptr<LearningTask> MakeVolumePatchesTask(const TaskOptions& options);

}
