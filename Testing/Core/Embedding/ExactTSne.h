#pragma once

#include "Embedding/PointView.h"
#include "Embedding/TSne.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// t-SNE by its definitions, over all pairs and in double precision: what the fast code of TSne.h
/// is compared with. Formulas and names are those of TSne.h. Affinities are dense: [points,
/// points], row-major, 0 on the diagonal. Layouts are [points, dimensions] for any number of
/// dimensions.

/// A sparse matrix as a dense one.
std::vector<double> DenseMatrix(const SparseMatrix& matrix);

/// A layout [points, dimensions] in memory owned elsewhere.
struct ExactLayout
{
  const double* values = nullptr;
  std::int64_t points = 0;
  int dimensions = 2;
};

/// sum_j w_ij^2 (y_i - y_j) of each point, and `sum` = Z.
std::vector<double> ExactRepulsion(const ExactLayout& layout, double& sum);

/// sum_j p_ij w_ij (y_i - y_j) of each point.
std::vector<double> ExactAttraction(const std::vector<double>& p, const ExactLayout& layout);

/// 4 sum_j (p_ij - w_ij / Z) w_ij (y_i - y_j) of each point.
std::vector<double> ExactGradient(const std::vector<double>& p, const ExactLayout& layout);

/// KL, over the pairs with p > 0.
double ExactDivergence(const std::vector<double>& p, const ExactLayout& layout);

/// How ExactDescent moves points: the update is momentum x the last one - rate x gain x gradient,
/// the first is 0, and gains grow by 0.2 where gradient x update < 0 and otherwise shrink to 0.8 of
/// themselves, but not below 0.01.
struct ExactDescentOptions
{
  int steps = 1;
  double exaggeration = 12;
  double momentum = 0.5;
  double rate = 50;
};

/// The layout after so many steps.
std::vector<double> ExactDescent(
  const std::vector<double>& p, const ExactLayout& start, const ExactDescentOptions& options);

/// KL(P || Q) of TSne.h in double precision, with the exact Z: takes time proportional to points^2.
double TSneDivergence(
  const Affinities& affinities, const float* layout, int dimensions, int threads);

}
