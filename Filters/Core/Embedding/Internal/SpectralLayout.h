#pragma once

#include "Embedding/PointView.h"
#include "FuzzyGraph.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

struct Eigenpairs
{
  Eigen::VectorXd values;  ///< ascending
  Eigen::MatrixXd vectors; ///< columns of length 1; their largest component is positive
};

/// The `count` smallest eigenvalues, and their eigenvectors, of the normalized Laplacian
/// I - D^-1/2 G D^-1/2 of a connected graph G, where D is the diagonal matrix of its row sums. The
/// first is 0. Lanczos' method with full orthogonalization for the matrix and, if that does not
/// suffice, for a Chebyshev polynomial of it (such filters: Zhou and Saad, "A Chebyshev-Davidson
/// algorithm for large symmetric eigenproblems", 2007), until all residuals are at most `tolerance`
/// or after `mostProducts` products with the matrix. Of equal eigenvalues some may be missed. The
/// result is equal to the byte for any number of threads.
Eigenpairs LaplacianEigenpairs(const FuzzyGraph& graph, int count, double tolerance,
  std::int64_t mostProducts, std::uint64_t seed, int threads);

/// Where UMAP begins: the eigenvectors of the smallest eigenvalues of the Laplacian other than 0,
/// as coordinates [points, dimensions], with noise, and each axis scaled to 0 to 10. Parts of the
/// graph that are not connected are placed by their own eigenvectors around their mean `points`,
/// projected to the principal components of these means.
std::vector<float> SpectralLayout(const PointView& points, PointMetric metric,
  const FuzzyGraph& graph, int dimensions, std::uint64_t seed, int threads);

}
