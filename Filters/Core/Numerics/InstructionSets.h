#pragma once

#include <string>
#include <vector>

namespace atlas
{

/// The instruction sets that both this build and this machine support, under Highway's names, best
/// first: AVX3 (AVX-512) and its extensions, such as AVX3_SPR, then AVX2, SSE4, SSSE3, and last the
/// one of every processor (SSE2 on x86-64; EMU128 or SCALAR in versions of Highway before SSE2).
std::vector<std::string> SupportedTargets();

/// The instruction set that the kernels use: the best, unless the environment variable ATLAS_TARGET
/// or UseTarget selects another. Throws OptionError, as UseTarget does, if ATLAS_TARGET is not
/// supported.
std::string CurrentTarget();

/// Makes all kernels of this process use that instruction set; an empty name means the best. For
/// tests and benchmarks: results may differ by rounding between instruction sets, but are equal to
/// the byte within one. Must not be called while a kernel runs. Throws OptionError with a list of
/// the supported names for any other name.
void UseTarget(const std::string& name);

/// Applies ATLAS_TARGET, once. Must be called before any kernel runs. Throws as CurrentTarget does.
void InitializeTarget();

}
