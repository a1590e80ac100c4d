#pragma once

#include "LearningTask.h"

#include <memory>

namespace atlas
{

/// "a b =" and the answer a + b mod p: networks that are trained on a part of the pairs first learn
/// these by heart and much later all of them, by rotations on circles (Power et al., "Grokking",
/// 2022; Nanda et al., "Progress measures for grokking via mechanistic interpretability", 2023).
///
/// Token p is "="; the p outputs are the numbers. Only the last token has a target. The pairs to
/// train on are drawn by the seed; all others are held out. A batch of size 0 is all of the former;
/// a smaller one is a random sample of them, and a larger one all.
///
/// Measures: Train Accuracy, on the pairs that are trained on; Fourier Energy, the share of the
/// squared norm of the embeddings of the numbers in the five strongest frequencies over the numbers
/// modulo p, StrongestFrequencies.
///
/// Throws OptionError if p, the context or the share of pairs is out of range.
std::unique_ptr<LearningTask> MakeModularAdditionTask(const TaskOptions& options);

}
