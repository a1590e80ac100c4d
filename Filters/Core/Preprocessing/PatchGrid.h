#pragma once

#include "Files/PictureFile.h"
#include "Recording/Recording.h"
#include "TransformerInput.h"
#include "Weights/ImageProcessor.h"

namespace atlas
{

/// The size, in whole patches, to which a picture is resized for an encoder of any grid: about the
/// largest with its proportions that has at most `most` patches, each side rounded up (Tschannen et
/// al. 2025: SigLIP 2, NaFlex).
ImageSize GridSize(const ImageSize& picture, const ImageSize& patch, std::int64_t most);

/// Adds the patches of a picture, [patches, patchHeight, patchWidth, 3], and their extent to the
/// input of such an encoder. Throws OptionError as Resample does, and if a picture that is not
/// resized is no whole number of patches.
void AddPatches(Picture picture, const TransformerConfig& config, const ImageProcessor& processor,
  TransformerInput& input);

/// The mean red, green and blue of each patch of such an input [patches, 3], from 0 to 1.
SharedMatrix ColorsOfPatches(
  const TransformerInput& input, const TransformerConfig& config, const ImageProcessor& processor);

}
