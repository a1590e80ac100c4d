#pragma once

#include "Base/Progress.h"
#include "Recording/RecordedAttention.h"

namespace atlas
{

/// Evaluates AttentionQuantity::Rollout on one sequence, as EvaluateAttentionRows. The sequence,
/// layer, head and queries must be there; everything else is checked.
void EvaluateRollout(const Recording& recording, const AttentionRows& rows, float* values,
  int threads, const Progress& progress);

}
