#pragma once

// Internal to Core: what MakeTask makes, with sizes that are all given, and what tasks compute.

#include "Learning/LearningTask.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace atlas
{

// All throw OptionError for a vocabulary, context or share out of range; Text and MaskedText for a
// text that is too short, and as the training of their tokenizers, and FileError and FormatError
// for the file.

std::unique_ptr<LearningTask> MakeRepeatedTokensTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeTextTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeStatisticalInductionTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeModularAdditionTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeBeliefStatesTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeColorPatchesTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeMaskedTextTask(const TaskOptions& options);
std::unique_ptr<LearningTask> MakeLatticeProteinTask(const TaskOptions& options);

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

/// How much of the squared norm of p vectors [p, dimension], row-major, one for each number modulo
/// p, lies in each frequency k = 0, ..., floor(p / 2) of the discrete Fourier transform over the
/// numbers. Frequencies k and p - k count as one. The sum is the squared norm.
std::vector<double> CyclicSpectrum(const float* vectors, std::int64_t p, std::int64_t dimension);

/// The share of the squared norm in the `count` strongest frequencies above 0; 0 if all vectors
/// are. The mean of the vectors, frequency 0, is part of the whole.
double StrongestFrequencies(const std::vector<double>& spectrum, std::int64_t count);

/// The residues of the lattice protein.
inline constexpr std::int64_t LatticeResidues = 36;

/// The place of each residue in a block of 3 x 3 x 4 places, which the chain fills.
const std::vector<std::array<int, 3>>& LatticeFold();

/// Whether two residues touch: they are neighbors in the block, but not in the chain.
bool AreInContact(std::int64_t i, std::int64_t j);

/// The share of contacts among the L/2 = 18 pairs of residues, at least three apart in the chain,
/// with the most attention [36, 36]: the sum of both directions, corrected for what each residue
/// gives and gets in all (average product correction, Dunn et al. 2008; as in Rao et al. 2021).
/// Of all such pairs, 40 of 561 are in contact.
double ContactPrecision(const std::vector<float>& attention);

}
