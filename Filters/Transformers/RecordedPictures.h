#pragma once

#include "OpenTransformer.h"
#include "RecorderInput.h"
#include "Recording.h"

#include <string>

/// The pictures that vtkTransformerRecorder keeps with a recording.
namespace AttentionAtlas
{

/// Records the mean colors of the patches and, if wanted and small enough, the pictures of images
/// with three channels; nothing for other input. Returns what users should know, or nothing.
std::string AddPictures(const OpenTransformer& model, const RecorderInput& input,
  bool wantsPictures, atlas::Recording& recording);

}
