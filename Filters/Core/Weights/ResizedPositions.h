#pragma once

#include "Files/Tensor.h"
#include "TransformerConfig.h"

#include <vector>

namespace atlas
{

/// How a grid of vectors is resized on each axis, without aligned corners but for the last.
enum class GridKernel
{
  Bicubic,        ///< of four neighbors, a = -3/4 (Keys 1981)
  SmoothBicubic,  ///< a = -1/2; the kernel widens with the factor by which the grid shrinks
  Bilinear,       ///< of two neighbors
  SmoothBilinear, ///< widens likewise
  AlignedBilinear ///< of two neighbors, with the ends of both grids in the same places
};

/// The vectors [rows, columns, d] of a grid that is resized from [fromRows, fromColumns, d].
std::vector<float> ResizedGrid(const std::vector<float>& grid, std::int64_t fromRows,
  std::int64_t fromColumns, std::int64_t rows, std::int64_t columns, std::int64_t d,
  GridKernel kernel);

/// Whether the stored positions are of images of another size than the model's.
bool ResizesPositions(const TransformerConfig& config);

/// The positions [1, classTokens + patches, d_model] of the model's images. Those of patches are
/// interpolated from the stored ones [1, classTokens + positionSide^2, d_model] as in Hugging
/// Face's code of DINOv2, Bicubic; with registers SmoothBicubic (antialias).
std::vector<float> ResizedPositions(const TensorView& stored, const TransformerConfig& config);

/// The positions [rows columns, d_model] of a picture with rows x columns patches, for an encoder
/// of pictures of any size, from the first of the stored ones [positionSide^2, d_model]:
/// SmoothBilinear (Tschannen et al. 2025: SigLIP 2), or AlignedBilinear if alignsPositions.
std::vector<float> PositionsOfGrid(const TensorView& stored, const TransformerConfig& config,
  std::int64_t rows, std::int64_t columns);

/// The biases of patches [(2 rows - 1)(2 columns - 1) + 3, H] of the model's images, by rows and
/// columns between two patches, then the three of the class token, from the stored ones of
/// positionSide^2 patches: Bilinear (Bao et al. 2022: BEiT).
std::vector<float> ResizedPatchBias(const TensorView& stored, const TransformerConfig& config);

}
