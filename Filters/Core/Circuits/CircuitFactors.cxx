#include "CircuitFactors.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "CircuitWeights.h"
#include "Numerics/MatrixProduct.h"
#include "Weights/ThinSvd.h"

#include <algorithm>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

/// Tokens that are read at a time, and rows of products that a thread computes.
constexpr std::int64_t RowsPerBlock = 1024;
constexpr std::int64_t PanelRows = 96;
constexpr std::int64_t ReadRows = 64;

/// The product of two matrices, of which each may be transposed.
DoubleMatrix Multiplied(
  const DoubleMatrix& a, bool transposesA, const DoubleMatrix& b, bool transposesB)
{
  DoubleMatrix product(transposesA ? a.cols() : a.rows(), transposesB ? b.rows() : b.cols());
  MultiplyMatrices(product.rows(), product.cols(), transposesA ? a.rows() : a.cols(), 1,
    { a.data(), a.cols(), transposesA }, { b.data(), b.cols(), transposesB }, product.data(),
    product.cols());
  return product;
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
  ThrowIf<ModelError>(logits != tokens,
    "circuits over the vocabulary: expected as many logits as tokens, found ", logits, " for ",
    tokens, ".");
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
  return RootOf(ProductTransposed(x, x));
}

DoubleMatrix Product(const DoubleMatrix& a, const DoubleMatrix& b)
{
  return Multiplied(a, false, b, false);
}

DoubleMatrix ProductTransposed(const DoubleMatrix& a, const DoubleMatrix& b)
{
  return Multiplied(a, false, b, true);
}

DoubleMatrix TransposedProduct(const DoubleMatrix& a, const DoubleMatrix& b)
{
  return Multiplied(a, true, b, false);
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
    ThrowIf<ModelError>(!head.query.allFinite() || !head.key.allFinite() ||
                          !head.value.allFinite() || !head.output.allFinite(),
      "layer ", layer, ", head ", h, ": expected finite weights, found NaN or infinity.");
  }
}

void RequireIndex(const std::string& what, std::int64_t number, std::int64_t count, bool allowsAll)
{
  ThrowIf<OptionError>(number < (allowsAll ? -1 : 0) || number >= count, what,
    ": expected a number from 0 to ", count - 1, allowsAll ? ", or -1 for all" : "", ", found ",
    number, ".");
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
    ThrowIf<ModelError>(!products.unembedding.allFinite(),
      "unembedding: expected finite numbers, found NaN or infinity.");
    Mirror(products.unembedding);
  }
  return products;
}

}
