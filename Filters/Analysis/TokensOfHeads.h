#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

class vtkTable;

namespace AttentionAtlas
{

/// The heads (layer, head) of a table with these columns, in ascending order; none without rows.
/// Throws atlas::OptionError if a column is missing.
std::vector<std::pair<int, int>> HeadsIn(vtkTable* table);

/// The different attention tokens of each head.
struct TokensOfHeads
{
  std::vector<std::pair<int, int>> heads;     ///< layer and head, in ascending order
  std::vector<std::vector<std::int32_t>> ids; ///< of each head, in ascending order
  std::map<std::int32_t, std::string> texts;  ///< by id

  /// Those of rank 1 of one of the vectors in the first output of vtkAttentionTokens. Throws
  /// atlas::OptionError for another table, or if it does not have that vector.
  TokensOfHeads(vtkTable* table, const std::string& vector);
};

}
