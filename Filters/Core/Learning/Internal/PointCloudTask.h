#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// Clouds of 144 points in the cube from -1 to 1, of which 12, anywhere in the list, are landmarks
/// of one of four colors. Each other point must name the color of the landmark next to it. A ViT
/// whose patches are points learns them: images of 12 x 12 pixels, whose 9 channels are x, y, z,
/// x^2 + y^2 + z^2, 1 at a landmark and else 0, and likewise for each color. Point p, a pixel by
/// rows, is token p + 1.
///
/// Measures, on 64 held-out clouds, of the attention of the last layer, the mean of its heads:
/// Nearest Landmark, the share of points whose strongest key is the landmark next to them; Weight
/// There, the mean weight on it. Beside the model stand points.vtp, the first held-out cloud with
/// point arrays Token, Landmark (1 or 0), Color (of the landmark, or of the nearest one) and
/// Nearest (its token); and pixel_values.safetensors, with which it is recorded.
///
/// Throws OptionError for a vocabulary, or another context than that of the points.
std::unique_ptr<LearningTask> MakePointCloudTask(const TaskOptions& options);

}
