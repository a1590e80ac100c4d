#pragma once

#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

class vtkTable;

/// The columns of tables whose rows are tokens of heads.
namespace AttentionAtlas
{

/// The heads of all recorded layers.
std::vector<atlas::HeadPlace> HeadsOf(const atlas::Recording& recording);

/// Adds the columns Layer and Head with a row per head.
void AddHeadColumns(const std::vector<atlas::HeadPlace>& heads, vtkTable* table);

/// Adds the columns Layer, Head, Sequence, Position (int), Token Index (id type), which become the
/// pedigree ids, and Token (string): for each head the tokens of these rows of the recording.
void AddTokenColumns(const atlas::Recording& recording, const std::vector<atlas::HeadPlace>& heads,
  const std::vector<std::int64_t>& rows, vtkTable* table);

/// The bytes that the columns of AddTokenColumns take per row, about.
double TokenColumnBytes();

}
