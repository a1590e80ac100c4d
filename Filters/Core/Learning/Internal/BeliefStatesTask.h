#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// Sequences of the process Mess3 (BeliefStates.h): to predict the next symbol as well as possible,
/// a network must keep track of what is to be believed of the hidden state. The loss is on every
/// token of the context; the target of the last one is drawn too. Where the context is short,
/// held-out sequences occur in training as well: nothing can be learned by heart from them that is
/// not a law of the process.
///
/// Measures, on 256 held-out sequences: Belief R2, of RegressBeliefs; Excess Loss, the mean loss
/// less that of the best predictor on the same tokens, OptimalLosses.
///
/// Throws OptionError for a vocabulary or context out of range.
std::unique_ptr<LearningTask> MakeBeliefStatesTask(const TaskOptions& options);

}
