#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// The tokens of bracket sequences.
enum BracketToken : std::int64_t
{
  OpeningBracket,
  ClosingBracket,
  BracketClass ///< [CLS], the first token, at which the answer is read
};

/// Whether each bracket of a sequence is closed, in order (the setting of Callum McDougall's course
/// ARENA, "Balanced bracket classifier"): [CLS] and an even number of brackets, up to the context,
/// all lengths alike often, and a bidirectional mask. The target of [CLS] is 1 if they are
/// balanced, else 0; there are no others.
///
/// Half of the sequences are balanced, uniformly among those of their length. The others are close
/// to it: half of them have two brackets swapped, so that there are as many "(" as ")", half of
/// them one bracket turned around.
///
/// Measures, on 512 held-out sequences: Swapped and Turned, the accuracy on the two kinds of
/// unbalanced ones. Counting gets the latter alone.
///
/// Throws OptionError for a vocabulary or context out of range.
std::unique_ptr<LearningTask> MakeBracketsTask(const TaskOptions& options);

/// A random balanced sequence of `pairs` pairs, uniformly among all, by the cycle lemma (Dvoretzky
/// and Motzkin 1947).
std::vector<std::int64_t> DrawBalanced(LearningRandom& random, std::int64_t pairs);

/// Whether each bracket is closed, in order.
bool AreBalanced(const std::vector<std::int64_t>& brackets);

}
