#pragma once

#include "Base/Progress.h"
#include "RecordedAttention.h"
#include "Recording.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The words of a sequence of which those tokens are one word that are parts of the same picture
/// and follow each other. All other tokens are a word each.
struct JoinedWords
{
  std::vector<std::int64_t> first; ///< position of the first token of each word, then the length of
                                   ///< the sequence

  std::int64_t Count() const { return static_cast<std::int64_t>(this->first.size()) - 1; }
};

/// Throws OptionError if the recording does not have the sequence, or for AllSequences.
JoinedWords JoinPictures(const Recording& recording, std::int64_t sequence);

/// A recording of one sequence, whose tokens are these words of sequence `rows.sequence`, and of
/// one layer with one head, whose stored weights are the quantity, layer and head of `rows`: with
/// a_ij of tokens (EvaluateAttention), that from word I to word J is
///
///     sum over i in I and j in J of a_ij / |I|
///
/// so that weights of a word add up to what those of its tokens do. A picture is named by its
/// number and its tokens. If sinks take part of the attention, the layer has some, too. `begin` and
/// `end` of `rows` are not used. Throws as EvaluateAttention.
Recording JoinAttention(const Recording& recording, AttentionRows rows, const JoinedWords& words,
  int threads, const Progress& progress = {});

}
