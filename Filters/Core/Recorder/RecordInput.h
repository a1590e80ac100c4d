#pragma once

#include "OpenTransformer.h"
#include "RecorderInput.h"
#include "Recording/Recording.h"
#include "Run/RecordTransformer.h"

#include <array>
#include <string>

namespace atlas
{

/// What can be recorded, as users select it. By default it is what figures need.
struct RecordedQuantity
{
  const char* name;
  bool RecordChoice::* option;
  bool byDefault;
};
inline constexpr std::array<RecordedQuantity, 6> RecordedQuantities = { {
  { "QueriesAndKeys", &RecordChoice::queriesAndKeys, true },
  { "Values", &RecordChoice::values, true },
  { "HeadOutputs", &RecordChoice::headOutputs, true },
  { "Residual", &RecordChoice::residual, true },
  { "Logits", &RecordChoice::logits, false },
  { "Routing", &RecordChoice::routing, false },
} };

/// Makes a choice of all quantities one of those that the model has: logits with an unembedding,
/// routing with experts. Any other choice stays.
void LeaveOutMissing(const Transformer& model, RecordChoice& choice);

/// Throws as RequireMemory does if a recording does not fit into memory.
void RequireRecordingMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// Runs a model on an input and records it, as RecordTransformer does, with the texts of tokens or,
/// of images with three channels, the mean colors of the patches and, if wanted and small enough,
/// the pictures. The text of a token of a picture among words is "picture: row, column", from 0.
/// What users should know is left in `warning`.
Recording RecordInput(const OpenTransformer& model, const RecorderInput& input,
  const RecordOptions& options, bool wantsPictures, std::string& warning);

}
