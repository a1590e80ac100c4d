#pragma once

#include "Base/Progress.h"
#include "Interventions.h"
#include "Preprocessing/TransformerInput.h"

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace atlas
{

/// What is recorded and changed: what a recording of an input depends on.
struct RecordChoice
{
  bool queriesAndKeys = true;
  bool valueNorms = true; ///< with queries and keys: the norms of values, one number per token and
                          ///< head, with which these give norm-weighted attention
  bool values = true;
  bool headOutputs = false;
  bool residual = false;
  bool logits = false;
  bool routing = false;    ///< which experts were chosen for each token, and their weights
  bool finalScale = false; ///< sigma of the final normalization, for what follows at once: files
                           ///< and data objects do not keep it
  std::vector<std::int64_t> layers; ///< layers whose heads are recorded, and the residuals before
                                    ///< and after them; empty: all. Of the encoder, those of
                                    ///< them that it has

  /// What is changed during the run. Queries, keys, values and norms of values are those that the
  /// heads compute; head outputs and residuals are those after the change. Every sequence of a run
  /// with a source has as many tokens as the source. Of a model with an encoder, only the decoder's
  /// own attention, MLPs and residual stream can be changed, to zero or to the mean over positions.
  Interventions interventions;

  bool operator==(const RecordChoice& other) const
  {
    const auto tie = [](const RecordChoice& choice)
    {
      return std::tie(choice.queriesAndKeys, choice.valueNorms, choice.values, choice.headOutputs,
        choice.residual, choice.logits, choice.routing, choice.finalScale, choice.layers,
        choice.interventions);
    };
    return tie(*this) == tie(other);
  }
};

struct RecordOptions : RecordChoice
{
  int threads = 0; ///< as for ThreadCount; results do not depend on it

  /// The sequences that are run; all if not set. The recording has rows for all sequences in any
  /// case. Rows of the other sequences are 0, to be filled by the processes that run them
  /// (SplitSequences).
  std::optional<SequenceRange> sequences;

  Progress progress;
};

struct MemoryEstimate
{
  std::uint64_t recording = 0; ///< size of the recording, in bytes
  std::uint64_t working = 0;   ///< peak of additional bytes while running; mapped files of
                               ///< weights are not included
};

}
