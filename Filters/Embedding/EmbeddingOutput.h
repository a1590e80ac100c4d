#pragma once

#include "AttentionAtlasEmbeddingModule.h"
#include "Embedding/HeadLayouts.h"
#include "Recording/Recording.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

class vtkPolyData;
class vtkTable;

/// The outputs of vtkHeadEmbedding, whose documentation describes them.
namespace AttentionAtlas
{

/// The layouts of some heads, one after another, as points.
struct EmbeddedHeads
{
  const atlas::Recording& recording;
  const atlas::JointRows& rows; ///< of the tokens
  const atlas::LayoutOptions& options;
  bool isGrid;
  bool isOneHead;    ///< whether one head was asked for, which is at the origin also in a grid
  std::size_t frame; ///< which of the layouts that were kept
  std::vector<std::shared_ptr<const atlas::HeadLayout>> layouts;
  bool isCentered = false; ///< in a grid: the origin is the center of the square, and all axes have
                           ///< one scale

  std::size_t PointsPerHead() const { return this->rows.Points(); }
  std::int64_t PointCount() const
  {
    return static_cast<std::int64_t>(this->PointsPerHead()) *
           static_cast<std::int64_t>(this->layouts.size());
  }
};

/// The bytes that a point takes, about.
ATTENTIONATLASEMBEDDING_EXPORT double BytesPerPoint();

/// Adds vertices, point arrays and field data, which depend neither on the layouts nor on their
/// arrangement.
ATTENTIONATLASEMBEDDING_EXPORT void AddPointArrays(const EmbeddedHeads& heads, vtkPolyData* output);

/// Sets the coordinates, and the field data on what they are.
ATTENTIONATLASEMBEDDING_EXPORT void PlacePoints(const EmbeddedHeads& heads, vtkPolyData* output);

ATTENTIONATLASEMBEDDING_EXPORT void MakeTable(const EmbeddedHeads& heads, vtkTable* output);

/// Makes the titles of a grid of several heads; otherwise none.
ATTENTIONATLASEMBEDDING_EXPORT void MakeTitles(const EmbeddedHeads& heads, vtkPolyData* output);

}
