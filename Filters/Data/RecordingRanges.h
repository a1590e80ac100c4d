#pragma once

#include "AttentionAtlasDataModule.h"

#include <array>

class vtkDataObject;

namespace AttentionAtlas
{

/// First and last index of the sequences, recorded layers and heads of a recording, for sliders.
struct RecordingRanges
{
  std::array<int, 2> sequences = { 0, 0 };
  std::array<int, 2> layers = { 0, 0 };
  std::array<int, 2> heads = { 0, 0 };
  int tokens = 0; ///< of all sequences
};

/// The ranges of the blocks of a recording (RecordingConversion.h). Those above, if `data` is null,
/// empty or something else.
ATTENTIONATLASDATA_EXPORT RecordingRanges FindRanges(vtkDataObject* data);

}
