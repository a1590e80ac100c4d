#pragma once

#include "AttentionEvaluation.h"

#include <array>
#include <vector>

namespace atlas
{

/// Throws ModelError if the model does not tell the true next tokens, without which there is no
/// accuracy.
void RequireTargets(const AttentionOnlyModel& model);

/// What each head of a model can do alone, and what all can do together.
struct HeadAccuracies
{
  Eigen::Index pairs = 0;          ///< N^2
  std::vector<Eigen::Index> alone; ///< per head: pairs whose target argmax W_U out_h is
  Eigen::Index all = 0;            ///< pairs that the model itself has right
  Eigen::Index any = 0;            ///< pairs that at least one head alone has right

  /// The share of the pairs that so many of them are, from 0 to 1.
  double Share(Eigen::Index correct) const
  {
    return static_cast<double>(correct) / static_cast<double>(this->pairs);
  }
};

/// Counts over all pairs of tokens. `residual` is for the model itself; a head alone has none.
/// Throws ModelError without targets.
HeadAccuracies CountCorrect(const AttentionOnlyModel& model, Residual residual);

/// argmax W_U out_h at the pairs (t1, t2), in the order t1 N + t2; the lowest index on a tie.
std::vector<int> PredictAlone(const AttentionOnlyModel& model, std::size_t head);

/// How many pairs a mixture of heads has right.
struct MixtureAccuracy
{
  Eigen::Index correct = 0;
  std::vector<Eigen::Index> correctByTarget; ///< [N]: of the pairs with that target
};

/// What a mixture of three heads adds up, as numbers or as blocks of them: all of it that does not
/// depend on the weights, and the outputs of the heads.
template<class Number>
struct MixtureTerms
{
  std::array<Number, 3> base;
  std::array<std::array<Number, 3>, 3> outputs;
};

/// The model with three heads weighted by a point c of the triangle c_0, c_1, c_2 >= 0, c_0 + c_1 +
/// c_2 = 1, at all pairs of tokens, in double:
///
///     argmax W_U (residual + sum_i 3 c_i out_{h_i} + sum of out_h of the heads beyond the three)
///
/// The centre of the triangle is the model itself with that residual. On a tie the lowest index
/// wins. All methods are const and may run concurrently.
class HeadMixture
{
public:
  /// Throws ModelError without targets, and OptionError unless `heads` are three different heads of
  /// the model.
  HeadMixture(const AttentionOnlyModel& model, const std::array<int, 3>& heads, Residual residual);

  /// `weights`: c. Any other finite numbers are taken as well.
  MixtureAccuracy Evaluate(const Eigen::Vector3d& weights) const;

  /// The class that the mixture predicts for the pair t1 N + t2: the one that Evaluate counts.
  int Predict(const Eigen::Vector3d& weights, Eigen::Index pair) const;

  Eigen::Index PairCount() const { return this->Pairs; }

  /// The true next token of the pair t1 N + t2.
  int Target(Eigen::Index pair) const;

  /// The vectors that are mixed for the pair t1 N + t2.
  MixtureTerms<double> Terms(Eigen::Index pair) const;

  const Rows3& GetUnembedding() const { return this->Unembedding; }

  /// The number of pairs with each target [N].
  const std::vector<Eigen::Index>& PairsByTarget() const { return this->ByTarget; }

  /// The pairs are evaluated in blocks of this many.
  static constexpr Eigen::Index BlockSize = 64;
  using Lanes = Eigen::Array<double, BlockSize, 1>;

private:
  /// The vectors of a block of pairs, and their targets: -1 in what pads the last block.
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

/// The points of the triangle cut into `segments` parts along each edge, in rows of constant c_1,
/// from c_1 = 0 up, and along each from c_2 = 1 - c_1 to c_0.
std::vector<Eigen::Vector3d> SimplexGrid(int segments);

/// The triangles between the points of SimplexGrid, counterclockwise where c_0 is to the right of
/// c_2 and c_1 is above both.
std::vector<std::array<std::ptrdiff_t, 3>> SimplexTriangles(int segments);

}
