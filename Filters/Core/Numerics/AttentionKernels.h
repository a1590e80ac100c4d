#pragma once

#include "Base/AttentionKinds.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <Eigen/Core>

namespace atlas
{

/// Softmax in place, in double precision, for the logits [N] of small models, N at least 1. Returns
/// the log probability of `target`, 0 <= target < N.
double Softmax(Eigen::VectorXd& logits, Eigen::Index target);

/// What ALiBi adds to scores of the key at a position: slope * position (Press et al. 2022). With a
/// unit u > 0, slope / u, the position and their product are rounded to BF16, and it is u times
/// this product (Falcon).
double AlibiBias(double slope, double unit, std::int64_t position);

/// Queries and keys of one head on one sequence, and what turns them into attention.
struct HeadScores
{
  const float* query = nullptr; ///< [length - firstQuery, dimension]
  const float* key = nullptr;   ///< [length, dimension]
  std::int64_t length = 0;      ///< tokens of the sequence
  std::int64_t dimension = 0;   ///< d_head
  float scale = 1;
  float slope = 0;     ///< of ALiBi
  float slopeUnit = 0; ///< see AlibiBias
  AttentionMask mask = AttentionMask::Causal;
  float cap = 0;           ///< c > 0: scores are c tanh(scale * query . key / c) + bias (Gemma 2)
  std::int64_t window = 0; ///< w > 0: query i may attend to keys j > i - w only; without a mask
                           ///< also to j < i + w only (Warner et al. 2024: ModernBERT)
  std::optional<float> sink =
    std::nullopt; ///< a further logit in the softmax, whose weight is dropped (gpt-oss)
  std::int64_t firstQuery = 0;         ///< position of the first row of `query`
  std::int64_t source = 0;             ///< mask Cross: tokens of the source, the first ones
  const float* distanceBias = nullptr; ///< added to scores, with 2 reach + 1 values: points to that
                                       ///< of key - query = 0; those beyond have that of the end
                                       ///< (T5, Raffel et al. 2020). nullptr: none
  std::int64_t reach = 0;
  std::int64_t chunk = 0;       ///< c > 0: query i may attend to keys j >= c floor(i / c) only
                                ///< (Llama 4)
  std::int64_t patchWindow = 0; ///< w > 0, of images: a query may attend to keys whose row / w and
                                ///< column / w, rounded down, are its own (Bai et al. 2025:
                                ///< Qwen2.5-VL)
  const std::int32_t* patchRow = nullptr;    ///< with a window or patchBias: of each token of the
                                             ///< sequence; -1 for a class token
  const std::int32_t* patchColumn = nullptr; ///< likewise
  const float* patchBias = nullptr; ///< added to scores, of images of R x C patches: (2 R - 1)(2 C
                                    ///< - 1) values by rows, then columns from key to query, then
                                    ///< those of query, of key and of both being the class token
                                    ///< (BEiT, Bao et al. 2022). nullptr: none
  std::int64_t patchRows = 0;       ///< R
  std::int64_t patchColumns = 0;    ///< C
  const float* positionKey = nullptr;   ///< of distances query - key from -positionReach to
                                        ///< positionReach, [dimension] each: scale * query .
                                        ///< positionKey is added to scores. Points to that of 0;
                                        ///< those beyond have that of the end (DeBERTa, He et al.
                                        ///< 2021). nullptr: none
  const float* positionQuery = nullptr; ///< likewise, for scale * key . positionQuery
  std::int64_t positionReach = 0;
  const std::int32_t* keyEnds = nullptr; ///< mask Causal: of each token of the sequence, how many
                                         ///< of the first keys it may attend to, also those of its
                                         ///< picture behind it (Gemma Team 2025: Gemma 3). nullptr:
                                         ///< those at its position and before

  /// Whether the tokens at positions i and j are in the same window of patches, or there are none.
  bool SharesWindow(std::int64_t i, std::int64_t j) const
  {
    const auto number = [this](std::int32_t place)
    { return place < 0 ? -1 : place / this->patchWindow; };
    return this->patchWindow == 0 ||
           (number(this->patchRow[i]) == number(this->patchRow[j]) &&
             number(this->patchColumn[i]) == number(this->patchColumn[j]));
  }

  /// The place in patchBias of the tokens at positions i and j.
  std::int64_t PatchPlace(std::int64_t i, std::int64_t j) const
  {
    const std::int64_t columns = 2 * this->patchColumns - 1;
    const std::int64_t patches = (2 * this->patchRows - 1) * columns;
    if (this->patchRow[i] < 0 || this->patchRow[j] < 0)
    {
      return patches + (this->patchRow[i] >= 0 ? 1 : this->patchRow[j] >= 0 ? 0 : 2);
    }
    return (this->patchRow[i] - this->patchRow[j] + this->patchRows - 1) * columns +
           this->patchColumn[i] - this->patchColumn[j] + this->patchColumns - 1;
  }

  /// scale * query i . the key of the distance to key j, 0 without.
  float ContentToPosition(std::int64_t i, std::int64_t j) const;

  /// scale * key j . the query of the distance from query i, 0 without.
  float PositionToContent(std::int64_t i, std::int64_t j) const;

  /// The number of leading keys that contain all those which queries before `end` may attend to.
  std::int64_t KeyCount(std::int64_t end) const
  {
    switch (this->mask)
    {
      case AttentionMask::Causal:
        return this->keyEnds == nullptr || end < 1 ? end : this->keyEnds[end - 1];
      case AttentionMask::Cross:
        return end > this->source ? this->source : 0;
      default:
        return this->window > 0 && this->window <= this->length - end ? end + this->window - 1
                                                                      : this->length;
    }
  }
  /// The first key that queries from `begin` on may attend to.
  std::int64_t FirstKey(std::int64_t begin) const
  {
    const std::int64_t inWindow = this->window > 0 ? begin - this->window + 1 : 0;
    const std::int64_t inChunk = this->chunk > 0 ? begin / this->chunk * this->chunk : 0;
    return std::max({ inWindow, inChunk, std::int64_t{ 0 } });
  }
};

/// The part scale * query . key of the scores of queries begin <= i < end with the first `keys`
/// keys, before the cap and the mask: values [end - begin, keys], packed.
void EvaluateContent(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// Each of `rows` rows of `keys` values x becomes cap * tanh(x / cap), if there is a cap (Gemma
/// Team, "Gemma 2", 2024, section 2).
void CapScores(const HeadScores& head, std::int64_t rows, std::int64_t keys, float* values);

/// Adds slope * position of the key, the bias of the distance or of the patches, and the products
/// with vectors of distances, to rows of queries begin <= i < end, of `keys` values each.
void AddBias(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// Turns scores [end - begin, keys] of queries begin <= i < end, packed, into attention in place:
/// the softmax over the keys that the mask and the window allow, 0 for the others (Vaswani et al.,
/// "Attention is all you need", 2017). With a sink s the weights are exp(x_j) / (exp(s) + sum_k
/// exp(x_k)), which add up to less than 1 (OpenAI, "gpt-oss-120b & gpt-oss-20b", 2025). Of `head`,
/// only length, mask, source, windows, chunk and sink are read.
void NormalizeScores(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// The attention of queries begin <= i < end to the first `keys` keys, at least KeyCount(end):
/// values [end - begin, keys], packed; 0 where the mask or a window forbids it. Scores of keys
/// before FirstKey(begin) are not computed.
void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

}
