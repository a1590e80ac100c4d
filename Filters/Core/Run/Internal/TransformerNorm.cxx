#include "TransformerNorm.h"

#include "Parallel.h"
#include "TransformerKernels.h"
#include "TransformerLinear.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The number of rows that one thread normalizes at a time.
constexpr std::int64_t NormRows = 32;

}

TransformerNorm::TransformerNorm(const TransformerConfig& config, const NormTensors& tensors)
  : Gain(tensors.gain)
  , Shift(tensors.shift)
  , Kind(config.norm)
  , Epsilon(static_cast<float>(config.epsilon))
{
}

void TransformerNorm::Apply(
  std::int64_t rows, std::int64_t columns, const float* from, float* to, int threads) const
{
  const NormParameters parameters = { this->Kind, this->Epsilon, this->Gain.Data(),
    this->Shift.Data() };
  ParallelFor(BlockCount(rows, NormRows), threads,
    [&](std::int64_t block)
    {
      const std::int64_t end = std::min(rows, (block + 1) * NormRows);
      for (std::int64_t row = block * NormRows; row < end; ++row)
      {
        NormalizeRow(parameters, columns, from + row * columns, to + row * columns);
      }
    });
}

}
