#include "Rollout.h"

#include "Base/Error.h"
#include "Numerics/MatrixProduct.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <vector>

namespace atlas
{
namespace
{

/// Rows of a layer that are in memory at a time, the inner dimension of a product.
constexpr std::int64_t SlabRows = 512;

/// A product of layers on one sequence.
class Product
{
public:
  Product(const Recording& recording, std::int64_t sequence, int threads)
    : Record(recording)
    , Sequence(sequence)
    , Threads(threads)
    , Length(recording.SequenceLength(sequence))
  {
  }

  /// Rows begin <= i < end of (mean over heads + identity) / 2 of a layer.
  void EvaluateLayer(std::int64_t layer, std::int64_t begin, std::int64_t end, float* values) const
  {
    ForBlocks(end - begin, QueriesPerBlock, this->Threads,
      [&](std::int64_t from, std::int64_t to)
      {
        float* rows = values + from * this->Length;
        EvaluateAttention(this->Record, this->Sequence, layer, AllHeads, AttentionQuantity::Weights,
          begin + from, begin + to, rows);
        for (std::int64_t i = from; i < to; ++i, rows += this->Length)
        {
          std::for_each(rows, rows + this->Length, [](float& value) { value /= 2; });
          rows[begin + i] += 0.5F;
        }
      });
  }

  /// Multiplies rows begin <= i < end of a product by a layer, for keys from <= j < to of the
  /// layer, and adds this to `sums`. `slab` has rows from <= j < to of the layer.
  void AddProduct(std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t to,
    const float* values, const float* slab, float* sums) const
  {
    const bool isCausal =
      this->Record.mask == AttentionMask::Causal && this->Record.tokens.keyEnd.empty();
    ForBlocks(end - begin, QueriesPerBlock, this->Threads,
      [&](std::int64_t first, std::int64_t last)
      {
        if (!isCausal || begin + last > from)
        {
          // Beyond the last row both are 0. What a block computes does not depend on other blocks.
          const std::int64_t inner = isCausal ? std::min(to, begin + last) : to;
          const std::int64_t columns = isCausal ? inner : this->Length;
          MultiplyMatrices(last - first, columns, inner - from, 1,
            { values + first * this->Length + from, this->Length }, { slab, this->Length },
            sums + first * this->Length, this->Length, true);
        }
      });
  }

private:
  const Recording& Record;
  std::int64_t Sequence;
  int Threads;
  std::int64_t Length;
};

/// The recorded layers up to this one. Throws OptionError if one in between was not recorded, or
/// has no attention.
std::vector<std::int64_t> LayersTo(const Recording& recording, const AttentionRows& rows)
{
  const auto& without = recording.layersWithoutHeads;
  const auto gap = std::find_if(
    without.begin(), without.end(), [&rows](std::int64_t layer) { return layer < rows.layer; });
  if (gap != without.end())
  {
    throw OptionError("Rollout multiplies the attention of all layers up to layer ", rows.layer,
      "; layer ", *gap, " of this model has none, and lets tokens read each other in another way.");
  }
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = recording.layers.front().index; layer <= rows.layer; ++layer)
  {
    try
    {
      EvaluateAttention(
        recording, rows.sequence, layer, AllHeads, AttentionQuantity::Weights, 0, 0, nullptr);
    }
    catch (const OptionError& error)
    {
      throw OptionError("Rollout multiplies all layers from the first recorded one to layer ",
        rows.layer, "; layer ", layer, ": ", error.what());
    }
    layers.push_back(layer);
  }
  return layers;
}

}

void EvaluateRollout(const Recording& recording, const AttentionRows& rows, float* values,
  int threads, const Progress& progress)
{
  const std::vector<std::int64_t> layers = LayersTo(recording, rows);
  if (rows.begin == rows.end)
  {
    return;
  }
  const SingleThreadedBlas blas;
  const Product product(recording, rows.sequence, threads);
  const std::int64_t length = recording.SequenceLength(rows.sequence);
  const bool isCausal = recording.mask == AttentionMask::Causal && recording.tokens.keyEnd.empty();
  const std::int64_t keys = isCausal ? rows.end : length;
  product.EvaluateLayer(rows.layer, rows.begin, rows.end, values);
  if (layers.size() == 1)
  {
    progress(1);
    return;
  }
  std::vector<float> sums((rows.end - rows.begin) * length);
  std::vector<float> slab(std::min(SlabRows, keys) * length);
  const std::int64_t steps =
    (static_cast<std::int64_t>(layers.size()) - 1) * BlockCount(keys, SlabRows);
  std::int64_t done = 0;
  for (auto layer = layers.rbegin() + 1; layer != layers.rend(); ++layer)
  {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::int64_t from = 0; from < keys; from += SlabRows)
    {
      const std::int64_t to = std::min(from + SlabRows, keys);
      product.EvaluateLayer(*layer, from, to, slab.data());
      product.AddProduct(rows.begin, rows.end, from, to, values, slab.data(), sums.data());
      progress(++done, steps);
    }
    std::copy(sums.begin(), sums.end(), values);
  }
}

}
