#include "QueryKeyContrast.h"

#include "Base/Error.h"
#include "Base/ParallelProgress.h"
#include "CircuitFactors.h"
#include "Files/MappedFile.h"
#include "Numerics/AttentionKernels.h"
#include "Numerics/MatrixProduct.h"
#include "Recording/RecordedAttention.h"
#include "Weights/ThinSvd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace atlas
{
namespace
{

using RowMatrix =
  Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// Queries whose outer products are summed at a time.
constexpr std::int64_t QueriesPerSum = 256;

/// The tokens of a sequence.
struct SequencePairs
{
  std::int64_t sequence = 0;
  std::int64_t first = 0;          ///< row of the recording
  KeyRange queries;                ///< their positions
  std::int64_t keys = 0;           ///< the first ones have keys
  std::vector<std::int64_t> group; ///< of each position, numbered from 0; empty: by distance
  std::int64_t groups = 0;

  std::int64_t QueryCount() const { return this->queries.end - this->queries.begin; }
};

SequencePairs PairsOf(
  const Recording& recording, std::int64_t sequence, const std::vector<std::int64_t>& group)
{
  SequencePairs pairs;
  pairs.sequence = sequence;
  pairs.first = recording.sequenceOffsets[sequence];
  pairs.queries = QueryPositions(recording, sequence);
  pairs.keys = KeyPositions(recording, sequence).end;
  std::unordered_map<std::int64_t, std::int64_t> numbers;
  for (std::int64_t i = 0; i < pairs.queries.end && !group.empty(); ++i)
  {
    const std::int64_t next = numbers.size();
    pairs.group.push_back(numbers.emplace(group[pairs.first + i], next).first->second);
  }
  pairs.groups = static_cast<std::int64_t>(numbers.size());
  return pairs;
}

/// For each query of a sequence the sums of a quantity of keys, rows [keys, columns]: over those in
/// the set, and over all that make up a pair with it.
class KeySums
{
public:
  KeySums(const SequencePairs& pairs, const DoubleMatrix& keys, const HeadScores& allowed,
    const QueryKeyContrastOptions& options)
    : Pairs(pairs)
    , Keys(keys)
    , Allowed(allowed)
    , Options(options)
    , Total(Eigen::RowVectorXd::Zero(keys.cols()))
    , OfGroup(DoubleMatrix::Zero(pairs.groups, keys.cols()))
  {
  }

  /// The sums of the query at position i. Call for each, in their order.
  template<class Row>
  void Evaluate(std::int64_t i, Row&& inSet, Row&& all)
  {
    if (this->Allowed.patchWindow > 0)
    {
      this->SumWindow(i);
    }
    for (const std::int64_t end = this->Allowed.KeyCount(i + 1); this->Summed.end < end;
      ++this->Summed.end)
    {
      this->AddKey(this->Summed.end, 1);
    }
    for (const std::int64_t first = this->Allowed.FirstKey(i); this->Summed.begin < first;
      ++this->Summed.begin)
    {
      this->AddKey(this->Summed.begin, -1);
    }
    const bool leavesSelf =
      !this->Options.includesSelf && this->Allowed.mask != AttentionMask::Cross;
    all = this->Total;
    if (leavesSelf)
    {
      all -= this->Keys.row(i);
    }
    if (!this->Pairs.group.empty())
    {
      inSet = this->OfGroup.row(this->Pairs.group[i]);
      if (leavesSelf)
      {
        inSet -= this->Keys.row(i);
      }
      return;
    }
    inSet.setZero();
    const std::int64_t distance = this->Options.distance;
    if (distance == 0 && leavesSelf)
    {
      return;
    }
    const auto add = [&](std::int64_t j)
    {
      if (this->Summed.Has(j) && this->Allowed.SharesWindow(i, j))
      {
        inSet += this->Keys.row(j);
      }
    };
    add(i - distance);
    if (distance > 0)
    {
      add(i + distance);
    }
  }

private:
  const SequencePairs& Pairs;
  const DoubleMatrix& Keys;
  const HeadScores& Allowed;
  const QueryKeyContrastOptions& Options;
  KeyRange Summed; ///< the keys that the last query may attend to
  Eigen::RowVectorXd Total;
  DoubleMatrix OfGroup;

  /// Sums the keys in the window of patches of the query at position i, which follow in no order.
  void SumWindow(std::int64_t i)
  {
    this->Total.setZero();
    this->OfGroup.setZero();
    this->Summed = { this->Allowed.FirstKey(i), this->Allowed.KeyCount(i + 1) };
    for (std::int64_t j = this->Summed.begin; j < this->Summed.end; ++j)
    {
      if (this->Allowed.SharesWindow(i, j))
      {
        this->AddKey(j, 1);
      }
    }
  }

  /// Adds a key, or with -1 takes it away.
  void AddKey(std::int64_t j, double sign)
  {
    this->Total += sign * this->Keys.row(j);
    if (!this->Pairs.group.empty())
    {
      this->OfGroup.row(this->Pairs.group[j]) += sign * this->Keys.row(j);
    }
  }
};

/// Sums of q k^T over pairs.
struct Sums
{
  DoubleMatrix inSet;
  DoubleMatrix all;
};

DoubleMatrix RowsOf(const SharedMatrix& matrix, std::int64_t first, std::int64_t count)
{
  return RowMatrix(matrix.Row(first), count, matrix.columns).cast<double>();
}

void AddPairs(const RecordedHead& head, const SequencePairs& pairs, const HeadScores& allowed,
  const QueryKeyContrastOptions& options, Sums& sums)
{
  const std::int64_t length = pairs.QueryCount();
  const std::int64_t first = pairs.queries.begin;
  const DoubleMatrix queries = RowsOf(head.query, pairs.first + first, length);
  const DoubleMatrix keys = RowsOf(head.key, pairs.first, pairs.keys);
  KeySums keySums(pairs, keys, allowed, options);
  const std::int64_t dimension = queries.cols();
  const std::int64_t rows = std::min(QueriesPerSum, length);
  DoubleMatrix inSet(rows, dimension);
  DoubleMatrix all(rows, dimension);
  for (std::int64_t begin = 0; begin < length; begin += rows)
  {
    const std::int64_t count = std::min(rows, length - begin);
    for (std::int64_t i = 0; i < count; ++i)
    {
      keySums.Evaluate(first + begin + i, inSet.row(i), all.row(i));
    }
    const DoubleMatrixBlock block = { queries.data() + begin * dimension, dimension, true };
    for (const auto& [from, to] : { std::pair(&inSet, &sums.inSet), std::pair(&all, &sums.all) })
    {
      MultiplyMatrices(dimension, dimension, count, 1, block, { from->data(), dimension },
        to->data(), dimension, true);
    }
  }
}

/// How many pairs are in the set, and how many are not.
struct PairCounts
{
  std::int64_t pairs = 0;
  std::int64_t others = 0;
};

/// The numbers of pairs, by the same sums of ones.
PairCounts CountPairs(
  const SequencePairs& pairs, const HeadScores& allowed, const QueryKeyContrastOptions& options)
{
  const DoubleMatrix ones = DoubleMatrix::Ones(pairs.keys, 1);
  KeySums sums(pairs, ones, allowed, options);
  DoubleMatrix found(2, 1);
  PairCounts counts;
  for (std::int64_t i = pairs.queries.begin; i < pairs.queries.end; ++i)
  {
    sums.Evaluate(i, found.row(0), found.row(1));
    counts.pairs += std::llround(found(0, 0));
    counts.others += std::llround(found(1, 0) - found(0, 0));
  }
  return counts;
}

/// The decomposition, with signs as of refactored weights.
void Decompose(HeadContrast& contrast)
{
  const ThinSvd svd = DecomposeThin(contrast.difference);
  const Eigen::VectorXd& values = svd.values;
  contrast.singularValues.assign(values.data(), values.data() + values.size());
  contrast.queryDirections = svd.u;
  contrast.keyDirections = svd.v;
  for (Eigen::Index c = 0; c < values.size(); ++c)
  {
    Eigen::Index largest = 0;
    contrast.queryDirections.col(c).cwiseAbs().maxCoeff(&largest);
    if (contrast.queryDirections(largest, c) < 0)
    {
      contrast.queryDirections.col(c) *= -1;
      contrast.keyDirections.col(c) *= -1;
    }
  }
}

std::vector<HeadPlace> HeadsOf(const Recording& recording, const QueryKeyContrastOptions& options)
{
  std::vector<HeadPlace> heads;
  if (options.layer >= 0)
  {
    FindLayer(recording, options.layer);
  }
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      const auto head = static_cast<std::int32_t>(h);
      if ((options.layer < 0 || options.layer == layer.index) &&
          (options.head < 0 || options.head == head))
      {
        heads.push_back({ layer.index, head });
      }
    }
  }
  if (heads.empty() && !recording.layers.empty())
  {
    FindHead(recording, recording.layers.front().index, options.head); // throws
  }
  return heads;
}

