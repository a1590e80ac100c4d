#pragma once

#include "OpenTransformer.h"
#include "RecordTransformer.h"
#include "RecorderInput.h"
#include "Recording.h"

#include <array>
#include <string>

namespace atlas
{

/// What can be recorded, as users select it.
struct RecordedQuantity
{
  const char* name;
  bool RecordChoice::* option;
};
inline constexpr std::array<RecordedQuantity, 6> RecordedQuantities = { {
  { "QueriesAndKeys", &RecordChoice::queriesAndKeys },
  { "Values", &RecordChoice::values },
  { "HeadOutputs", &RecordChoice::headOutputs },
  { "Residual", &RecordChoice::residual },
  { "Logits", &RecordChoice::logits },
  { "Routing", &RecordChoice::routing },
} };

/// Throws as RequireMemory does if a recording does not fit into memory.
void RequireRecordingMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// Runs a model on an input and records it, as RecordTransformer does, with the texts of tokens or,
/// of images with three channels, the mean colors of the patches and, if wanted and small enough,
/// the pictures. What users should know is left in `warning`.
Recording RecordInput(const OpenTransformer& model, const RecorderInput& input,
  const RecordOptions& options, bool wantsPictures, std::string& warning);

}
