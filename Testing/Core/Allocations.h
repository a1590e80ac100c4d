#pragma once

#include <cstddef>

/// What the whole program allocates on the heap, by malloc and by all that is made of it. Link
/// Allocations.cxx, which counts it: by functions of its own in the place of malloc and free, or by
/// the hooks of a sanitizer, which has its own already.
namespace atlas::test
{

/// Allocations so far.
std::size_t AllocationCount();

/// Bytes that are allocated now.
std::size_t AllocatedBytes();

/// Most bytes that were allocated at once since StartPeak.
std::size_t PeakBytes();
void StartPeak();

}
