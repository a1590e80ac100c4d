#pragma once

#include "AttentionEvaluation.h"

#include <array>
#include <vector>

namespace atlas
{

/// Throws ModelError if the model has no targets (true next tokens), which an accuracy requires.
void RequireTargets(const AttentionOnlyModel& model);

/// The accuracy on token pairs, 0 to 1: `correct` as a fraction of all of them.
inline double PairAccuracy(Eigen::Index correct, Eigen::Index pairs)
{
  return static_cast<double>(correct) / static_cast<double>(pairs);
}

/// How many token pairs each head predicts correctly alone, and all heads together.
struct HeadAccuracies
{
  Eigen::Index pairs = 0;          ///< N^2
  std::vector<Eigen::Index> alone; ///< per head: pairs whose target is argmax W_U out_h
  Eigen::Index all = 0;            ///< pairs that the whole model predicts correctly
  Eigen::Index any = 0;            ///< pairs that at least one head alone predicts correctly

  /// `correct` as a fraction of all pairs, 0 to 1.
  double Share(Eigen::Index correct) const { return PairAccuracy(correct, this->pairs); }
};

/// Counts over all token pairs. `residual` applies to the whole model; a head alone has no
/// residual. Throws ModelError if the model has no targets.
HeadAccuracies CountCorrect(const AttentionOnlyModel& model, Residual residual);

/// How many pairs a mixture of heads predicts correctly.
struct MixtureAccuracy
{
  Eigen::Index correct = 0;
  std::vector<Eigen::Index> correctByTarget; ///< [N]: correct pairs per target
};

/// The terms of a mixture of three heads, as single numbers or blocks of numbers: the sum of
/// everything that does not depend on the weights, and the outputs of the three heads.
template<class Number>
struct MixtureTerms
{
  std::array<Number, 3> base;
  std::array<std::array<Number, 3>, 3> outputs;
};

/// Predicts all token pairs with three heads weighted by a point c of the triangle c_0, c_1, c_2 >=
/// 0, c_0 + c_1 + c_2 = 1, in double precision:
///
///     argmax W_U (residual + sum_i 3 c_i out_{h_i} + sum of out_h of the heads beyond the three)
///
/// At the center of the triangle this is the whole model with that residual. On a tie the lowest
/// index wins. All methods are const and may run concurrently. The accuracy over this triangle is a
/// plot of "Visualizing small Attention-only Transformers".
class HeadMixture
{
public:
  /// Throws ModelError if the model has no targets, and OptionError unless `heads` are three
  /// different heads of the model.
  HeadMixture(const AttentionOnlyModel& model, const std::array<int, 3>& heads, Residual residual);

  /// `weights`: c. Finite values outside the triangle are accepted too.
  MixtureAccuracy Evaluate(const Eigen::Vector3d& weights) const;

  /// The class that the mixture predicts for the pair t1 N + t2. Evaluate counts the same class.
  int Predict(const Eigen::Vector3d& weights, Eigen::Index pair) const;

  Eigen::Index PairCount() const { return this->Pairs; }

  /// The true next token of the pair t1 N + t2.
  int Target(Eigen::Index pair) const;

  /// The vectors that are mixed for the pair t1 N + t2.
  MixtureTerms<double> Terms(Eigen::Index pair) const;

  const Rows3& GetUnembedding() const { return this->Unembedding; }

  /// The number of pairs with each target [N].
  const std::vector<Eigen::Index>& PairsByTarget() const { return this->ByTarget; }

  /// The number of pairs that are evaluated at a time.
  static constexpr Eigen::Index BlockSize = 64;
  using Lanes = Eigen::Array<double, BlockSize, 1>;

private:
  /// The vectors of a block of pairs and their targets, which are -1 in the padding of the last
  /// block.
  struct Block
  {
    MixtureTerms<Lanes> terms;
    std::array<int, static_cast<std::size_t>(BlockSize)> targets;
  };

  Rows3 Unembedding;
  Eigen::Index Pairs;
  std::vector<Eigen::Index> ByTarget;
  std::vector<Block, Eigen::aligned_allocator<Block>> Blocks;

  Lanes PredictBlock(const Block& block, const Eigen::Vector3d& weights) const;
};

/// The point c of the triangle with c_0 = first / segments and c_1 = second / segments.
Eigen::Vector3d SimplexPoint(int segments, int first, int second);

/// The points of a triangular grid with `segments` intervals along each edge. They are in rows of
/// constant c_1 that begin with c_1 = 0; within a row c_0 increases from 0 to 1 - c_1.
std::vector<Eigen::Vector3d> SimplexGrid(int segments);

/// The triangles between the points of SimplexGrid. They are counterclockwise when the corner c_0 =
/// 1 is drawn to the right of c_2 = 1 and c_1 = 1 above both.
std::vector<std::array<std::ptrdiff_t, 3>> SimplexTriangles(int segments);

}
