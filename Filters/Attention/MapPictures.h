#pragma once

#include "RecordedAttention.h"
#include "Recording.h"

#include <cstdint>

class vtkPolyData;

namespace AttentionAtlas
{

/// Draws bands above and left of a map where its keys and queries are tokens of pictures among
/// words: a rectangle for each run of tokens of a picture, with the cell arrays Picture (int, among
/// those of the sequence), Side (unsigned char: 0 query, 1 key), First Token, Last Token (int,
/// positions) and MarkColor, by picture, and its legend. Nothing for other recordings, and for the
/// mean over sequences. `queries` and `keys`: the positions that the map shows.
void FillPictureBands(const atlas::Recording& recording, std::int64_t sequence,
  const atlas::KeyRange& queries, const atlas::KeyRange& keys, vtkPolyData* output);

}
