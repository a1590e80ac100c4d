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

/// The experts that are chosen by the outputs of a router, and their weights, the largest first.
struct Best
{
  std::vector<std::size_t> experts;
  std::vector<double> weights;
  std::vector<double> parts; ///< with a bias, or of sigmoids: the score of every expert without it

  /// `bias` is that of each expert, or nullptr.
  Best(const double* scores, const float* bias, const TransformerConfig& config)
    : experts(config.experts)
  {
    const std::int64_t kept = config.expertsPerToken;
    std::iota(this->experts.begin(), this->experts.end(), std::size_t{ 0 });
    if (config.expertScores == ExpertScores::SparseMixer)
    {
      this->MixSparsely(scores, config);
      return;
    }
    if (bias != nullptr || config.expertScores == ExpertScores::Sigmoid)
    {
      this->ChooseParts(scores, bias, config);
      return;
    }
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

  /// Multiplies weights by the scales of all experts.
  void Scale(const float* scales)
  {
    std::vector<double> scaled(*std::max_element(this->experts.begin(), this->experts.end()) + 1);
    for (std::size_t k = 0; k < this->experts.size(); ++k)
    {
      const std::size_t expert = this->experts[k];
      scaled[expert] = this->weights[k] * static_cast<double>(scales[expert]);
    }
    Sort(this->experts, static_cast<std::int64_t>(this->experts.size()), scaled.data());
    std::transform(this->experts.begin(), this->experts.end(), this->weights.begin(),
      [&](std::size_t expert) { return scaled[expert]; });
  }

private:
  /// Brings the `count` indices of the largest scores to the front, the first of equal ones.
  static void Sort(std::vector<std::size_t>& indices, std::int64_t count, const double* scores)
  {
    std::partial_sort(indices.begin(), indices.begin() + count, indices.end(),
      [scores](std::size_t a, std::size_t b)
      { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  }

  /// Chooses by softmax or sigmoid, and a bias.
  void ChooseParts(const double* scores, const float* bias, const TransformerConfig& config)
  {
    const std::int64_t kept = config.expertsPerToken;
    this->parts.assign(scores, scores + config.experts);
    if (config.expertScores == ExpertScores::Sigmoid)
    {
      std::transform(this->parts.begin(), this->parts.end(), this->parts.begin(),
        [](double score) { return 1 / (1 + std::exp(-score)); });
    }
    else
    {
      const double largest = *std::max_element(this->parts.begin(), this->parts.end());
      double sum = 0;
      for (double& part : this->parts)
      {
        part = std::exp(part - largest);
        sum += part;
      }
      std::for_each(this->parts.begin(), this->parts.end(), [sum](double& part) { part /= sum; });
    }
    std::vector<double> biased = this->parts;
    for (std::int64_t e = 0; bias != nullptr && e < config.experts; ++e)
    {
      biased[e] += static_cast<double>(bias[e]);
    }
    if (config.expertGroups > 0)
    {
      this->KeepGroups(biased.data(), config);
    }
    // Without a bias by the outputs, which differ also where sigmoids are 1.
    Sort(this->experts, kept, bias != nullptr ? biased.data() : scores);
    this->experts.resize(kept);
    Sort(this->experts, kept, this->parts.data());
    constexpr double least = 1e-20;
    double divisor = 1;
    if (!config.expertWeightsOfAll)
    {
      const double sum = std::accumulate(this->experts.begin(), this->experts.end(), 0.0,
        [this](double before, std::size_t expert) { return before + this->parts[expert]; });
      divisor = std::max({ sum, config.expertLeastSum, least }) + config.expertSumOffset;
    }
    for (const std::size_t expert : this->experts)
    {
      this->weights.push_back(config.expertFactor * this->parts[expert] / divisor);
    }
  }

  /// See ExpertScores::SparseMixer.
  void MixSparsely(const double* scores, const TransformerConfig& config)
  {
    std::vector<std::size_t> left = std::move(this->experts);
    std::vector<double> mixed(left.size());
    this->experts.clear();
    for (std::int64_t k = 0; k < config.expertsPerToken; ++k)
    {
      const auto best = std::max_element(left.begin(), left.end(),
        [scores](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
      const double largest = scores[*best];
      double sum = 0;
      for (const std::size_t expert : left)
      {
        const double size = std::max(std::abs(scores[expert]), largest);
        const bool isFar = (largest - scores[expert]) / size > config.expertTolerance;
        sum += isFar ? 0 : std::exp(scores[expert] - largest);
      }
      mixed[*best] = 1 / sum;
      this->experts.push_back(*best);
      left.erase(best);
    }
    Sort(this->experts, config.expertsPerToken, mixed.data());
    for (const std::size_t expert : this->experts)
    {
      this->weights.push_back(mixed[expert]);
    }
  }

  /// Leaves the experts of the groups whose best experts have the largest scores, or sums of them.
  void KeepGroups(const double* scores, const TransformerConfig& config)
  {
    const std::size_t size = config.experts / config.expertGroups;
    std::vector<double> best;
    std::vector<double> group;
    for (std::int64_t g = 0; g < config.expertGroups; ++g)
    {
      group.assign(scores + ToIndex(g) * size, scores + ToIndex(g + 1) * size);
      const auto end = group.begin() + config.expertGroupScores;
      std::partial_sort(group.begin(), end, group.end(), std::greater<>());
      best.push_back(std::accumulate(group.begin(), end, 0.0));
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
  , Bias(tensors.bias)
  , Scales(tensors.scales)
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

void ExpertMlp::Add(const RowGroup& group, const float* asked, const float* from, float* to,
  const RoutingRows& routing, int threads) const
{
  const std::vector<Chosen> chosen = this->Choose(group, asked, routing, threads);
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
    Best best(scores.data() + row * count, this->Bias.Data(), this->Config);
    if (this->Scales.Data() != nullptr)
    {
      best.Scale(this->Scales.Data());
    }
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
      if (routing.scores != nullptr)
      {
        routing.scores[row * kept + k] = static_cast<float>(best.parts[best.experts[k]]);
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
  const bool scalesInput = this->Config.expertScalesInput;
  for (std::size_t i = 0; i < count; ++i)
  {
    const float factor = scalesInput ? chosen.weights[i] : 1;
    std::transform(from + chosen.rows[i] * d, from + (chosen.rows[i] + 1) * d,
      values.data() + i * ToIndex(d), [factor](float value) { return factor * value; });
  }
  const std::vector<float> hidden =
    this->HiddenOf(expert, static_cast<std::int64_t>(count), values.data(), threads);
  ApplyLinear(Linear(this->Tensors.down[expert]), static_cast<std::int64_t>(count), hidden.data(),
    values.data(), {}, threads);
  for (std::size_t i = 0; i < count; ++i)
  {
    const float* output = values.data() + i * ToIndex(d);
    float* row = to + chosen.rows[i] * d;
    const float factor = scalesInput ? 1 : chosen.weights[i];
    for (std::int64_t j = 0; j < d; ++j)
    {
      row[j] += factor * output[j];
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
    if (limit > 0)
    {
      ApplyGate(limit, rows * m, both.data(), both.data() + 1, 2, hidden.data());
      return hidden;
    }
    ParallelFor(rows, threads,
      [&](std::int64_t row)
      {
        const float* halves = both.data() + row * 2 * m;
        float* values = hidden.data() + row * m;
        std::copy_n(halves, m, values);
        Activate(this->Config.activation, m, values);
        MultiplyRow(m, halves + m, values);
      });
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
