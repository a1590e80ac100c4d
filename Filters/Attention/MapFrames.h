#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{
struct Recording;
}
class vtkPolyData;

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

}
