#include "AdamW.h"

#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Base/Pi.h"
#include "Run/GradientMath.h"

#include <cmath>
#include <functional>
#include <string_view>

namespace atlas
{
namespace
{

/// Values that are updated together.
constexpr std::int64_t BlockSize = 16384;

bool Contains(std::string_view text, std::string_view part)
{
  return text.find(part) != std::string_view::npos;
}

bool IsMatrix(std::string_view name)
{
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (Contains(last, "W_"))
  {
    return true;
  }
  return last == "position_embeddings" ||
         (last == "weight" && !Contains(name, "LayerNorm") && !Contains(name, "layernorm"));
}

}

bool Decays(DecayRule rule, const std::string& name)
{
  const bool isEmbedding =
    name == "embed.W_E" || name == "pos_embed.W_pos" || Contains(name, ".embeddings.");
  return rule == DecayRule::All || (IsMatrix(name) && !(rule == DecayRule::Blocks && isEmbedding));
}

double RateOf(const OptimizerOptions& options, std::int64_t step, std::int64_t steps)
{
  if (step < options.warmup)
  {
    return options.rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup);
  }
  if (options.schedule == RateSchedule::Constant || steps <= options.warmup)
  {
    return options.rate;
  }
  const double part = std::min(
    1.0, static_cast<double>(step - options.warmup) / static_cast<double>(steps - options.warmup));
  return options.finalRate + (options.rate - options.finalRate) * (1 + std::cos(Pi * part)) / 2;
}

template<class Number>
AdamW<Number>::AdamW(
  const ParameterBlock<Number>& parameters, const OptimizerOptions& options, std::int64_t steps)
  : first(parameters.Size())
  , second(parameters.Size())
  , Options(options)
  , Steps(steps)
{
  for (const Parameter& parameter : parameters.GetParameters())
  {
    this->Ends.push_back(parameter.first + parameter.count);
    this->Decaying.push_back(Decays(options.decayRule, parameter.name));
  }
}

template<class Number>
AdamW<Number>::AdamW(std::int64_t count, const OptimizerOptions& options, std::int64_t steps)
  : first(count)
  , second(count)
  , Options(options)
  , Steps(steps)
  , Ends({ count })
  , Decaying({ false })
{
}

template<class Number>
double AdamW<Number>::Norm(const Number* gradient, int threads) const
{
  const std::int64_t size = this->first.size();
  std::vector<double> sums((size + BlockSize - 1) / BlockSize);
  ParallelFor(sums.size(), threads,
    [&](std::int64_t b)
    {
      const Number* values = gradient + b * BlockSize;
      sums[b] = LaneSum<double>(std::min(BlockSize, size - b * BlockSize), [values](std::int64_t i)
        { return static_cast<double>(values[i]) * static_cast<double>(values[i]); });
    });
  double sum = 0;
  for (const double part : sums)
  {
    sum += part;
  }
  return std::sqrt(sum);
}

template<class Number>
void AdamW<Number>::UpdateRange(std::int64_t begin, std::int64_t end, double decay, double factor,
  double size, double deviation, Number* values, const Number* gradient)
{
  const auto keep = static_cast<Number>(1 - decay);
  const auto scale = static_cast<Number>(factor);
  const auto beta1 = static_cast<Number>(this->Options.beta1);
  const auto beta2 = static_cast<Number>(this->Options.beta2);
  const auto rest1 = static_cast<Number>(1 - this->Options.beta1);
  const auto rest2 = static_cast<Number>(1 - this->Options.beta2);
  const auto stepSize = static_cast<Number>(size);
  const auto root = static_cast<Number>(deviation);
  const auto epsilon = static_cast<Number>(this->Options.epsilon);
  Number* m = this->first.data();
  Number* v = this->second.data();
  for (std::int64_t i = begin; i < end; ++i)
  {
    const Number g = gradient[i] * scale;
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    values[i] = values[i] * keep - stepSize * m[i] / (std::sqrt(v[i]) / root + epsilon);
  }
}

template<class Number>
void AdamW<Number>::Update(Number* values, const Number* gradient, double norm, int threads)
{
  const double rate = RateOf(this->Options, this->step, this->Steps);
  const auto power = static_cast<double>(++this->step);
  const double size = rate / (1 - std::pow(this->Options.beta1, power));
  const double deviation = std::sqrt(1 - std::pow(this->Options.beta2, power));
  constexpr double least = 1e-6; // as in clip_grad_norm_
  const double factor =
    this->Options.clip > 0 ? std::min(1.0, this->Options.clip / (norm + least)) : 1;
  const auto update = [&](std::int64_t i)
  {
    const std::size_t k = i;
    const std::int64_t begin = k == 0 ? 0 : this->Ends[k - 1];
    this->UpdateRange(begin, this->Ends[k],
      this->Decaying[k] ? rate * this->Options.weightDecay : 0, factor, size, deviation, values,
      gradient);
  };
  ParallelFor(this->Ends.size(), threads, std::ref(update));
}

template class AdamW<float>;
template class AdamW<double>;

}
