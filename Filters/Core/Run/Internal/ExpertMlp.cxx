#include "ExpertMlp.h"

#include "Index.h"
#include "Parallel.h"
#include "TransformerKernels.h"
#include "TransformerLinear.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace atlas
{
namespace
{

/// The indices of the largest scores, the largest first, and their softmax.
struct Best
{
  std::vector<std::size_t> experts;
  std::vector<double> weights;

  Best(const double* scores, std::int64_t count, std::int64_t kept)
    : experts(count)
  {
    std::iota(this->experts.begin(), this->experts.end(), std::size_t{ 0 });
    std::partial_sort(this->experts.begin(), this->experts.begin() + kept, this->experts.end(),
      [scores](std::size_t a, std::size_t b)
      { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    this->experts.resize(kept);
    double sum = 0;
    for (const std::size_t expert : this->experts)
    {
      this->weights.push_back(std::exp(scores[expert] - scores[this->experts.front()]));
      sum += this->weights.back();
    }
    for (double& weight : this->weights)
    {
      weight /= sum;
    }
  }
};

/// The hidden values [count] of gates and linear parts, which take turns in `both`.
void ApplyGate(float limit, std::int64_t count, const float* both, float* hidden)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    const float gate = both[2 * i] > limit ? limit : both[2 * i];
    float linear = both[2 * i + 1];
    LimitRow(limit, 1, &linear);
    hidden[i] = (linear + 1) * gate / (1 + std::exp(-1.702F * gate));
  }
}

}

std::int64_t ExpertMlp::WorkingFloats(const TransformerConfig& config, std::int64_t rows)
{
  return rows * (3 * config.mlpDimension + 2 * config.modelDimension + config.experts);
}

void ExpertMlp::Add(const RowGroup& group, const float* from, float* to, int threads) const
{
  const std::vector<Chosen> chosen = this->Choose(group, from, threads);
  for (std::size_t expert = 0; expert < chosen.size(); ++expert)
  {
    if (!chosen[expert].rows.empty())
    {
      this->AddExpert(expert, chosen[expert], from, to, threads);
    }
  }
}

std::vector<ExpertMlp::Chosen> ExpertMlp::Choose(
  const RowGroup& group, const float* from, int threads) const
{
  const std::int64_t count = this->Config.experts;
  // In double precision: small differences of scores are large ones of the sum.
  std::vector<double> scores(group.Rows() * count);
  const Linear router(this->Tensors.router);
  const std::int64_t d = this->Config.modelDimension;
  ParallelFor(group.Rows(), threads,
    [&](std::int64_t row)
    {
      for (std::int64_t e = 0; e < count; ++e)
      {
        const float* weights = router.Part(0, e).data;
        const double bias = static_cast<double>(*router.Bias(e));
        scores[row * count + e] =
          std::inner_product(from + row * d, from + (row + 1) * d, weights, bias, std::plus<>(),
            [](float a, float b) { return static_cast<double>(a) * static_cast<double>(b); });
      }
    });
  std::vector<Chosen> chosen(count);
  for (std::size_t s = 0; s + 1 < group.offsets.size(); ++s)
  {
    for (Chosen& one : chosen)
    {
      one.counts.push_back(0);
    }
    for (std::int64_t row = group.offsets[s]; row < group.offsets[s + 1]; ++row)
    {
      const Best best(scores.data() + row * count, count, this->Config.expertsPerToken);
      for (std::size_t k = 0; k < best.experts.size(); ++k)
      {
        Chosen& one = chosen[best.experts[k]];
        one.rows.push_back(row);
        one.weights.push_back(static_cast<float>(best.weights[k]));
        ++one.counts.back();
      }
    }
  }
  return chosen;
}

/// The rows of each sequence make up tiles of their own, so that results do not depend on the other
/// sequences.
void ExpertMlp::AddExpert(
  std::size_t expert, const Chosen& chosen, const float* from, float* to, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t m = this->Config.mlpDimension;
  const std::size_t count = chosen.rows.size();
  const std::vector<RowTile> tiles = MakeRowTiles(chosen.counts);
  std::vector<float> values(count * ToIndex(d));
  for (std::size_t i = 0; i < count; ++i)
  {
    std::copy_n(from + chosen.rows[i] * d, d, values.data() + i * ToIndex(d));
  }
  std::vector<float> both(count * ToIndex(2 * m));
  ApplyLinear(Linear(this->Tensors.in[expert]), tiles, values.data(), both.data(), {}, threads);
  std::vector<float> hidden(count * ToIndex(m));
  const auto limit = static_cast<float>(this->Config.expertLimit);
  ApplyGate(limit, hidden.size(), both.data(), hidden.data());
  ApplyLinear(Linear(this->Tensors.out[expert]), tiles, hidden.data(), values.data(), {}, threads);
  for (std::size_t i = 0; i < count; ++i)
  {
    const float* output = values.data() + i * ToIndex(d);
    float* row = to + chosen.rows[i] * d;
    for (std::int64_t j = 0; j < d; ++j)
    {
      row[j] += chosen.weights[i] * output[j];
    }
  }
}

std::uint64_t WidenedBytes(const ExpertTensors& tensors)
{
  std::uint64_t largest = 0;
  for (const std::vector<LinearTensors>* list : { &tensors.in, &tensors.out })
  {
    for (const LinearTensors& linear : *list)
    {
      largest = std::max(largest, WidenedBytes(linear));
    }
  }
  return WidenedBytes(tensors.router) + largest;
}

}
