#pragma once

#include "AttentionOnly/FieldArrays.h"
#include "AttentionOnly/TorusAngles.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// The linear function l[0] x + l[1] y + l[2] of (x, y).
using LinearFunction = std::array<float, 3>;

/// A number for each lane of the longest vectors. In memory it can be an operand of an instruction,
/// while a single number would have to be loaded and copied to all lanes first.
struct alignas(64) Repeated
{
  static constexpr std::size_t Count = 16;
  std::array<float, Count> numbers;
};
using RepeatedLinear = std::array<Repeated, 3>;

/// The kernels have code of their own for each number of classes up to this.
inline constexpr std::size_t FewClasses = 8;

/// A model in the form that the kernels use: everything that does not depend on the point is
/// precomputed. Since an embedding lies on a circle, e_s = sqrt(3) (c_s u + s_s v), a point is
/// given by (c_1, s_1, c_2, s_2), and
///
///     score_h = k . (c_1 - c_2, s_1 - s_2, 1),         k linear in (c_2, s_2)
///     r       = base + sum_h a_h w_h W_O W_V (x_1 - x_2),
///
/// where the base is linear in (c_2, s_2) and the terms of the sum in (c_1 - c_2, s_1 - s_2).
/// Ablated parts are 0 here.
struct FieldModel
{
  struct Head
  {
    std::array<LinearFunction, 3> score;            ///< k, of (c_2, s_2)
    std::array<RepeatedLinear, 3> output;           ///< w_h W_O W_V (x_1 - x_2), of the differences
    std::array<std::array<float, 3>, 3> headOutput; ///< W_O W_V
  };

  std::array<Repeated, 3> fadingTable = {}; ///< 255 minus red, green and blue, of the first
                                            ///< Repeated::Count classes
  std::vector<Head> heads;
  std::array<LinearFunction, 3> base;
  std::array<LinearFunction, 3> word; ///< e_s of (c_s, s_s) as the values see it, without constant
  std::array<LinearFunction, 3> position; ///< p_2 + a (p_1 - p_2) as the values see it, of (a, 0)
  LinearFunction intensity;               ///< intensity of the class color, of (probability, 0)
  std::size_t classes = 0;                ///< N
  std::vector<float> unembedding;         ///< W_U [N, 3]
  std::vector<RepeatedLinear> fewUnembedding; ///< W_U; empty for more than FewClasses classes
  std::vector<std::int32_t> fading; ///< per class: 255 minus red, green and blue, from bits 0, 8
                                    ///< and 16 on
  AngleMap angles = AngleMap::Isometric;
  bool isHardmax = false;

  /// The number of elements of `scratch` that EvaluateFieldRow needs.
  std::size_t RowScratchSize() const { return 6 + 3 * this->heads.size(); }
};

/// Kernels read and write whole vectors, so arrays of columns are padded to a multiple of this many
/// points.
inline constexpr std::size_t FieldGroup = 64;

/// Computes (c, s) of the embeddings at `count` angles, in radians: the cosine and sine of the
/// angle or, for the skewed map, of the corresponding isometric angle.
void EmbeddingCoordinates(
  const double* theta, std::size_t count, AngleMap angles, float* cosines, float* sines);

/// Evaluates the points (column i, row) for i < count and writes each at index offset + i. The
/// columns are padded to a multiple of FieldGroup with arbitrary values; `scratch` has
/// RowScratchSize() elements.
void EvaluateFieldRow(const FieldModel& model, const float* cosines, const float* sines,
  std::size_t count, double theta2, Repeated* scratch, const FieldArrays& arrays,
  std::size_t offset);

/// Evaluates the points (theta1[i], theta2[i]) for begin <= i < end and writes each at index i.
void EvaluateFieldPoints(const FieldModel& model, const double* theta1, const double* theta2,
  std::size_t begin, std::size_t end, const FieldArrays& arrays);

}
