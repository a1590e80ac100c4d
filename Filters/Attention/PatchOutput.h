#pragma once

#include "MatrixPanels.h"
#include "Recording/PatchAttention.h"
#include "Recording/Recording.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

class vtkImageData;
class vtkPolyData;

/// The outputs of vtkPatchAttention, whose documentation describes them.
namespace AttentionAtlas
{

/// An image of a recording, or the pictures of a text, and what is shown of it.
struct ShownPatches
{
  const atlas::Recording& recording;
  const atlas::PatchOptions& options;
  atlas::PatchGrid grid;
  double patchHeight = 1;           ///< whose width is 1
  double heatSide = 1;              ///< of the square of a patch, whose side is 1
  std::vector<std::int64_t> tokens; ///< those that have cells, in the order of these
  atlas::PatchAttention attention;  ///< of one head; otherwise empty

  bool IsOfOneHead() const { return !this->attention.weights.empty(); }

  /// The row of a token of the image in the recording's tokens.
  std::int64_t TokenIndex(std::int64_t token) const;

  /// The center of the cell of a token.
  std::array<double, 2> Center(std::int64_t token) const;
};

/// The bytes that an arrow takes, about, and the cell of a patch.
inline constexpr double BytesPerArrow = 256;
inline constexpr double BytesPerPatch = 192;

/// A cell per token of `tokens`: its place and arrays, and its weight.
void MakePatches(const ShownPatches& shown, vtkPolyData* output);

/// The pictures of several heads, as panels in rows of layers.
struct PatchPanels
{
  MatrixPanels panels;                     ///< whose points are patches
  std::vector<std::vector<float>> weights; ///< of the heads, of each token
};

/// A cell per head and patch of `tokens`, head by head, without class tokens; then one per token of
/// `others`, of the first head.
void MakePatchesOfHeads(const ShownPatches& shown, const PatchPanels& heads,
  const std::vector<std::int64_t>& others, vtkPolyData* output);

/// A filled arrow per link from one token to another.
void MakeArrows(const ShownPatches& shown, vtkPolyData* output);

/// The same cells as those of `patches`, each of which is a share `heatSide` of its patch, but
/// whole, without colors and in front of all: a click beside a square, or on an arrow, is one on a
/// patch.
void MakeCells(vtkPolyData* patches, double heatSide, vtkPolyData* output);

/// A disc or a square per token that attends most to itself or to a class token or word.
void MakeMarks(const ShownPatches& shown, vtkPolyData* output);

/// A frame around each of the chosen tokens, unless all are chosen.
void MakeFrames(const ShownPatches& shown, vtkPolyData* output);

/// Gives arrows, marks and frames of one head the legend of their colors.
void ExplainMarks(const std::vector<vtkPolyData*>& drawn);

/// A picture on the canvas of all that are shown.
struct CanvasPart
{
  std::int64_t number = -1; ///< in PatchGrid::pictures; -1: an image
  std::int64_t left = 0;    ///< column of the grid
  std::int64_t rows = 0;    ///< of patches
  std::int64_t columns = 0;
  std::int64_t x = 0;      ///< first column of pixels on the canvas
  std::int64_t y = 0;      ///< first row of pixels on the canvas, from the top
  std::int64_t height = 0; ///< in pixels of the canvas, like the width
  std::int64_t width = 0;
  atlas::ImagePlace source;     ///< its pixels; its entry is -1 if none are recorded
  std::int64_t sourceWidth = 0; ///< of the whole entry
};

/// What the picture of a view consists of.
struct PatchCanvas
{
  std::vector<CanvasPart> parts;
  std::array<int, 2> size = { 1, 1 }; ///< width and height in pixels
  std::int64_t rows = 1;              ///< of patches, in all
  std::int64_t columns = 1;
  double patchHeight = 1; ///< whose width is 1
};

/// The canvas of the pictures of a grid. `pictures`: those of the recording of the text, if that of
/// the grid is of its encoder of images.
PatchCanvas FindCanvas(const atlas::Recording& recording, const atlas::PatchGrid& grid,
  std::int64_t sequence, const atlas::RecordedPictures& pictures);

/// The same canvas in each of some panels, whose points are its patches. The pixels of a patch
/// become fewer where all would have more than MaximumGridSide on a side.
PatchCanvas RepeatCanvas(const PatchCanvas& canvas, const MatrixPanels& panels);
inline constexpr std::int64_t MaximumGridSide = 4096;

/// The part `extent` of the picture of a canvas, from the pixels [height, width, 3] of the entries
/// of its parts; where these are null, each patch in its mean color or, if that is unknown, in
/// gray.
void MakePicture(const ShownPatches& shown, const PatchCanvas& canvas,
  const std::vector<std::shared_ptr<const std::uint8_t>>& pixels, const std::array<int, 6>& extent,
  vtkImageData* output);

}
