#pragma once

#include "Weights/Transformer.h"

#include <array>
#include <cstdint>
#include <vector>

namespace atlas
{

/// How many hidden states Mess3 has, and how many symbols.
inline constexpr std::int64_t Mess3States = 3;

/// A distribution over the three hidden states of Mess3: a point of a triangle.
using Belief = std::array<double, Mess3States>;

/// The hidden Markov model Mess3 (Marzen and Crutchfield 2017; Shai et al., "Transformers represent
/// belief state geometry in their residual stream", 2024): three hidden states and three symbols.
/// In each step the state stays with probability 1 - 2 x and goes to either of the others with x;
/// then a symbol is emitted, that of the new state with probability alpha, each of the others with
/// (1 - alpha) / 2. It begins in any state with the same probability, which is stationary.
struct Mess3
{
  double alpha = 0.85; ///< 0 to 1
  double x = 0.05;     ///< 0 to 1/2

  /// The probability to go from state i to state j and emit the symbol k: T^(k)_ij.
  double Transition(std::int64_t symbol, std::int64_t from, std::int64_t to) const;
};

/// What an observer believes who knows the process and saw the first i + 1 symbols, for each i: the
/// probabilities of the hidden states, by Bayes' rule.
std::vector<Belief> BeliefsAfter(const Mess3& process, const std::vector<std::int64_t>& symbols);

/// The probabilities of the next symbol under a belief.
Belief NextSymbol(const Mess3& process, const Belief& belief);

/// -log p(symbol i + 1 | symbols 0, ..., i) of the best predictor, in nats: one number less than
/// symbols.
std::vector<double> OptimalLosses(const Mess3& process, const std::vector<std::int64_t>& symbols);

/// Beliefs, and what a linear function of the residual stream makes of it.
struct BeliefRegression
{
  std::vector<Belief> beliefs;   ///< per token of the sequences
  std::vector<Belief> predicted; ///< of the same tokens; the numbers of each add up to 1
  double r2 = 0; ///< 1 - squared errors / squared distances of the beliefs from their mean, each
                 ///< summed over tokens and states
};

/// Least squares with intercept of beliefs on `rows` [beliefs, dimension], row-major; of the
/// solutions the one of smallest norm. Fits and predicts the same rows.
BeliefRegression RegressBeliefs(
  std::vector<Belief> beliefs, const float* rows, std::int64_t dimension);

/// The same for a model that was trained on symbols of the process, on its residual stream after
/// the last layer, before the final normalization, at each token of some sequences (Shai et al.
/// 2024). Throws as RecordTransformer does.
BeliefRegression RegressBeliefs(const Mess3& process, const Transformer& model,
  const std::vector<std::vector<std::int64_t>>& sequences, int threads = 0);

}
