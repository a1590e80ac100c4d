#include "ExpertMlp.h"

#include "Base/Index.h"
#include "Base/Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace atlas
{
namespace
{

/// The indices of the largest scores, the largest first, and their parts in the softmax over all
/// scores or over those that are kept.
struct Best
{
  std::vector<std::size_t> experts;
  std::vector<double> weights;

  Best(const double* scores, const TransformerConfig& config)
    : experts(config.experts)
  {
    const std::int64_t kept = config.expertsPerToken;
    std::iota(this->experts.begin(), this->experts.end(), std::size_t{ 0 });
    if (config.expertGroups > 0)
    {
      this->KeepGroups(scores, config);
    }
    Sort(this->experts, kept, scores);
    const double largest = scores[this->experts.front()];
    double sum = 0;
    for (std::int64_t e = 0; e < (config.expertWeightsOfAll ? config.experts : kept); ++e)
    {
      sum += std::exp(scores[config.expertWeightsOfAll ? ToIndex(e) : this->experts[e]] - largest);
    }
    this->experts.resize(kept);
    for (const std::size_t expert : this->experts)
    {
      this->weights.push_back(config.expertFactor * std::exp(scores[expert] - largest) / sum);
    }
  }

private:
  /// Brings the `count` indices of the largest scores to the front, the first of equal ones.
  static void Sort(std::vector<std::size_t>& indices, std::int64_t count, const double* scores)
  {
    std::partial_sort(indices.begin(), indices.begin() + count, indices.end(),
      [scores](std::size_t a, std::size_t b)
      { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  }

  /// Leaves the experts of the groups whose best experts have the largest scores.
  void KeepGroups(const double* scores, const TransformerConfig& config)
  {
    const std::size_t size = config.experts / config.expertGroups;
    std::vector<double> best;
    for (std::int64_t g = 0; g < config.expertGroups; ++g)
    {
      const double* group = scores + ToIndex(g) * size;
      best.push_back(*std::max_element(group, group + size));
    }
    std::vector<std::size_t> groups(best.size());
    std::iota(groups.begin(), groups.end(), std::size_t{ 0 });
    Sort(groups, config.expertGroupsPerToken, best.data());
    this->experts.clear();
    for (std::int64_t g = 0; g < config.expertGroupsPerToken; ++g)
    {
      for (std::size_t e = 0; e < size; ++e)
      {
        this->experts.push_back(groups[g] * size + e);
      }
    }
  }
};

/// The hidden values [count] of gates and linear parts, each `step` numbers from the next.
void ApplyGate(float limit, std::int64_t count, const float* gates, const float* linears,
  std::int64_t step, float* hidden)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    const float given = gates[i * step];
    const float gate = given > limit ? limit : given;
    float linear = linears[i * step];
    LimitRow(limit, 1, &linear);
    hidden[i] = (linear + 1) * gate / (1 + std::exp(-1.702F * gate));
  }
}

}

ExpertMlp::ExpertMlp(const TransformerConfig& config, const ExpertTensors& tensors)
  : Config(config)
  , Tensors(tensors)
  , SharedGate(tensors.sharedGate)
  , SharedUp(tensors.sharedUp)
  , SharedDown(tensors.sharedDown)
  , SharedFactor(tensors.sharedFactor)
{
}

std::int64_t ExpertMlp::WorkingFloats(const TransformerConfig& config, std::int64_t rows)
{
  const std::int64_t d = config.modelDimension;
  const std::int64_t scores = 2 * config.experts; // in double precision
  const std::int64_t chosen = 3 * config.expertDimension + 2 * d;
  const std::int64_t shared =
    config.sharedExpertDimension > 0 ? 2 * config.sharedExpertDimension + d + 2 : 0;
  return rows * (scores + std::max(chosen, shared));
}

void ExpertMlp::Add(const RowGroup& group, const float* from, float* to, const RoutingRows& routing,
  int threads) const
{
  const std::vector<Chosen> chosen = this->Choose(group, from, routing, threads);
  for (std::size_t expert = 0; expert < chosen.size(); ++expert)
  {
    if (!chosen[expert].rows.empty())
    {
      this->AddExpert(expert, chosen[expert], from, to, threads);
    }
  }
  if (this->Tensors.sharedDown.Exists())
  {
    this->AddShared(group, from, to, threads);
  }
}

/// The outputs of a matrix for each row, in double precision: small differences of scores are large
/// ones of the sum.
std::vector<double> ExpertMlp::Scores(
  const Linear& linear, std::int64_t rows, const float* from, int threads) const
{
  const std::int64_t count = linear.Outputs();
  std::vector<double> scores(rows * count);
  const std::int64_t d = this->Config.modelDimension;
  ParallelFor(rows, threads,
    [&](std::int64_t row)
    {
      for (std::int64_t e = 0; e < count; ++e)
      {
        const float* weights = linear.Part(0, e).data;
        const float* stored = linear.Bias(e);
        const double bias = stored != nullptr ? static_cast<double>(*stored) : 0;
        scores[row * count + e] =
          std::inner_product(from + row * d, from + (row + 1) * d, weights, bias, std::plus<>(),
            [](float a, float b) { return static_cast<double>(a) * static_cast<double>(b); });
      }
    });
  return scores;
}

std::vector<ExpertMlp::Chosen> ExpertMlp::Choose(
  const RowGroup& group, const float* from, const RoutingRows& routing, int threads) const
{
  const std::int64_t count = this->Config.experts;
  const std::int64_t kept = this->Config.expertsPerToken;
  const std::vector<double> scores =
    this->Scores(Linear(this->Tensors.router), group.Rows(), from, threads);
  std::vector<Chosen> chosen(count);
  for (std::int64_t row = 0; row < group.Rows(); ++row)
  {
    const Best best(scores.data() + row * count, this->Config);
    for (std::int64_t k = 0; k < kept; ++k)
    {
      Chosen& one = chosen[best.experts[k]];
      one.rows.push_back(row);
      one.weights.push_back(static_cast<float>(best.weights[k]));
      if (routing.experts != nullptr)
      {
        routing.experts[row * kept + k] = static_cast<float>(best.experts[k]);
        routing.weights[row * kept + k] = one.weights.back();
      }
    }
  }
  return chosen;
}

void ExpertMlp::AddExpert(
  std::size_t expert, const Chosen& chosen, const float* from, float* to, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::size_t count = chosen.rows.size();
  std::vector<float> values(count * ToIndex(d));
  for (std::size_t i = 0; i < count; ++i)
  {
    std::copy_n(from + chosen.rows[i] * d, d, values.data() + i * ToIndex(d));
  }
  const std::vector<float> hidden =
    this->HiddenOf(expert, static_cast<std::int64_t>(count), values.data(), threads);
  ApplyLinear(Linear(this->Tensors.down[expert]), static_cast<std::int64_t>(count), hidden.data(),
    values.data(), {}, threads);
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

/// What W_down of an expert multiplies, for rows of its inputs.
std::vector<float> ExpertMlp::HiddenOf(
  std::size_t expert, std::int64_t rows, const float* from, int threads) const
{
  const std::int64_t m = this->Config.expertDimension;
  const Linear gate(this->Tensors.gate[expert]);
  std::vector<float> hidden(rows * m);
  const auto limit = static_cast<float>(this->Config.expertLimit);
  if (this->Tensors.up.empty())
  {
    std::vector<float> both(rows * 2 * m);
    ApplyLinear(gate, rows, from, both.data(), {}, threads);
    ApplyGate(limit, rows * m, both.data(), both.data() + 1, 2, hidden.data());
    return hidden;
  }
  std::vector<float> linear(rows * m);
  ApplyLinear(Linear(this->Tensors.up[expert]), rows, from, linear.data(), {}, threads);
  if (limit > 0) // llama.cpp has both in tensors of their own
  {
    ApplyLinear(gate, rows, from, hidden.data(), {}, threads);
    ApplyGate(limit, rows * m, hidden.data(), linear.data(), 1, hidden.data());
    return hidden;
  }
  ApplyLinear(
    gate, rows, from, hidden.data(), { this->Config.activation, linear.data(), false }, threads);
  return hidden;
}

void ExpertMlp::AddShared(const RowGroup& group, const float* from, float* to, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t m = this->Config.sharedExpertDimension;
  std::vector<float> linear(group.Rows() * m);
  std::vector<float> hidden(group.Rows() * m);
  ApplyLinear(this->SharedUp, group.Rows(), from, linear.data(), {}, threads);
  ApplyLinear(this->SharedGate, group.Rows(), from, hidden.data(),
    { this->Config.activation, linear.data(), false }, threads);
  if (!this->Tensors.sharedFactor.Exists())
  {
    ApplyLinear(
      this->SharedDown, group.Rows(), hidden.data(), to, { std::nullopt, nullptr, true }, threads);
    return;
  }
  std::vector<float> output(group.Rows() * d);
  ApplyLinear(this->SharedDown, group.Rows(), hidden.data(), output.data(), {}, threads);
  const std::vector<double> factors = this->Scores(this->SharedFactor, group.Rows(), from, threads);
  for (std::int64_t row = 0; row < group.Rows(); ++row)
  {
    const auto factor = static_cast<float>(1 / (1 + std::exp(-factors[row])));
    for (std::int64_t j = 0; j < d; ++j)
    {
      to[row * d + j] += factor * output[row * d + j];
    }
  }
}

std::uint64_t WidenedBytes(const ExpertTensors& tensors, int threads)
{
  std::uint64_t largest = 0;
  for (const std::vector<LinearTensors>* list : { &tensors.gate, &tensors.up, &tensors.down })
  {
    for (const LinearTensors& linear : *list)
    {
      largest = std::max(largest, WidenedBytes(linear, threads));
    }
  }
  for (const LinearTensors* shared :
    { &tensors.sharedGate, &tensors.sharedUp, &tensors.sharedDown })
  {
    largest = std::max(largest, WidenedBytes(*shared, threads));
  }
  return WidenedBytes(tensors.router.weight) + WidenedBytes(tensors.sharedFactor.weight) + largest;
}

}
