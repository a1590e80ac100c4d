#pragma once

#include "FieldEvaluation.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How often each class is predicted over the torus, and with what probability. The sums are
/// integers, so they do not depend on the order in which points are counted.
struct ClassCounts
{
  std::vector<std::int64_t> points;      ///< [N]
  std::vector<std::int64_t> probability; ///< [N]: sum of the probabilities, each multiplied by 2^30
                                         ///< and rounded

  void Add(const ClassCounts& other);

  /// The fraction of all counted points at which this class is predicted, 0 to 1: its fraction of
  /// the torus.
  double Area(std::size_t predicted) const;

  /// The mean probability of a class over the points at which it is predicted; 0 if there are none.
  double MeanProbability(std::size_t predicted) const;
};

/// Evaluates a model at the centers of columns x rows equal rectangles of the torus and counts the
/// predicted classes. Points are not kept, so the memory use is that of one row.
class ClassCounter
{
public:
  /// Throws OptionError if `columns` or `rows` is less than 1 or there are more than 2^33 points,
  /// and whatever the constructor of FieldEvaluator throws.
  ClassCounter(const AttentionOnlyModel& model, const EvaluationOptions& options,
    std::int64_t columns, std::int64_t rows);

  /// Returns the counts of rows begin <= row < end. May be called concurrently.
  ClassCounts Count(std::int64_t begin, std::int64_t end) const;

private:
  FieldEvaluator Evaluator;
  std::size_t Classes;
  std::int64_t Columns;
  std::int64_t Rows;
};

/// Counts of token pairs per class.
struct PairCounts
{
  std::vector<int> predicted; ///< [N]: pairs for which the class is predicted
  std::vector<int> targets;   ///< [N]: pairs whose true next token it is; 0 if the model has no
                              ///< targets
  std::vector<int> correct;   ///< [N]: pairs for which it is predicted and is the true next token

  /// The fraction of all pairs that are predicted correctly, 0 to 1.
  double Accuracy() const;
};

/// Evaluates a model at all pairs of its tokens in double precision. Throws OptionError as
/// CheckOptions does.
PairCounts CountPairs(const AttentionOnlyModel& model, const EvaluationOptions& options);

/// The midpoint of interval i when [-pi, pi] is divided into n equal intervals, in radians.
double MiddleAngle(std::int64_t i, std::int64_t n);

/// The midpoints of all n intervals.
std::vector<double> MiddleAngles(std::int64_t n);

}
