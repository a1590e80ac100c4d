#include "CircuitFactors.h"

#include "CircuitWeights.h"
#include "Error.h"
#include "MatrixProduct.h"
#include "Parallel.h"
#include "ThinSvd.h"

#include <algorithm>
#include <utility>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

/// Tokens that are read at a time, and rows of products that a thread computes.
constexpr std::int64_t RowsPerBlock = 1024;
constexpr std::int64_t PanelRows = 96;
constexpr std::int64_t ReadRows = 64;

DoubleMatrixBlock BlockOf(const DoubleMatrix& matrix, bool transposed = false)
{
  return { matrix.data(), matrix.cols(), transposed };
}

/// Calls read(begin, end) in parallel for pieces of a block of tokens, and puts the rows together.
template<class Read>
void ReadRowsOf(std::int64_t begin, int threads, const Read& read, DoubleMatrix& rows)
{
  const std::int64_t count = rows.rows();
  ParallelFor((count + ReadRows - 1) / ReadRows, threads,
    [&](std::int64_t piece)
    {
      const std::int64_t first = piece * ReadRows;
      const std::int64_t last = std::min(first + ReadRows, count);
      rows.middleRows(first, last - first) = read(begin + first, begin + last);
    });
}

/// sum += a^T b, in panels of rows. Symmetric ones are computed from the diagonal on.
void AddProduct(
  const DoubleMatrix& a, const DoubleMatrix& b, bool isSymmetric, int threads, DoubleMatrix& sum)
{
  const std::int64_t d = sum.rows();
  ParallelFor((d + PanelRows - 1) / PanelRows, threads,
    [&](std::int64_t panel)
    {
      const std::int64_t first = panel * PanelRows;
      const std::int64_t column = isSymmetric ? first : 0;
      MultiplyMatrices(std::min(PanelRows, d - first), d - column, a.rows(), 1,
        { a.data() + first, a.cols(), true }, { b.data() + column, b.cols() },
        sum.data() + first * d + column, d, true);
    });
}

/// Copies what is above the diagonal to below.
void Mirror(DoubleMatrix& matrix)
{
  matrix.triangularView<Eigen::StrictlyLower>() = matrix.transpose();
}

void RequireOneVocabulary(const Transformer& model, bool withUnembedding)
{
  RequireVocabulary(model);
  if (!withUnembedding)
  {
    return;
  }
  RequireUnembedding(model);
  const std::int64_t logits = model.GetWeights().unembedding.outputs;
  const std::int64_t tokens = model.GetConfig().vocabulary;
  if (logits != tokens)
  {
    throw ModelError("circuits over the vocabulary: expected as many logits as tokens, found " +
                     std::to_string(logits) + " for " + std::to_string(tokens) + ".");
  }
}

}

DoubleMatrix RootOf(const DoubleMatrix& gram)
{
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);
  return solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() *
         solver.eigenvectors().transpose();
}

DoubleMatrix ColumnRoot(const DoubleMatrix& x)
{
  return RootOf(TransposedProduct(x, x));
}

DoubleMatrix RowRoot(const DoubleMatrix& x)
{
  DoubleMatrix gram(x.rows(), x.rows());
  MultiplyMatrices(
    x.rows(), x.rows(), x.cols(), 1, BlockOf(x), BlockOf(x, true), gram.data(), gram.cols());
  return RootOf(gram);
}

DoubleMatrix Product(const DoubleMatrix& a, const DoubleMatrix& b)
{
  DoubleMatrix product(a.rows(), b.cols());
  MultiplyMatrices(
    a.rows(), b.cols(), a.cols(), 1, BlockOf(a), BlockOf(b), product.data(), product.cols());
  return product;
}

DoubleMatrix TransposedProduct(const DoubleMatrix& a, const DoubleMatrix& b)
{
  DoubleMatrix product(a.cols(), b.cols());
  MultiplyMatrices(
    a.cols(), b.cols(), a.rows(), 1, BlockOf(a, true), BlockOf(b), product.data(), product.cols());
  return product;
}

std::vector<double> SingularValues(const DoubleMatrix& matrix)
{
  const Eigen::VectorXd values = SingularValuesOf(Eigen::MatrixXd(matrix));
  return { values.data(), values.data() + values.size() };
}

void RequireFinite(const ProcessedAttention& attention, std::int64_t layer)
{
  for (std::size_t h = 0; h < attention.heads.size(); ++h)
  {
    const ProcessedHead& head = attention.heads[h];
    if (!head.query.allFinite() || !head.key.allFinite() || !head.value.allFinite() ||
        !head.output.allFinite())
    {
      throw ModelError("layer " + std::to_string(layer) + ", head " + std::to_string(h) +
                       ": expected finite weights, found NaN or infinity.");
    }
  }
}

void RequireIndex(const std::string& what, std::int64_t number, std::int64_t count, bool allowsAll)
{
  if (number >= (allowsAll ? -1 : 0) && number < count)
  {
    return;
  }
  throw OptionError(what + ": expected a number from 0 to " + std::to_string(count - 1) +
                    (allowsAll ? ", or -1 for all" : "") + ", found " + std::to_string(number) +
                    ".");
}

VocabularyProducts MultiplyVocabulary(
  const ProcessedWeights& weights, bool withUnembedding, int threads, const Progress& progress)
{
  const Transformer& model = weights.GetModel();
  RequireOneVocabulary(model, withUnembedding);
  const SingleThreadedBlas blas;
  const std::int64_t d = model.GetConfig().modelDimension;
  const std::int64_t count = model.GetConfig().vocabulary;
  VocabularyProducts products;
  products.embedding = DoubleMatrix::Zero(d, d);
  if (withUnembedding)
  {
    products.unembedding = DoubleMatrix::Zero(d, d);
    products.between = DoubleMatrix::Zero(d, d);
  }
  for (std::int64_t begin = 0; begin < count; begin += RowsPerBlock)
  {
    const std::int64_t end = std::min(begin + RowsPerBlock, count);
    DoubleMatrix rows(end - begin, d);
    ReadRowsOf(
      begin, threads, [&](auto first, auto last) { return CircuitEmbedding(weights, first, last); },
      rows);
    AddProduct(rows, rows, true, threads, products.embedding);
    if (withUnembedding)
    {
      DoubleMatrix columns(end - begin, d);
      ReadRowsOf(
        begin, threads,
        [&](auto first, auto last) { return weights.UnembeddingColumns(first, last); }, columns);
      AddProduct(columns, columns, true, threads, products.unembedding);
      AddProduct(columns, rows, false, threads, products.between);
    }
    progress(end, count);
  }
  Mirror(products.embedding);
  if (withUnembedding)
  {
    if (!products.unembedding.allFinite())
    {
      throw ModelError("unembedding: expected finite numbers, found NaN or infinity.");
    }
    Mirror(products.unembedding);
  }
  return products;
}

}
