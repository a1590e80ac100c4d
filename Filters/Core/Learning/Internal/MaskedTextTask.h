#pragma once

#include "LearningTask.h"

#include <memory>

namespace atlas
{

/// The masked tokens of a text, for a small BERT (Devlin et al. 2019).
///
/// The vocabulary is made from the text: its characters and its most frequent words, in lower case
/// (TrainWordPiece). A sequence is [CLS], a window at a random place of the first 90 % of the text,
/// and [SEP]; there is one segment. Of its words' tokens, 15 %, at least one, are to be predicted:
/// of these, each is replaced by [MASK] with probability 80 %, by a random token that is not
/// special with 10 %, or kept. In a share `repeats` of the sequences, a stretch of at least 16
/// tokens is repeated later in the window, before tokens are hidden. The sequences of the first
/// `curriculum` steps are a block of random tokens that are not special, repeated: from text alone,
/// no heads form that copy. The held-out sequences are up to 64 windows of the last 10 %, with
/// fixed masks.
///
/// Measure, on the held-out sequences: Masked Loss, the mean loss where the token is [MASK].
///
/// Throws OptionError for an option out of range, for a text that is too short, and as
/// TrainWordPiece does; FileError and FormatError for the file.
std::unique_ptr<LearningTask> MakeMaskedTextTask(const TaskOptions& options);

}
