#pragma once

#include <cstdint>

namespace atlas
{

/// Part of a row-major matrix of floats in memory that somebody else owns.
struct MatrixBlock
{
  const float* data = nullptr;
  std::int64_t stride = 0; ///< floats from a row to the next
  bool transposed = false; ///< the matrix meant is the transpose of what is stored
};

/// Sets OpenBLAS to one thread while any object of this class lives, and back when the last is
/// gone. Callers then split products in parts of their own, which do not depend on the number of
/// threads, so that results have the same bytes for any; OpenBLAS itself may sum in another order.
class SingleThreadedBlas
{
public:
  SingleThreadedBlas();
  ~SingleThreadedBlas();
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
};

/// c = scale a b, or that + c: a [rows, inner], b [inner, columns], c [rows, columns] with the
/// given stride. Sizes are at least 1.
void MultiplyMatrices(std::int64_t rows, std::int64_t columns, std::int64_t inner, float scale,
  const MatrixBlock& a, const MatrixBlock& b, float* c, std::int64_t stride, bool add = false);

}
