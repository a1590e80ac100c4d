#pragma once

#include "Base/Progress.h"
#include "Recording.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>

namespace atlas
{

/// What an attention map of one head shows for each query and key.
enum class AttentionQuantity
{
  Weights, ///< softmax over the keys that the mask and the layer's window allow; 0 for all other
           ///< keys. They add up to 1, or with a sink to less
  Scores,  ///< Content + Bias, before mask and window; with a cap c tanh(Content / c) + Bias
  Content, ///< scoreScale * query . key, before any cap
  Bias,    ///< slope * position of the key (ALiBi, Press et al. 2022), or the bias of the distance
           ///< from query to key (T5, Raffel et al. 2020); 0 without either
  NormWeighted, ///< Weights * norm(v_j W_O^h), the length of what the key adds to the residual
                ///< stream through this head, with v_j = x_j W_V^h + b_V^h (Kobayashi et al.,
                ///< "Attention is not only a weight", 2020)
  Rollout       ///< A_l A_(l-1) ... A_f with A = (mean of Weights over heads + identity) / 2, from
                ///< the first recorded layer f to this one (Abnar and Zuidema, "Quantifying
                ///< attention flow in transformers", 2020). The same for all heads
};

/// Their names, in this order, for arrays and lists.
inline constexpr std::array<const char*, 6> AttentionQuantityNames = { "Weights", "Scores",
  "Content", "Bias", "NormWeighted", "Rollout" };

/// The number of queries and keys: the length of the sequence, or of the longest for AllSequences.
/// Throws OptionError if the recording does not have the sequence.
std::int64_t AttentionLength(const Recording& recording, std::int64_t sequence);

/// Positions begin <= j < end of keys.
struct KeyRange
{
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool Has(std::int64_t key) const { return key >= this->begin && key < this->end; }
};

/// The positions of the queries of a sequence, and those of its keys: all, but under the mask Cross
/// those of the target and those of the source. Of AllSequences, from the first of any to the last.
KeyRange QueryPositions(const Recording& recording, std::int64_t sequence);
KeyRange KeyPositions(const Recording& recording, std::int64_t sequence);

/// The keys that a query of a sequence may attend to: by the mask, and by the window and the chunks
/// of a recorded layer. Of those in between, a window of patches may have some only (HasKey).
KeyRange AllowedKeys(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t query);

/// Whether the window of patches of a query has a key, or the layer has none.
bool HasKey(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t query, std::int64_t key);

/// The keys that a query may attend to, rising.
std::vector<std::int64_t> KeysOf(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t query);

/// Whether a sink of the layer, or for Rollout of any layer up to it, takes part of the attention,
/// so that Weights or Rollout add up to less than 1. False for other quantities.
bool HasSinks(const Recording& recording, std::int64_t layer, AttentionQuantity quantity);

/// Throws ModelError if the scores of a recorded layer are capped, so that they are no sums of
/// parts that could be `done`, as "split".
void RequireUncapped(const Recording& recording, std::int64_t layer, const std::string& done);

struct HeadScores;

/// Which keys the queries of a sequence may attend to in a recorded layer, without queries and
/// keys.
HeadScores MaskOf(const Recording& recording, std::int64_t sequence, const RecordedLayer& layer);

/// The recorded queries and keys of a head on a sequence, with all that turns them into attention.
/// Throws OptionError if the recording does not have them.
HeadScores ScoresOf(
  const Recording& recording, std::int64_t sequence, std::int64_t layer, std::int64_t head);

/// Throws OptionError unless this is one sequence of the recording, and not all.
void RequireOneSequence(const Recording& recording, std::int64_t sequence);

/// As AttentionLength. Throws OptionError also if there are no tokens, or no queries or keys.
std::int64_t RequireTokens(const Recording& recording, std::int64_t sequence);

/// How many queries are best evaluated at a time: their values stay in the processor's cache.
/// Blocks that begin at multiples of it give values that do not depend on the number of threads.
inline constexpr std::int64_t QueriesPerBlock = 64;

/// The queries of whole blocks whose values fill 64 MiB, at least one block: so many are evaluated
/// at a time where not all values are to be in memory.
inline std::int64_t QueriesAtOnce(std::int64_t keys)
{
  constexpr std::int64_t values = std::int64_t{ 1 } << 24;
  const std::int64_t perBlock = QueriesPerBlock * std::max<std::int64_t>(keys, 1);
  return std::max<std::int64_t>(values / perBlock, 1) * QueriesPerBlock;
}

/// Evaluates scaled dot-product attention (Vaswani et al. 2017) of one head on one sequence of a
/// recording, for queries begin <= i < end of the sequence and all of its T keys: values [end -
/// begin, T], row-major and packed. No other memory is allocated for a head and a sequence. Blocks
/// may be evaluated in parallel; results for a query may differ by rounding between block sizes.
/// Weights and scores that are stored are returned unchanged. If only scores are, the weights are
/// their softmax, with the layer's window and sinks.
///
/// AllHeads gives the mean of the quantity over the heads of the layer. AllSequences gives the mean
/// over the sequences that have both positions, with T = AttentionLength; rows of Weights and
/// Rollout are then divided by their sum, or where there are sinks made to add up to the mean of
/// their sums in the sequences. Either allocates up to as much memory again.
///
/// Rollout multiplies the rows backwards through the layers, so no layer is ever stored. It costs
/// the weights of all heads of the layers f ... l-1, whatever the number of rows, and (end - begin)
/// (l - f) T^2 multiplications, a third of that for all rows of a causal mask: ask for many rows at
/// once, by EvaluateAttentionRows. It allocates as much memory again and 512 rows.
///
/// `layer` is the index of the layer in the model. Throws OptionError if the recording does not
/// have the sequence, layer, head or query, or what the quantity is computed from (queries and
/// keys, value norms, all layers in between for Rollout), and for AllSequences and Rollout of cross
/// attention; FileError if the file that the head is mapped from was truncated or changed. An empty
/// block (begin = end) is checked in the same way; `values` is then not used.
void EvaluateAttention(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  float* values);

/// The rows of an attention map: those of queries begin <= i < end.
struct AttentionRows
{
  std::int64_t sequence = 0;
  std::int64_t layer = 0;
  std::int64_t head = 0;
  AttentionQuantity quantity = AttentionQuantity::Weights;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The same on up to ThreadCount(threads) threads; values do not depend on their number.
void EvaluateAttentionRows(const Recording& recording, const AttentionRows& rows, float* values,
  int threads, const Progress& progress = {});

/// Takes rows of queries begin <= i < end: values [end - begin, T], packed, which last no longer
/// than the call.
using UseRows = std::function<void(std::int64_t begin, std::int64_t end, const float* values)>;

/// The same, but hands the rows to `use` in blocks, each as soon as it is there and while it is in
/// the processor's cache: each row once, and several blocks at the same time on their threads. Up
/// to QueriesPerBlock rows per thread are in memory; all for Rollout.
void EvaluateAttentionBlocks(const Recording& recording, const AttentionRows& rows,
  const UseRows& use, int threads, const Progress& progress = {});

}
