#pragma once

#include "Padding.h"
#include "Recording/RecordingFile.h"

namespace atlas
{

/// Builds a recording from arrays with foreign names, as described in RecordingFile.h. The caller
/// fills in token strings and the information from the options.
UnpaddedRecording MakeForeignRecording(RecordingArrays& arrays, const Metadata& metadata,
  const RecordingReadOptions& options, std::vector<std::string>& warnings);

}
