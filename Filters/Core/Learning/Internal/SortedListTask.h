#pragma once

#include "SequenceTask.h"

#include <memory>

namespace atlas
{

/// A list of different numbers in random order, a separator, and the list sorted. The vocabulary is
/// that of the numbers; the separator is one more token. A context of 2 n + 1 tokens holds lists of
/// n numbers. The loss is on the sorted list, which follows from what is before it.
///
/// Measure, on 256 held-out lists: Sequences Right, the share of lists all of whose numbers are
/// predicted, each from the right ones before it.
///
/// Throws OptionError for a vocabulary or context out of range, and an even context.
std::unique_ptr<LearningTask> MakeSortedListTask(const TaskOptions& options);

}
