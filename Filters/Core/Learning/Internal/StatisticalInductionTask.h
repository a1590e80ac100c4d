#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// Sequences of random Markov chains, each of its own (Edelman et al., "The evolution of
/// statistical induction heads: in-context learning Markov chains", 2024): the transitions must be
/// learned from the sequence itself.
///
/// Each row of the transitions is drawn from the flat Dirichlet distribution, the first token from
/// the stationary distribution of the chain, as in the paper. The loss is on every token of the
/// context; the target of the last one is drawn too.
///
/// Measures, on 128 held-out sequences, as mean losses in nats:
/// - Bayes Bigram: of BigramLosses. - Unigram: of UnigramLosses.
/// - Excess Loss: the loss of the model less that of Bayes Bigram.
///
/// Throws OptionError for a vocabulary or context out of range.
std::unique_ptr<LearningTask> MakeStatisticalInductionTask(const TaskOptions& options);

}
