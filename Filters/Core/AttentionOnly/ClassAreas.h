#pragma once

#include "FieldEvaluation.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How often each class is predicted at points of the torus, and with what probability. Sums of
/// integers, so that they do not depend on the order in which points are counted.
struct ClassCounts
{
  std::vector<std::int64_t> points;      ///< [N]
  std::vector<std::int64_t> probability; ///< [N]: sum of probabilities, each times 2^30 and rounded

  void Add(const ClassCounts& other);

  /// The share of a class in all points counted, 0 to 1: its share of the torus.
  double Area(std::size_t predicted) const;

  /// The mean probability of a class where it is predicted; 0 where it never is.
  double MeanProbability(std::size_t predicted) const;
};

/// Evaluates a model at the middles of columns x rows equal rectangles of the torus and counts the
/// classes without keeping the points: a chart of any size takes the memory of a row.
class ClassCounter
{
public:
  /// Throws OptionError if there is no column or row or there are more than 2^33 points, and what
  /// FieldEvaluator throws.
  ClassCounter(const AttentionOnlyModel& model, const EvaluationOptions& options,
    std::int64_t columns, std::int64_t rows);

  /// The counts of rows begin <= row < end. May run concurrently.
  ClassCounts Count(std::int64_t begin, std::int64_t end) const;

private:
  FieldEvaluator Evaluator;
  std::size_t Classes;
  std::int64_t Columns;
  std::int64_t Rows;
};

/// The pairs of tokens, class by class.
struct PairCounts
{
  std::vector<int> predicted; ///< [N]: for which it is predicted
  std::vector<int> targets;   ///< [N]: whose true next token it is; 0 if the model tells none
  std::vector<int> correct;   ///< [N]: those of the targets that are predicted

  /// The share of all pairs that are predicted right, 0 to 1.
  double Accuracy() const;
};

/// Evaluates a model at all pairs of its tokens, in double. Throws OptionError as CheckOptions
/// does.
PairCounts CountPairs(const AttentionOnlyModel& model, const EvaluationOptions& options);

/// The middle of part i of n equal ones of [-pi, pi].
double MiddleAngle(std::int64_t i, std::int64_t n);

/// The middles of all n parts.
std::vector<double> MiddleAngles(std::int64_t n);

}
