#pragma once

#include <cstddef>
#include <cstdint>

namespace atlas
{

/// out[i] = 1 / (1 + e^-x[i]) in single precision, for `count` numbers other than NaN. The error is
/// at most 3.6 units in the last place for x >= -87.3 (tested for all floats). Below -87.34 the
/// result is 0.
void Logistic(const float* x, std::size_t count, float* out);

/// Multiplies each x of a row by 1 / (1 + e^-y), where y = linear x + cubic x^3, linear is at least
/// 1 and cubic at least 0. For 1 and 0 this is SiLU. Quick GELU and GELU with a hyperbolic tangent,
/// x (1 + tanh(y / 2)) / 2, have other constants. The errors are those of Logistic and of y. A NaN
/// stays so.
void MultiplyByLogistic(float linear, float cubic, std::int64_t count, float* values);

/// Softmax of a row in place: x_i becomes exp(x_i - max x) / sum_j exp(x_j - max x), the maximum
/// subtracted so that nothing overflows. `count` is at least 1. A term more than 87.34 below the
/// maximum, such as -infinity, becomes 0. With a NaN or an infinite maximum, the whole row is NaN.
/// The bytes depend on the values and the instruction set, not on where the row lies.
void SoftmaxRow(std::int64_t count, float* values);

}
