#pragma once

#include <cstddef>

namespace atlas
{

/// out[i] = e^x[i] in single precision, for `count` numbers other than NaN. The error is at most
/// 2.3 units in the last place for |x| <= 87.3 (tested for all floats), and at most 2 if the
/// instruction set has fused multiply-add. Beyond that range the result is that at -87.3 or 87.3.
void Exponential(const float* x, std::size_t count, float* out);

/// out[i] = 1 / (1 + e^-x[i]) in single precision, for `count` numbers other than NaN. The error is
/// at most 3.6 units in the last place for x >= -87.3 (tested for all floats). Below that the
/// result is that at -87.3, 1.2e-38.
void Logistic(const float* x, std::size_t count, float* out);

}
