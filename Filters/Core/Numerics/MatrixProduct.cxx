// BLAS is called directly, not through Eigen. Defining EIGEN_USE_BLAS in only some sources of a
// program would give Eigen's templates two definitions, of which the linker keeps an arbitrary one.

#include "MatrixProduct.h"

#include <mutex>

#include <cblas.h>

namespace atlas
{
namespace
{

std::mutex Mutex;
int Users = 0;
int ThreadsBefore = 1;

int ToInt(std::int64_t size)
{
  return static_cast<int>(size);
}

template<class Block>
CBLAS_TRANSPOSE Transposition(const Block& block)
{
  return block.transposed ? CblasTrans : CblasNoTrans;
}

}

SingleThreadedBlas::SingleThreadedBlas()
{
  const std::lock_guard<std::mutex> lock(Mutex);
  if (Users++ == 0)
  {
    ThreadsBefore = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
}

SingleThreadedBlas::~SingleThreadedBlas()
{
  const std::lock_guard<std::mutex> lock(Mutex);
  if (--Users == 0)
  {
    openblas_set_num_threads(ThreadsBefore);
  }
}

void MultiplyMatrices(std::int64_t rows, std::int64_t columns, std::int64_t inner, float scale,
  const MatrixBlock& a, const MatrixBlock& b, float* c, std::int64_t stride, bool add)
{
  cblas_sgemm(CblasRowMajor, Transposition(a), Transposition(b), ToInt(rows), ToInt(columns),
    ToInt(inner), scale, a.data, ToInt(a.stride), b.data, ToInt(b.stride), add ? 1.0F : 0.0F, c,
    ToInt(stride));
}

void MultiplyMatrices(std::int64_t rows, std::int64_t columns, std::int64_t inner, double scale,
  const DoubleMatrixBlock& a, const DoubleMatrixBlock& b, double* c, std::int64_t stride, bool add)
{
  cblas_dgemm(CblasRowMajor, Transposition(a), Transposition(b), ToInt(rows), ToInt(columns),
    ToInt(inner), scale, a.data, ToInt(a.stride), b.data, ToInt(b.stride), add ? 1 : 0, c,
    ToInt(stride));
}

}
