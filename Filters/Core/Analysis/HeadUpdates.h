#pragma once

#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// What a vector u that is added to the residual stream x does to it (Claus, "Attention Focus
/// Plots"). Both are 0 where x is 0, and the orientation also where u is.
struct StreamUpdate
{
  float magnitude = 0;   ///< |u| / |x|
  float orientation = 0; ///< u . x / (|u| |x|), the cosine of their angle, -1 to 1
};

/// The same of a head on one token.
struct HeadUpdate
{
  StreamUpdate output;        ///< u = z W_O^h, the head's output
  float contextMagnitude = 0; ///< |z| / |x| of the mixed values z = sum_j a_ij v_j; 0 unless values
                              ///< and attention are known
};

/// Whether the head's values are recorded, and queries and keys or attention.
bool HasContext(const RecordedHead& head);

/// Measures the updates of tokens begin <= i < end of a sequence: `updates` [end - begin]; x is the
/// residual stream before the layer. `work` is working memory, which may be used again. Throws
/// OptionError if the recording does not have the place, the head's outputs or the residual
/// stream, and FileError as EvaluateAttention.
void MeasureUpdates(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, std::int64_t begin, std::int64_t end, std::vector<float>& work,
  HeadUpdate* updates);

/// The output bias b_O [d_model] of the attention in a layer; zeros if the model has none.
std::vector<float> OutputBias(const Transformer& model, std::int64_t layer);

/// Measures what all heads of a layer together add to tokens begin <= i < end of the recording: u =
/// sum_h u_h + b_O. `outputBias` [d_model], `updates` [end - begin]. Throws as MeasureUpdates.
void MeasureLayerUpdates(const Recording& recording, std::int64_t layer,
  const std::vector<float>& outputBias, std::int64_t begin, std::int64_t end,
  StreamUpdate* updates);

/// Counts values in `bins` equal bins from `least` to `largest`: half open, the last one closed.
/// Values beyond are counted in the outer bins.
std::vector<std::int64_t> CountInBins(
  const std::vector<float>& values, double least, double largest, std::size_t bins);

}
