#pragma once

// Internal to Core.

#include "Learning/LearningRecipe.h"
#include "ParameterBlock.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// Whether a tensor decays, by its name.
bool Decays(DecayRule rule, const std::string& name);

/// The learning rate of a step, counted from 0, of a training of `steps` steps.
double RateOf(const OptimizerOptions& options, std::int64_t step, std::int64_t steps);

/// AdamW with clipping: the update of torch.optim.AdamW after clip_grad_norm_ (Loshchilov and
/// Hutter 2019).
template<class Number>
class AdamW
{
public:
  AdamW(
    const ParameterBlock<Number>& parameters, const OptimizerOptions& options, std::int64_t steps);

  /// For this many values, none of which decays.
  AdamW(std::int64_t count, const OptimizerOptions& options, std::int64_t steps);

  /// The norm of a gradient over all parameters, before clipping.
  double Norm(const Number* gradient, int threads) const;

  /// Updates the values with a gradient of this norm.
  void Update(Number* values, const Number* gradient, double norm, int threads);

  std::int64_t step = 0;     ///< updates done
  std::vector<Number> first; ///< the moments, in the layout of the parameters
  std::vector<Number> second;

private:
  OptimizerOptions Options;
  std::int64_t Steps;
  std::vector<std::int64_t> Ends; ///< of the ranges of values that decay or do not, in turn
  std::vector<bool> Decaying;

  void UpdateRange(std::int64_t begin, std::int64_t end, double decay, double factor, double size,
    double deviation, Number* values, const Number* gradient);
};

extern template class AdamW<float>;
extern template class AdamW<double>;

}
