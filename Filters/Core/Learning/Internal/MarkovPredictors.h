#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// -log p(token i + 1 | tokens 0, ..., i), in nats, by the posterior mean of a Markov chain whose
/// rows have a flat Dirichlet prior: p = (n_st + 1) / (n_s + states), with n_st the transitions
/// from s to t so far and n_s those from s. For a chain that starts anywhere with the same
/// probability this is the exact Bayes predictor; for one that starts in its stationary
/// distribution, as Edelman et al. 2024 use it too, it leaves out the little that the first token
/// tells.
std::vector<double> BigramLosses(const std::vector<std::int64_t>& tokens, std::int64_t states);

/// The same for independent tokens with a flat Dirichlet prior: p = (n_t + 1) / (n + states), with
/// n_t the tokens t among the n so far.
std::vector<double> UnigramLosses(const std::vector<std::int64_t>& tokens, std::int64_t states);

/// The stationary distribution of a Markov chain with positive probabilities [states, states], by
/// row, by the elimination of Grassmann, Taksar and Heyman (1985), which subtracts nothing.
std::vector<double> StationaryDistribution(std::vector<double> transitions, std::int64_t states);

}
