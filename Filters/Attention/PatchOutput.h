#pragma once

#include "PatchAttention.h"
#include "Recording.h"

#include <array>
#include <cstdint>

class vtkImageData;
class vtkPolyData;

/// The outputs of vtkPatchAttention, whose documentation describes them.
namespace AttentionAtlas
{

/// An image of a recording and what is shown of it.
struct ShownPatches
{
  const atlas::Recording& recording;
  const atlas::PatchOptions& options;
  atlas::PatchGrid grid;
  atlas::PatchAttention attention;

  /// The row of a token of the image in the recording's tokens.
  std::int64_t TokenIndex(std::int64_t token) const;

  /// The height of a patch, whose width is 1.
  double PatchHeight() const;

  /// The center of the cell of a token.
  std::array<double, 2> Center(std::int64_t token) const;
};

/// The bytes that an arrow takes, about.
inline constexpr double BytesPerArrow = 256;

/// A cell per token: its place and arrays, and its weight.
void MakePatches(const ShownPatches& shown, vtkPolyData* output);

/// A filled arrow per link from one token to another.
void MakeArrows(const ShownPatches& shown, vtkPolyData* output);

/// A disc or a square per token that attends most to itself or to a class token.
void MakeMarks(const ShownPatches& shown, vtkPolyData* output);

/// A frame around each of the chosen tokens, unless all are chosen.
void MakeFrames(const ShownPatches& shown, vtkPolyData* output);

/// The part `extent` of the picture of `size` (width, height) pixels, from its `pixels` [height,
/// width, 3]; without pixels, each patch in its mean color or, if that is unknown, in gray.
void MakePicture(const ShownPatches& shown, const std::uint8_t* pixels,
  const std::array<int, 2>& size, const std::array<int, 6>& extent, vtkImageData* output);

}
