#pragma once

#include "Recording.h"

#include <cstdint>
#include <vector>

class vtkTable;

/// The columns of tables whose rows are tokens of heads.
namespace AttentionAtlas
{

/// A head of a recording by its numbers.
struct HeadPlace
{
  std::int64_t layer = 0;
  std::int64_t head = 0;
};

/// The heads of all recorded layers; of one layer or head number unless it is -1. Throws
/// atlas::OptionError if there is no such layer or head.
std::vector<HeadPlace> HeadsOf(
  const atlas::Recording& recording, std::int64_t layer = -1, std::int64_t head = -1);

/// Adds the columns Layer and Head with a row per head.
void AddHeadColumns(const std::vector<HeadPlace>& heads, vtkTable* table);

/// Adds the columns Layer, Head, Sequence, Position (int), Token Index (id type), which become the
/// pedigree ids, and Token (string): for each head the tokens of these rows of the recording.
void AddTokenColumns(const atlas::Recording& recording, const std::vector<HeadPlace>& heads,
  const std::vector<std::int64_t>& rows, vtkTable* table);

/// The bytes that the columns of AddTokenColumns take per row, about.
double TokenColumnBytes();

}
