#include "TransformerNorm.h"

#include "Base/Parallel.h"
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
  : TransformerNorm(config, tensors, config.norm)
{
}

TransformerNorm::TransformerNorm(
  const TransformerConfig& config, const NormTensors& tensors, NormKind kind)
  : StoredGain(tensors.gain)
  , Gain(this->StoredGain.Data())
  , Shift(tensors.shift)
  , Kind(kind)
  , Epsilon(static_cast<float>(config.epsilon))
{
  if (config.gainOffset != 0 && this->Gain != nullptr)
  {
    this->Sums.assign(this->Gain, this->Gain + tensors.gain.Count());
    for (float& gain : this->Sums)
    {
      gain += static_cast<float>(config.gainOffset);
    }
    this->Gain = this->Sums.data();
  }
}

void TransformerNorm::ApplyRow(std::int64_t columns, const float* from, float* to) const
{
  NormalizeRow({ this->Kind, this->Epsilon, this->Gain, this->Shift.Data() }, columns, from, to);
}

void TransformerNorm::Apply(
  std::int64_t rows, std::int64_t columns, const float* from, float* to, int threads) const
{
  ParallelFor(BlockCount(rows, NormRows), threads,
    [&](std::int64_t block)
    {
      const std::int64_t end = std::min(rows, (block + 1) * NormRows);
      for (std::int64_t row = block * NormRows; row < end; ++row)
      {
        this->ApplyRow(columns, from + row * columns, to + row * columns);
      }
    });
}

}
