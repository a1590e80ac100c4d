#pragma once

#include "TransformerInput.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// What a model is trained on in one step.
struct TrainingBatch
{
  TransformerInput input; ///< sequences, whose lengths may differ, or images

  /// What is to be predicted from each row: one number per token of each sequence or, for images,
  /// per class token and patch of each image. A token id or class; -1: no loss. The loss is the
  /// mean of -log p(target), in nats, over the rows that have a target.
  std::vector<std::int64_t> targets;
};

}
