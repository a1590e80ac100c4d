#pragma once

#include "AttentionAtlasDataModule.h"
#include "Recording.h"

#include <cstdint>
#include <string>

namespace AttentionAtlas
{

/// How a token of a recording is named: by its text or, if unknown, its place in the image ("row,
/// column" or "class token"; among words "picture: row, column"), its id, or its position in its
/// sequence.
ATTENTIONATLASDATA_EXPORT std::string TokenText(
  const atlas::Recording& recording, std::int64_t row);

}
