#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// Random blocks of tokens, each repeated until the context is full: what repeats can be predicted
/// by an induction head alone (Olsson et al., "In-context learning and induction heads", 2022).
///
/// The length of a block is random, from a quarter to half of the context. If it were fixed, a head
/// could find the earlier token by its position. The tokens of a block are all different where the
/// vocabulary allows it, so the token that came before determines the next one. The loss is on
/// every next token of the context.
///
/// Measures, on 64 held-out sequences:
/// - Induction: the largest prefix-matching score of a head, PatternSums::PrefixMatching.
/// - Previous Token: the largest mean attention of a head to the token before, over the queries of
///   the first block, whose tokens are the ones that induction heads look up.
/// - K-Composition (FindHeadComposition) of the strongest head of the first layer for the previous
///   token with the strongest induction head of a later layer; 0 with one layer.
/// - Repeat Loss: the mean loss of tokens that are predicted from the second block or a later one.
///
/// Throws OptionError for a vocabulary or context out of range.
std::unique_ptr<LearningTask> MakeRepeatedTokensTask(const TaskOptions& options);

}
