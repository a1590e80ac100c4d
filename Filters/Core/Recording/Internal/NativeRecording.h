#pragma once

#include "Padding.h"

namespace atlas
{

/// Builds a recording from arrays and metadata with native names, which RecordingFile.h lists. An
/// array attention_mask marks padding, which is left out; positions then begin with 0. The caller
/// fills in token strings. Throws FormatError for invalid metadata, and ModelError for invalid
/// arrays.
UnpaddedRecording ReadNativeRecording(RecordingArrays& arrays, const Metadata& metadata);

struct NativeArrays
{
  TensorViews views; ///< views of the recording's memory
  Metadata metadata;
};

/// The arrays and metadata from which ReadNativeRecording makes the same recording. Nothing is
/// copied.
NativeArrays MakeNativeArrays(const Recording& recording);

}
