#pragma once

#include <string>
#include <vector>

namespace atlas
{

/// The instruction sets that both this build and this machine have, by Highway's names, the best
/// first: AVX3 (AVX-512), AVX2, SSE4, SSSE3, and last the compiler's own 128-bit code for any
/// processor (EMU128, on x86-64 SSE2).
std::vector<std::string> SupportedTargets();

/// The one that the kernels run with: the best, unless the environment variable ATLAS_TARGET or
/// UseTarget chose another. Throws OptionError as UseTarget does for what ATLAS_TARGET names.
std::string CurrentTarget();

/// Has all kernels of this process run with that instruction set from now on; an empty name means
/// the best. For tests and benchmarks: values may differ by rounding between instruction sets, but
/// within one they are equal to the byte. Not while a kernel runs. Throws OptionError, which lists
/// those that are supported, for any other name.
void UseTarget(const std::string& name);

/// Applies ATLAS_TARGET, once. What runs kernels calls it first. Throws as CurrentTarget does.
void InitializeTarget();

}
