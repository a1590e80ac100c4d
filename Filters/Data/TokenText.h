#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <string>

class vtkFieldData;

namespace AttentionAtlas
{

/// How a token of a recording is named: by its text or, if unknown, its place in the image ("row,
/// column" or "class token"; among words "picture: row, column"), its id, or its position in its
/// sequence.
ATTENTIONATLASDATA_EXPORT std::string TokenText(
  const atlas::Recording& recording, std::int64_t row);

/// How the text of a sequence begins, with an ellipsis if there is more: of cross attention that of
/// the target. Empty without texts, and for the mean over all sequences, -1.
ATTENTIONATLASDATA_EXPORT std::string SequenceText(
  const atlas::Recording& recording, std::int64_t sequence);

/// Adds the field arrays Sequence (int), and Sequence Text (string) if it is not empty, which a
/// view names the sequence by.
ATTENTIONATLASDATA_EXPORT void AddSequence(
  int sequence, const std::string& text, vtkFieldData* fields);

/// Adds what AddSequence does if a recording has one sequence; else the field array Listed, with
/// their number, for results over all sequences.
ATTENTIONATLASDATA_EXPORT void AddAllSequences(
  const atlas::Recording& recording, vtkFieldData* fields);

}
