#pragma once

#include <cstdint>

namespace atlas
{

/// A block of a row-major matrix in memory that is owned elsewhere.
template<class Number>
struct MatrixBlockOf
{
  const Number* data = nullptr;
  std::int64_t stride = 0; ///< distance between rows, in numbers
  bool transposed = false; ///< use the transpose of the stored matrix
};

using MatrixBlock = MatrixBlockOf<float>;
using DoubleMatrixBlock = MatrixBlockOf<double>;

/// Limits OpenBLAS to one thread while any object of this class exists, and restores the previous
/// number when the last one is destroyed. Callers split products into parts that do not depend on
/// the number of threads, so results are equal to the byte for any number. OpenBLAS itself may
/// change the order of its sums with the number of threads.
class SingleThreadedBlas
{
public:
  SingleThreadedBlas();
  ~SingleThreadedBlas();
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;
};

/// Computes c = scale a b, or c += scale a b, where a is [rows, inner], b [inner, columns] and c
/// [rows, columns] with the given stride. Sizes are at least 1.
void MultiplyMatrices(std::int64_t rows, std::int64_t columns, std::int64_t inner, float scale,
  const MatrixBlock& a, const MatrixBlock& b, float* c, std::int64_t stride, bool add = false);
void MultiplyMatrices(std::int64_t rows, std::int64_t columns, std::int64_t inner, double scale,
  const DoubleMatrixBlock& a, const DoubleMatrixBlock& b, double* c, std::int64_t stride,
  bool add = false);

}
