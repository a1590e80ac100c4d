#pragma once

#include "Analysis/AttentionTokens.h"
#include "TokenNames.h"

#include <vector>

class vtkPolyData;

/// The images of vtkAttentionTokens and their labels.
namespace AttentionAtlas
{

/// The attention tokens of some heads on one sequence, of all vectors of each head.
struct TokenImages
{
  const atlas::Recording& recording;
  const TokenNames& names;
  std::vector<std::vector<const atlas::HeadTokens*>> heads; ///< of each, by vector

  /// Those of the first sequence of `tokens` that is not empty.
  TokenImages(const atlas::Recording& source, const TokenNames& texts,
    const std::vector<atlas::HeadTokens>& tokens);

  /// What the image of a head shows: the first vectors of cells or else the first vectors.
  const atlas::HeadTokens& ShownOf(std::size_t head) const;
};

/// Fills the output with the cells and their borders.
void FillCells(const TokenImages& images, vtkPolyData* output);

/// Fills the output with the labels.
void FillLabels(const TokenImages& images, vtkPolyData* output);

/// The bytes that a cell takes, about.
double CellBytes();

}
