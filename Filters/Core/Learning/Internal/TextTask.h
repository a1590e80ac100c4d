#pragma once

#include "LearningTask.h"

#include <memory>

namespace atlas
{

/// The next token of a text in byte-level BPE, whose tokenizer is trained on the same text
/// (TrainBpe).
///
/// Sequences are windows at random places of the first 90 % of the text. In a share `repeats` of
/// them, a stretch of 16 to context / 2 tokens is repeated later in the window, and the sequences
/// of the first `curriculum` steps are those of RepeatedTokens, random tokens of the same
/// vocabulary: from text alone, induction heads form late. With `curriculumVocabulary` v > 0, step
/// s of them has the first v (vocabulary / v)^(s / curriculum) tokens. The held-out sequences are
/// up to 64 windows of the last 10 %.
///
/// Measures are those of RepeatedTokens, on its held-out sequences.
///
/// Throws OptionError for an option out of range, for a text that is too short, and as TrainBpe
/// does; FileError and FormatError for the file.
std::unique_ptr<LearningTask> MakeTextTask(const TaskOptions& options);

}
