#pragma once

// Internal to Core.

#include "RecordingArrays.h"
#include "RecordingReadOptions.h"

namespace atlas
{

/// Builds a recording from arrays in the names of others, as RecordingFile.h describes. Token
/// strings and what the options say of the model are filled in by the caller.
Recording MakeForeignRecording(RecordingArrays& arrays, const Metadata& metadata,
  const RecordingReadOptions& options, std::vector<std::string>& warnings);

}
