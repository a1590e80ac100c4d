#include "JointVectors.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"

#include <algorithm>
#include <cmath>
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
    const auto token = rows[(bad - values) / matrix.columns];
    throw ModelError(what + " of token " + std::to_string(token) +
                     ": expected finite numbers, found " + std::to_string(*bad) + ".");
  }
  if (std::equal(values, next - matrix.columns, values + matrix.columns)) // each like the next one
  {
    throw GeometryError(what + ": expected at least two that differ, found " +
                        std::to_string(rows.size()) + " equal ones.");
  }
}

/// The mean of rows [begin, begin + tokens).
Eigen::VectorXd MeanOf(const JointVectors& joint, std::int64_t begin)
{
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(joint.dimension);
  const PointView view = joint.View();
  for (std::int64_t i = begin; i < begin + joint.tokens; ++i)
  {
    sum += Eigen::Map<const Eigen::VectorXf>(view.Row(i), joint.dimension).cast<double>();
  }
  return sum / static_cast<double>(joint.tokens);
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
  const Eigen::VectorXd shift = MeanOf(joint, 0) - MeanOf(joint, joint.tokens);
  joint.shift.assign(shift.begin(), shift.end());
  for (std::int64_t i = joint.tokens; i < 2 * joint.tokens; ++i)
  {
    Row key(joint.values.data() + i * joint.dimension, joint.dimension);
    key = (key.cast<double>() + shift).cast<float>();
  }
}

}

const RecordedHead& HeadWithKeys(const Recording& recording, std::int64_t layer, std::int64_t h)
{
  const RecordedHead& head = FindHead(recording, layer, h);
  if (!head.query.IsRecorded() || !head.key.IsRecorded())
  {
    throw OptionError("the recording has no queries and keys, which a joint embedding needs.");
  }
  return head;
}

std::vector<std::int64_t> ChooseTokens(const Recording& recording, const TokenChoice& choice)
{
  const std::int64_t sequences = recording.SequenceCount();
  if (choice.sequence < -1 || choice.sequence >= sequences)
  {
    throw OptionError("expected a sequence from 0 to " + std::to_string(sequences - 1) +
                      ", or -1 for all, found " + std::to_string(choice.sequence) + ".");
  }
  if (choice.sample < 0)
  {
    throw OptionError("expected a sample of 0 tokens, for all, or more, found " +
                      std::to_string(choice.sample) + ".");
  }
  const bool isOne = choice.sequence >= 0;
  const std::int64_t begin = isOne ? recording.sequenceOffsets[choice.sequence] : 0;
  const std::int64_t end =
    isOne ? recording.sequenceOffsets[ToIndex(choice.sequence) + 1] : recording.tokens.Count();
  std::vector<std::int64_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), begin);
  if (choice.sample > 0 && choice.sample < end - begin)
  {
    std::mt19937_64 generator(choice.seed);
    for (std::size_t i = 0; i < ToIndex(choice.sample); ++i) // Fisher and Yates
    {
      std::swap(rows[i], rows[i + generator() % (rows.size() - i)]);
    }
    rows.resize(choice.sample);
    std::sort(rows.begin(), rows.end());
  }
  if (rows.size() < 2)
  {
    throw OptionError(
      "a joint embedding: expected at least 2 tokens, found " + std::to_string(rows.size()) + ".");
  }
  return rows;
}

double JointVectors::QueryNorm() const
{
  return MeanOf(this->norms.data(), this->tokens);
}

double JointVectors::KeyNorm() const
{
  return MeanOf(this->norms.data() + this->tokens, this->tokens);
}

JointVectors JoinQueriesAndKeys(const Recording& recording, std::int64_t layer, std::int64_t h,
  const std::vector<std::int64_t>& rows, bool translate)
{
  const RecordedHead& head = HeadWithKeys(recording, layer, h);
  const std::string name = "layer " + std::to_string(layer) + ", head " + std::to_string(h) + ", ";
  JointVectors joint;
  joint.tokens = static_cast<std::int64_t>(rows.size());
  joint.dimension = head.query.columns;
  joint.values.resize(2 * rows.size() * ToIndex(joint.dimension));
  joint.shift.resize(joint.dimension);
  CopyRows(head.query, rows, name + "queries", joint.values.data());
  CopyRows(head.key, rows, name + "keys", joint.values.data() + joint.tokens * joint.dimension);
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
  const double query = MeanOf(norms.data(), joint.tokens);
  const double key = MeanOf(norms.data() + joint.tokens, joint.tokens);
  return query > 0 && key > 0 ? std::sqrt(query / key) : 1;
}

void ScaleJointVectors(double scale, JointVectors& joint)
{
  const std::int64_t half = joint.tokens * joint.dimension;
  Row queries(joint.values.data(), half);
  Row keys(joint.values.data() + half, half);
  queries = (queries.cast<double>() / scale).cast<float>();
  keys = (keys.cast<double>() * scale).cast<float>();
}

}
