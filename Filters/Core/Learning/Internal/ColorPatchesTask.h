#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// Pictures of 32 x 32 pixels, in patches of 4 x 4, whose class is what they show: gradients of hue
/// or brightness, stripes, or shapes (ColorPictures.h). A small ViT learns them; the target is at
/// the class token.
///
/// Measures, on 200 held-out pictures: Hue, Brightness, Stripes and Shapes, the accuracy on each
/// group of classes.
///
/// Throws OptionError for a vocabulary, or another context than that of the patches.
std::unique_ptr<LearningTask> MakeColorPatchesTask(const TaskOptions& options);

}
