#pragma once

#include "FieldArrays.h"
#include "TorusAngles.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// The linear function l[0] x + l[1] y + l[2] of (x, y).
using LinearFunction = std::array<float, 3>;

/// A model as the kernels see it, with all that does not depend on the point worked out. Since an
/// embedding lies on a circle, e_s = sqrt(3) (c_s u + s_s v), a point is (c_1, s_1, c_2, s_2), and
///
///     score_h = k . (c_1 - c_2, s_1 - s_2, 1),         k linear in (c_2, s_2)
///     r       = base + sum_h a_h w_h W_O W_V (x_1 - x_2),
///
/// where the base is linear in (c_2, s_2) and the sum's terms in (c_1 - c_2, s_1 - s_2). Ablated
/// parts are zeros here.
struct FieldModel
{
  struct Head
  {
    std::array<LinearFunction, 3> score;            ///< k, of (c_2, s_2)
    std::array<LinearFunction, 3> output;           ///< w_h W_O W_V (x_1 - x_2), of the differences
    std::array<std::array<float, 3>, 3> headOutput; ///< W_O W_V
  };

  AngleMap angles = AngleMap::Isometric;
  bool isHardmax = false;
  std::vector<Head> heads;
  std::array<LinearFunction, 3> base;
  std::array<LinearFunction, 3> word; ///< e_s of (c_s, s_s) as the values see it, without constant
  std::array<LinearFunction, 3> position; ///< p_2 + a (p_1 - p_2) as the values see it, of (a, 0)
  std::size_t classes = 0;                ///< N
  std::vector<float> unembedding;         ///< W_U [N, 3]
  std::vector<std::int32_t> fading; ///< per class: 255 - red, green and blue, in bits 0, 8, 16 on
  LinearFunction intensity;         ///< of the class colour, of (the probability, 0), to be clamped

  /// The number of floats that EvaluateFieldRow needs.
  std::size_t RowScratchSize() const { return 9 + 3 * this->heads.size(); }
};

/// Numbers of points from which on kernels read and write in whole vectors: arrays of columns are
/// padded to a multiple of it.
inline constexpr std::size_t FieldGroup = 64;

/// (c, s) of the embeddings at `count` angles, in radians: their cosines and sines, or for the
/// skewed map those of the isometric angles.
void EmbeddingCoordinates(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines);

/// The points (columns i, row) for i < count, written at index offset + i. The columns are padded
/// to a multiple of FieldGroup with any numbers; `scratch` has RowScratchSize() floats.
void EvaluateFieldRow(const FieldModel& model, const float* cosines, const float* sines,
  std::size_t count, double theta2, float* scratch, const FieldArrays& arrays, std::size_t offset);

/// The points (theta1[i], theta2[i]) for begin <= i < end, written at index i.
void EvaluateFieldPoints(const FieldModel& model, const double* theta1, const double* theta2,
  std::size_t begin, std::size_t end, const FieldArrays& arrays);

}
