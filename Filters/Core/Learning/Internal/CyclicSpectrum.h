#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// How much of the squared norm of p vectors [p, dimension], row-major, one for each number modulo
/// p, lies in each frequency k = 0, ..., floor(p / 2) of the discrete Fourier transform over the
/// numbers. Frequencies k and p - k count as one. The sum is the squared norm.
std::vector<double> CyclicSpectrum(const float* vectors, std::int64_t p, std::int64_t dimension);

/// The share of the squared norm in the `count` strongest frequencies above 0; 0 if all vectors
/// are. The mean of the vectors, frequency 0, is part of the whole.
double StrongestFrequencies(const std::vector<double>& spectrum, std::int64_t count);

}
