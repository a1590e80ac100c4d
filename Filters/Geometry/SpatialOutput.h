#pragma once

#include "Geometry/PlaceSums.h"
#include "Geometry/SpatialAttention.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

class vtkPolyData;
class vtkTable;

/// The small outputs of vtkSpatialAttention, whose documentation describes them.
namespace AttentionAtlas
{

/// What is shown of a query.
struct ShownQuery
{
  const atlas::Recording& recording;
  const atlas::SpatialOptions& options;
  const atlas::PlaceSums& places;     ///< of all tokens
  const std::vector<float>& ofTokens; ///< the values of tokens
  atlas::TokenPlaces center;          ///< where the query is
  std::vector<std::int64_t> largest;  ///< the tokens of largest value

  /// The row of a token in the recording's tokens.
  std::int64_t TokenIndex(std::int64_t token) const;

  /// The token that is the query or most of it.
  std::int64_t MainToken() const;
};

/// A line from the query to each of the largest tokens, or to the query from it; `bend`: how far
/// its middle is from a straight line, as a part of its length.
void MakeLines(const ShownQuery& shown, double bend, vtkPolyData* output);

/// A vertex where the query is.
void MakeMark(const ShownQuery& shown, vtkPolyData* output);

/// Gives both the legend of their colors.
void ExplainMarks(vtkPolyData* lines, vtkPolyData* mark);

/// A row per largest token.
void MakeTokenTable(const ShownQuery& shown, vtkTable* output);

}