void RequireQueriesAndKeys(const Recording& recording, const std::vector<HeadPlace>& heads)
{
  for (const HeadPlace& place : heads)
  {
    const RecordedHead& head = FindHead(recording, place.layer, place.head);
    ThrowIf<OptionError>(!head.query.IsRecorded() || !head.key.IsRecorded(), "layer ", place.layer,
      ", head ", place.head,
      ": expected queries and keys, found no queries and keys, which were not recorded.");
    RequireIntact(head.query.values.get());
    RequireIntact(head.key.values.get());
  }
}

/// What limits the keys of a layer: its window, chunk and window of patches.
using Limits = std::array<std::int64_t, 3>;

Limits LimitsOf(const RecordedLayer& layer)
{
  return { layer.window, layer.chunk, layer.patchWindow };
}

void RequirePairs(const PairCounts& counts)
{
  const auto require = [](std::int64_t count, const std::string& which)
  {
    ThrowIf<OptionError>(count == 0, "By: expected pairs of a query and a key ", which,
      ", found none in the chosen sequences.");
  };
  require(counts.pairs, "in the set (of equal values, or at the distance)");
  require(counts.others, "that are not in the set");
}

/// The numbers of pairs by the limits of the layers of some heads, each of which needs some.
std::map<Limits, PairCounts> CountPairsOf(const Recording& recording,
  const std::vector<HeadPlace>& heads, const std::vector<SequencePairs>& sequences,
  const QueryKeyContrastOptions& options)
{
  std::map<Limits, PairCounts> counts;
  for (const HeadPlace& place : heads)
  {
    const RecordedLayer& layer = FindLayer(recording, place.layer);
    const auto [found, isNew] = counts.emplace(LimitsOf(layer), PairCounts());
    for (std::size_t s = 0; s < sequences.size() && isNew; ++s)
    {
      const PairCounts of =
        CountPairs(sequences[s], MaskOf(recording, sequences[s].sequence, layer), options);
      found->second.pairs += of.pairs;
      found->second.others += of.others;
    }
    RequirePairs(found->second);
  }
  return counts;
}

