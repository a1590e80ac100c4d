#pragma once

// Internal to Core.

#include "RecordingArrays.h"

namespace atlas
{

/// Builds a recording from arrays and metadata in the names of our own, which RecordingFile.h
/// lists. Token strings are filled in by the caller. Throws FormatError for metadata, and
/// ModelError for arrays.
Recording ReadNativeRecording(RecordingArrays& arrays, const Metadata& metadata);

struct NativeArrays
{
  TensorViews views; ///< of the recording's memory, and of no other
  Metadata metadata;
};

/// The arrays and metadata that ReadNativeRecording makes the same recording of; nothing is copied.
NativeArrays MakeNativeArrays(const Recording& recording);

}
