#pragma once

namespace atlas::benchmarks
{

/// Operations per second that the machine reaches on `threads` threads with the instruction set in
/// use (InstructionSets.h): independent multiplications with addition in registers, two operations
/// for each number of a vector. The best of all runs so far; takes some 50 ms.
double PeakOperations(int threads);

}
