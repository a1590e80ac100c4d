#pragma once

#include "Base/Progress.h"
#include "Weights/ProcessedWeights.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// A matrix R with R^T R = gram, which is symmetric and, but for rounding, has no negative
/// eigenvalue. So |X| = |R| and X and R have the same singular values and right singular vectors
/// for any X with X^T X = gram, however many rows it has.
DoubleMatrix RootOf(const DoubleMatrix& gram);

/// The root of x^T x.
DoubleMatrix ColumnRoot(const DoubleMatrix& x);

/// The root of x x^T.
DoubleMatrix RowRoot(const DoubleMatrix& x);

/// a b, a b^T and a^T b, in double precision by the BLAS.
DoubleMatrix Product(const DoubleMatrix& a, const DoubleMatrix& b);
DoubleMatrix ProductTransposed(const DoubleMatrix& a, const DoubleMatrix& b);
DoubleMatrix TransposedProduct(const DoubleMatrix& a, const DoubleMatrix& b);

/// Singular values, falling.
std::vector<double> SingularValues(const DoubleMatrix& matrix);

/// Throws ModelError unless all weights of the heads of a layer are finite.
void RequireFinite(const ProcessedAttention& attention, std::int64_t layer);

/// Throws OptionError unless `number` is an index of one of `count`, or with `allowsAll` -1. `what`
/// is the name of the option.
void RequireIndex(
  const std::string& what, std::int64_t number, std::int64_t count, bool allowsAll = false);

/// Products [d_model, d_model] that stand for a whole vocabulary, with E [V, d_model] the embedding
/// of tokens (CircuitEmbedding) and U = W_U [d_model, V].
struct VocabularyProducts
{
  DoubleMatrix embedding;   ///< E^T E
  DoubleMatrix unembedding; ///< U U^T; if it is asked for
  DoubleMatrix between;     ///< U E, likewise
};

/// Reads the vocabulary once, in blocks of 1024 tokens, on up to `threads` threads; the sums do not
/// depend on their number. Throws ModelError as RequireVocabulary and, if it is needed,
/// RequireUnembedding do, for an unembedding of another vocabulary, and for weights that are not
/// finite.
VocabularyProducts MultiplyVocabulary(const ProcessedWeights& weights, bool withUnembedding,
  int threads, const Progress& progress = {});

}