HeadContrast Evaluate(const Recording& recording, const HeadPlace& place,
  const std::vector<SequencePairs>& sequences, const PairCounts& counts,
  const QueryKeyContrastOptions& options)
{
  const RecordedHead& head = FindHead(recording, place.layer, place.head);
  const RecordedLayer& layer = FindLayer(recording, place.layer);
  const std::int64_t dimension = head.query.columns;
  Sums sums{ DoubleMatrix::Zero(dimension, dimension), DoubleMatrix::Zero(dimension, dimension) };
  for (const SequencePairs& pairs : sequences)
  {
    if (pairs.QueryCount() > 0 && pairs.keys > 0)
    {
      AddPairs(head, pairs, MaskOf(recording, pairs.sequence, layer), options, sums);
    }
  }
  ThrowIf<ModelError>(!sums.all.allFinite() || !sums.inSet.allFinite(), "layer ", place.layer,
    ", head ", place.head, ": expected finite queries and keys, found NaN or infinity.");
  HeadContrast contrast;
  contrast.place = place;
  contrast.difference = sums.inSet / static_cast<double>(counts.pairs) -
                        (sums.all - sums.inSet) / static_cast<double>(counts.others);
  contrast.scoreDifference = layer.scoreScale * contrast.difference.trace();
  Decompose(contrast);
  return contrast;
}

}

QueryKeyContrast FindQueryKeyContrast(
  const Recording& recording, const QueryKeyContrastOptions& options)
{
  RequireIndex("Sequence", options.sequence, recording.SequenceCount(), true);
  ThrowIf<OptionError>(recording.mask == AttentionMask::Cross && options.group.empty(),
    "By: expected pairs of equal values, found those at a distance; the queries and keys of "
    "cross attention are of two texts.");
  std::vector<SequencePairs> sequences;
  const std::int64_t first = std::max<std::int64_t>(options.sequence, 0);
  const std::int64_t last = options.sequence < 0 ? recording.SequenceCount() : first + 1;
  for (std::int64_t s = first; s < last; ++s)
  {
    sequences.push_back(PairsOf(recording, s, options.group));
  }
  const std::vector<HeadPlace> heads = HeadsOf(recording, options);
  RequireQueriesAndKeys(recording, heads);
  const std::map<Limits, PairCounts> counts = CountPairsOf(recording, heads, sequences, options);
  QueryKeyContrast found;
  for (const auto& [limits, of] : counts)
  {
    found.pairs = std::max(found.pairs, of.pairs);
    found.others = std::max(found.others, of.others);
  }
  const SingleThreadedBlas blas;
  found.heads.resize(heads.size());
  ParallelFor(heads.size(), options.threads, options.progress,
    [&](std::int64_t i)
    {
      const Limits limits = LimitsOf(FindLayer(recording, heads[i].layer));
      found.heads[i] = Evaluate(recording, heads[i], sequences, counts.at(limits), options);
    });
  return found;
}

std::vector<float> ProjectOnContrast(const Recording& recording, const HeadContrast& contrast,
  const std::vector<std::int64_t>& queries, const std::vector<std::int64_t>& keys)
{
  const RecordedHead& head = FindHead(recording, contrast.place.layer, contrast.place.head);
  std::vector<float> projected;
  projected.reserve(3 * (queries.size() + keys.size()));
  for (const auto& [matrix, directions, rows] :
    { std::tuple(&head.query, &contrast.queryDirections, &queries),
      std::tuple(&head.key, &contrast.keyDirections, &keys) })
  {
    for (const std::int64_t row : *rows)
    {
      const Eigen::RowVectorXd vector =
        RowMatrix(matrix->Row(row), 1, matrix->columns).cast<double>();
      for (Eigen::Index r = 0; r < 3; ++r)
      {
        projected.push_back(
          r < directions->cols() ? static_cast<float>(vector.dot(directions->col(r))) : 0.F);
      }
    }
  }
  return projected;
}

}
