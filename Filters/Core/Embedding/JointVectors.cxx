#include "JointVectors.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Recording/RecordedAttention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>

#include <Eigen/Core>

namespace atlas
{
namespace
{

using Row = Eigen::Map<Eigen::VectorXf>;

/// Copies rows of a matrix. Throws ModelError if a number is not finite, or if all rows are equal.
void CopyRows(const SharedMatrix& matrix, const std::vector<std::int64_t>& rows,
  const std::string& what, float* values)
{
  float* next = values;
  for (const std::int64_t row : rows)
  {
    next = std::copy(matrix.Row(row), matrix.Row(row) + matrix.columns, next);
  }
  RequireIntact(matrix.values.get());
  const auto bad = std::find_if(values, next, [](float value) { return !std::isfinite(value); });
  if (bad != next)
  {
    throw ModelError(what, " of token ", rows[(bad - values) / matrix.columns],
      ": expected finite numbers, found ", *bad, ".");
  }
  ThrowIf<GeometryError>(
    std::equal(values, next - matrix.columns, values + matrix.columns), // each like the next one
    what, ": expected at least two that differ, found ", rows.size(), " equal ones.");
}

/// The mean of rows [begin, begin + count).
Eigen::VectorXd MeanOf(const JointVectors& joint, std::int64_t begin, std::int64_t count)
{
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(joint.dimension);
  const PointView view = joint.View();
  for (std::int64_t i = begin; i < begin + count; ++i)
  {
    sum += Eigen::Map<const Eigen::VectorXf>(view.Row(i), joint.dimension).cast<double>();
  }
  return sum / static_cast<double>(count);
}

std::vector<double> NormsOf(const JointVectors& joint)
{
  const PointView view = joint.View();
  std::vector<double> norms;
  norms.reserve(view.count);
  for (std::int64_t i = 0; i < view.count; ++i)
  {
    norms.push_back(
      Eigen::Map<const Eigen::VectorXf>(view.Row(i), joint.dimension).cast<double>().norm());
  }
  return norms;
}

double MeanOf(const double* values, std::int64_t count)
{
  return std::accumulate(values, values + count, 0.) / static_cast<double>(count);
}

void Translate(JointVectors& joint)
{
  const Eigen::VectorXd shift =
    MeanOf(joint, 0, joint.queries) - MeanOf(joint, joint.queries, joint.keys);
  joint.shift.assign(shift.begin(), shift.end());
  for (std::int64_t i = joint.queries; i < joint.queries + joint.keys; ++i)
  {
    Row key(joint.values.data() + i * joint.dimension, joint.dimension);
    key = (key.cast<double>() + shift).cast<float>();
  }
}

/// Keeps `sample` of the rows, drawn at random; all if it is 0.
void DrawSample(std::int64_t sample, std::mt19937_64& generator, std::vector<std::int64_t>& rows)
{
  if (sample > 0 && sample < static_cast<std::int64_t>(rows.size()))
  {
    for (std::size_t i = 0; i < ToIndex(sample); ++i) // Fisher and Yates
    {
      std::swap(rows[i], rows[i + generator() % (rows.size() - i)]);
    }
    rows.resize(sample);
    std::sort(rows.begin(), rows.end());
  }
}

/// The rows of a sequence, or with -1 of all: of its queries, or of its keys.
std::vector<std::int64_t> RowsOf(const Recording& recording, std::int64_t sequence,
  KeyRange (*positions)(const Recording&, std::int64_t))
{
  const std::int64_t first = std::max<std::int64_t>(sequence, 0);
  const std::int64_t last = sequence < 0 ? recording.SequenceCount() : first + 1;
  std::vector<std::int64_t> rows;
  for (std::int64_t s = first; s < last; ++s)
  {
    const KeyRange range = positions(recording, s);
    const std::size_t count = rows.size();
    rows.resize(count + ToIndex(range.end - range.begin));
    std::iota(rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end(),
      recording.sequenceOffsets[s] + range.begin);
  }
  return rows;
}

}

std::vector<std::int64_t> JointRows::All() const
{
  std::vector<std::int64_t> all = this->queries;
  all.insert(all.end(), this->keys.begin(), this->keys.end());
  return all;
}

const RecordedHead& HeadWithKeys(const Recording& recording, std::int64_t layer, std::int64_t h)
{
  const RecordedHead& head = FindHead(recording, layer, h);
  ThrowIf<OptionError>(!head.query.IsRecorded() || !head.key.IsRecorded(),
    "the recording has no queries and keys, which a joint embedding needs.");
  return head;
}

JointRows ChooseTokens(const Recording& recording, const TokenChoice& choice)
{
  const std::int64_t sequences = recording.SequenceCount();
  ThrowIf<OptionError>(choice.sequence < -1 || choice.sequence >= sequences,
    "expected a sequence from 0 to ", sequences - 1, ", or -1 for all, found ", choice.sequence,
    ".");
  ThrowIf<OptionError>(choice.sample < 0, "expected a sample of 0 tokens, for all, or more, found ",
    choice.sample, ".");
  const bool isCross = recording.mask == AttentionMask::Cross;
  std::mt19937_64 generator(choice.seed);
  JointRows rows;
  rows.queries = RowsOf(recording, choice.sequence, QueryPositions);
  DrawSample(choice.sample, generator, rows.queries);
  rows.keys = isCross ? RowsOf(recording, choice.sequence, KeyPositions) : rows.queries;
  if (isCross)
  {
    DrawSample(choice.sample, generator, rows.keys);
  }
  ThrowIf<OptionError>(rows.queries.size() < 2 || rows.keys.size() < 2,
    "a joint embedding: expected at least 2 tokens",
    isCross ? Concat(" of each text, found ", rows.queries.size(), " of the target and ",
                rows.keys.size(), " of the source.")
            : Concat(", found ", rows.queries.size(), "."));
  return rows;
}

double JointVectors::QueryNorm() const
{
  return MeanOf(this->norms.data(), this->queries);
}

double JointVectors::KeyNorm() const
{
  return MeanOf(this->norms.data() + this->queries, this->keys);
}

JointVectors JoinQueriesAndKeys(const Recording& recording, std::int64_t layer, std::int64_t h,
  const JointRows& rows, bool translate)
{
  const RecordedHead& head = HeadWithKeys(recording, layer, h);
  const std::string name = Concat("layer ", layer, ", head ", h, ", ");
  JointVectors joint;
  joint.queries = static_cast<std::int64_t>(rows.queries.size());
  joint.keys = static_cast<std::int64_t>(rows.keys.size());
  joint.dimension = head.query.columns;
  joint.values.resize(ToIndex(rows.Points() * joint.dimension));
  joint.shift.resize(joint.dimension);
  CopyRows(head.query, rows.queries, name + "queries", joint.values.data());
  CopyRows(
    head.key, rows.keys, name + "keys", joint.values.data() + joint.queries * joint.dimension);
  joint.norms = NormsOf(joint);
  if (translate)
  {
    Translate(joint);
  }
  return joint;
}

double NormScale(const JointVectors& joint)
{
  const std::vector<double> norms = NormsOf(joint);
  const double query = MeanOf(norms.data(), joint.queries);
  const double key = MeanOf(norms.data() + joint.queries, joint.keys);
  return query > 0 && key > 0 ? std::sqrt(query / key) : 1;
}

void ScaleJointVectors(double scale, JointVectors& joint)
{
  const std::int64_t begin = joint.queries * joint.dimension;
  Row queries(joint.values.data(), begin);
  Row keys(joint.values.data() + begin, joint.keys * joint.dimension);
  queries = (queries.cast<double>() / scale).cast<float>();
  keys = (keys.cast<double>() * scale).cast<float>();
}

}
