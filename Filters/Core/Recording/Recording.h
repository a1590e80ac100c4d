#pragma once

#include "AttentionKinds.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// Values of the metadata entries `format` and `version` in a native file.
inline constexpr const char* RecordingFormat = "attention-atlas.recording";
inline constexpr const char* RecordingVersion = "1";

/// A row-major, packed float matrix whose memory is shared by its copies, so that thousands of
/// tokens of every head pass from the model to a data object without being copied. Treat it as
/// read-only once it is part of a recording.
struct SharedMatrix
{
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::shared_ptr<float> values; ///< rows x columns; may point into memory that others own

  /// A matrix of its own, of zeros.
  static SharedMatrix Zero(std::int64_t rows, std::int64_t columns)
  {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    const std::shared_ptr<float[]> memory(new float[count]());
    return { rows, columns, std::shared_ptr<float>(memory, memory.get()) };
  }

  /// False for a quantity that was not recorded.
  bool IsRecorded() const { return this->values != nullptr; }

  std::size_t Count() const
  {
    return static_cast<std::size_t>(this->rows) * static_cast<std::size_t>(this->columns);
  }
  float* Row(std::int64_t row) const { return this->values.get() + row * this->columns; }
};

/// What the rows of every matrix are: the tokens of all sequences, one sequence after the other,
/// without padding. Lists are as long as there are tokens, or empty where that does not apply.
struct RecordedTokens
{
  std::vector<std::int32_t> sequence; ///< or the image; from 0
  std::vector<std::int32_t> position; ///< in its sequence, from 0
  std::vector<std::int64_t> id;       ///< in the vocabulary; empty for images
  std::vector<std::string> text;      ///< UTF-8; empty if unknown
  std::vector<std::int32_t> segment;  ///< token type of BERT; empty if there are none
  std::vector<std::int32_t> row;      ///< of the patch, from the top; -1 for a class token
  std::vector<std::int32_t> column;   ///< of the patch, from the left; -1 for a class token

  std::int64_t Count() const { return static_cast<std::int64_t>(this->sequence.size()); }
};

/// One head of one layer. Each matrix has a row per token.
struct RecordedHead
{
  SharedMatrix query;  ///< [tokens, d_head], after rotation
  SharedMatrix key;    ///< [tokens, d_head], after rotation; heads of a group share one matrix
  SharedMatrix value;  ///< [tokens, d_head]; likewise. Not recorded: no values
  SharedMatrix output; ///< [tokens, d_model], sum over keys of attention * value W_O^h, without
                       ///< the output bias; optional

  /// Attention as a file held it, of recordings without queries and keys, or whose queries and keys
  /// do not give it: a [length, length] matrix per sequence, a row per query; else empty. Where
  /// there is some, it is what views show. Weights are after softmax; scores before it and, at
  /// pairs that the mask excludes, whatever the file held: the score, -infinity, or -1e5.
  std::vector<SharedMatrix> weights;
  std::vector<SharedMatrix> scores;

  bool HasAttention() const { return !this->weights.empty() || !this->scores.empty(); }
};

struct RecordedLayer
{
  std::int32_t index = 0;  ///< the layer's number in the model, from 0
  double scoreScale = 1.0; ///< score = scoreScale * query . key + bias; usually 1 / sqrt(d_head)
  std::vector<RecordedHead> heads;
};

/// What a transformer did with some sequences: enough to recompute the attention of any head
/// (RecordedAttention.h), which itself is stored only where it cannot be recomputed.
struct Recording
{
  std::string architecture; ///< "gpt2", "bert", ...; free text in recordings made elsewhere
  AttentionMask mask = AttentionMask::Causal;
  std::vector<double> alibiSlopes; ///< per head; empty: none. Bias = slope * position of the key
  bool rotated = false;            ///< whether queries and keys carry a rotary embedding
  WeightProcessing processing = WeightProcessing::Unknown;
  std::int32_t layerCount = 0; ///< L of the model, of which `layers` may be a selection

  RecordedTokens tokens;
  std::vector<std::int64_t> sequenceOffsets; ///< first row of each sequence, then the row count
  std::vector<RecordedLayer> layers;         ///< by rising index
  std::vector<SharedMatrix> residual; ///< [tokens, d_model] per l = 0 ... L, as the original code
                                      ///< returns hidden states; empty, or not recorded for some l
  SharedMatrix logits;                ///< [tokens, vocabulary]; optional

  std::int64_t SequenceCount() const
  {
    return this->sequenceOffsets.empty()
             ? 0
             : static_cast<std::int64_t>(this->sequenceOffsets.size()) - 1;
  }
  std::int64_t SequenceLength(std::int64_t sequence) const
  {
    const auto s = static_cast<std::size_t>(sequence);
    return this->sequenceOffsets[s + 1] - this->sequenceOffsets[s];
  }
};

/// The matrices of a recording with a row per token, each once, though heads may share it. Which
/// there are, and their order, depends on what is recorded alone.
std::vector<SharedMatrix> TokenMatrices(const Recording& recording);

/// Checks that everything in a recording fits together: offsets, lengths of lists, rows and columns
/// of matrices, the same number of heads in each layer, queries and keys of one dimension. Throws
/// ModelError; the message starts with `source` and names layer and head.
void CheckRecording(const Recording& recording, const std::string& source);

/// The same for what views of one head use: tokens, sequences, the numbers of the layers, and this
/// head of the layer with number `layer`. Other heads may be empty, and other layers without heads.
/// A layer or head that is not there is no error.
void CheckHead(
  const Recording& recording, std::int64_t layer, std::int64_t head, const std::string& source);

}
