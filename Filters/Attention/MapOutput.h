#pragma once

#include "Recording/RecordedAttention.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

class vtkPolyData;

/// What vtkAttentionMap draws over its image.
namespace AttentionAtlas
{

/// What a query attends to most in a map.
struct StrongestKey
{
  int query = 0; ///< positions
  int key = 0;
  float value = 0; ///< of the quantity that the map shows
};

/// Draws a square around each of these points of a map, a little in front of it, with the cell
/// arrays of the second output of vtkAttentionMap. `name`: of the array of values. `isOneText`:
/// whether queries and keys are of the same text, so that a query has a position among the keys.
void FrameStrongestKeys(
  const std::vector<StrongestKey>& keys, const char* name, bool isOneText, vtkPolyData* output);

/// Adds the array Token Index, the rows of the queries in the recording from `first` on, as
/// pedigree ids.
void AddQueryTokens(const std::vector<StrongestKey>& keys, std::int64_t first, vtkPolyData* output);

/// Draws bands above and left of a map where its keys and queries are tokens of pictures among
/// words: a rectangle for each run of tokens of a picture, with the cell arrays Picture (int, among
/// those of the sequence), Side (unsigned char: 0 query, 1 key), First Token, Last Token (int,
/// positions) and MarkColor, by picture, and its legend. Nothing for other recordings, and for the
/// mean over sequences. `queries` and `keys`: the positions that the map shows.
void FillPictureBands(const atlas::Recording& recording, std::int64_t sequence,
  const atlas::KeyRange& queries, const atlas::KeyRange& keys, vtkPolyData* output);

}
