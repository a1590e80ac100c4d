#pragma once

#include "PointView.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

/// Queries and keys of one head in one space (Yeh et al. 2023, AttentionViz), where a small
/// distance means a large dot product.
namespace atlas
{

/// Which tokens of a recording take part.
struct TokenChoice
{
  std::int64_t sequence = -1; ///< those of this sequence; -1: of all
  std::int64_t sample = 0;    ///< the largest number, drawn at random without replacement; of cross
                              ///< attention of each text; 0: all
  std::uint64_t seed = 0;     ///< of the sample (std::mt19937_64)
};

/// The tokens whose queries and keys are joined: their rows in the recording, in ascending order.
/// Those of the target and of the source in cross attention; otherwise the same.
struct JointRows
{
  std::vector<std::int64_t> queries;
  std::vector<std::int64_t> keys;

  std::int64_t Points() const { return this->queries.size() + this->keys.size(); }

  /// The rows of the points of a head: those of the queries, then those of the keys.
  std::vector<std::int64_t> All() const;
};

/// The rows of the chosen tokens. Throws OptionError if there is no such sequence, if `sample` is
/// negative, or if there are fewer than 2 tokens, or in cross attention of one of the texts.
JointRows ChooseTokens(const Recording& recording, const TokenChoice& choice);

/// How queries are divided and keys multiplied by a scale c. The softmax does not change; distances
/// do, but for those by the cosine.
enum class KeyScaling
{
  None,      ///< c = 1
  Norms,     ///< c = sqrt(mean |q| / mean |k + shift|)
  Optimized, ///< the c in [1/16, 16] with the lowest correlation of dot product and distance
  Fixed      ///< a given c
};

/// The joint vectors of one head for m queries and n keys.
struct JointVectors
{
  std::int64_t queries = 0;   ///< m
  std::int64_t keys = 0;      ///< n
  std::int64_t dimension = 0; ///< d
  std::vector<float> values; ///< [m + n, d]: the queries, then keys + shift, in the order of tokens
  std::vector<double> shift; ///< [d]: mean of queries - mean of keys; zeros if not translated
  std::vector<double> norms; ///< [m + n]: |q| and |k|, before translation

  PointView View() const
  {
    return { this->values.data(), this->queries + this->keys, this->dimension };
  }

  /// The means of |q|, and of |k| before translation.
  double QueryNorm() const;
  double KeyNorm() const;
};

/// The head `head` of the layer with index `layer`. Throws OptionError if the recording does not
/// have it, or has no queries and keys.
const RecordedHead& HeadWithKeys(const Recording& recording, std::int64_t layer, std::int64_t head);

/// Joins queries and keys of these rows of the recording. `layer` is the index of the layer in the
/// model. Keys are moved so that their mean is that of the queries if `translate`, which adds the
/// same number to all scores of a query. Throws as HeadWithKeys does; ModelError, which names the
/// head, if a value is NaN or infinite, GeometryError likewise if all queries or all keys are
/// equal; and FileError if the file that the head is mapped from was truncated or changed.
JointVectors JoinQueriesAndKeys(const Recording& recording, std::int64_t layer, std::int64_t head,
  const JointRows& rows, bool translate);

/// sqrt(mean |q| / mean |k + shift|), the scale of KeyScaling::Norms; 1 if either is 0.
double NormScale(const JointVectors& joint);

/// Divides queries by `scale` and multiplies keys by it.
void ScaleJointVectors(double scale, JointVectors& joint);

}
