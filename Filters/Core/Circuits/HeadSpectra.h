#pragma once

#include "Base/Progress.h"
#include "Recording/Recording.h"
#include "Weights/ProcessedWeights.h"

#include <complex>
#include <cstdint>
#include <vector>

namespace atlas
{

/// The two circuits of a head, as matrices [d_model, d_model] of rank d_head (Elhage et al. 2021).
enum class SpectrumCircuit
{
  OutputValue, ///< W_V W_O: what an attended token writes
  QueryKey     ///< W_Q W_K^T, not divided by sqrt(d_head): which tokens attend to which
};

/// Whose spectra to find.
struct HeadSpectraOptions
{
  SpectrumCircuit circuit = SpectrumCircuit::OutputValue;
  bool overVocabulary = false; ///< E W_V W_O U or E W_Q W_K^T E^T, [V, V]
  std::int64_t layer = -1;     ///< -1: all
  std::int64_t head = -1;      ///< -1: all
  WeightSteps steps = WeightSteps::TransformerLens;
  int threads = 0; ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

struct HeadSpectrum
{
  HeadPlace place;
  std::vector<std::complex<double>> eigenvalues; ///< [d_head]: all that are not 0 of necessity, by
                                                 ///< falling modulus, rounded to 12 decimals, then
                                                 ///< by falling imaginary part
  std::vector<double> singularValues;            ///< [d_head], falling; below 1e-8 of the largest
                                                 ///< they are rounding
  double copying = 0; ///< sum Re lambda / sum |lambda|, from -1 to 1; 0 if all are 0
};

/// The eigenvalues and singular values of a circuit of each head, by layer and head (Elhage et al.
/// 2021, "Summarizing OV/QK matrices"). A product of rank d_head has the eigenvalues, but for
/// zeros, of the [d_head, d_head] product of the same factors in cyclic order: W_O W_V, W_K^T W_Q,
/// W_O (U E) W_V, and W_K^T (E^T E) W_Q, with E the embedding as the first layer reads it (stored
/// weights: W_E) and U = W_U. So a vocabulary is read once, in d_model^2 V operations, and no
/// matrix [V, V] is formed.
///
/// `copying` of OV circuits is near 1 if a token raises itself among the logits, negative if it
/// lowers itself. Of QK circuits it is a matching score: near 1 if tokens attend to tokens of the
/// same direction of the residual stream. Biases, positions, rotation, normalizations that divide,
/// MLPs and other layers are left out.
///
/// Throws OptionError for a layer or head that is not there and as MultiplyVocabulary, ModelError
/// for weights that cannot be processed or are not finite, and FileError if files were changed.
std::vector<HeadSpectrum> FindHeadSpectra(
  const Transformer& model, const HeadSpectraOptions& options);

}
