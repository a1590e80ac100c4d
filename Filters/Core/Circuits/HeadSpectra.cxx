#include "HeadSpectra.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "CircuitFactors.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

/// The circuit X Y^T of a head, both [d_model, d_head], or over the vocabulary A X Y^T B with
/// A^T A = left, B B^T = right and B A = between.
struct Circuit
{
  DoubleMatrix x;
  DoubleMatrix y;
  const DoubleMatrix* left = nullptr;
  const DoubleMatrix* right = nullptr;
  const DoubleMatrix* between = nullptr;
};

/// matrix, or middle matrix.
DoubleMatrix Times(const DoubleMatrix* middle, const DoubleMatrix& matrix)
{
  return middle == nullptr ? matrix : Product(*middle, matrix);
}

std::vector<std::complex<double>> EigenvaluesOf(const Circuit& circuit)
{
  const Eigen::MatrixXd small = TransposedProduct(circuit.y, Times(circuit.between, circuit.x));
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(small, false);
  ThrowIf<ModelError>(
    solver.info() != Eigen::Success, "eigenvalues of a head: the iteration did not converge.");
  const Eigen::VectorXcd& found = solver.eigenvalues();
  std::vector<std::complex<double>> values(found.data(), found.data() + found.size());
  const auto rank = [](const std::complex<double>& value)
  { return std::tuple(-std::round(std::abs(value) * 1e12), -value.imag(), -value.real()); };
  std::sort(
    values.begin(), values.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return values;
}

double CopyingOf(const std::vector<std::complex<double>>& eigenvalues)
{
  double real = 0;
  double moduli = 0;
  for (const std::complex<double>& value : eigenvalues)
  {
    real += value.real();
    moduli += std::abs(value);
  }
  return moduli > 0 ? real / moduli : 0;
}

HeadSpectrum SpectrumOf(const HeadPlace& place, const Circuit& circuit)
{
  const DoubleMatrix left = RootOf(TransposedProduct(circuit.x, Times(circuit.left, circuit.x)));
  const DoubleMatrix right = RootOf(TransposedProduct(circuit.y, Times(circuit.right, circuit.y)));
  HeadSpectrum spectrum;
  spectrum.place = place;
  spectrum.eigenvalues = EigenvaluesOf(circuit);
  spectrum.singularValues = SingularValues(left * right.transpose());
  spectrum.copying = CopyingOf(spectrum.eigenvalues);
  return spectrum;
}

Circuit CircuitOf(const ProcessedHead& head, SpectrumCircuit kind,
  const std::optional<VocabularyProducts>& vocabulary)
{
  const bool writes = kind == SpectrumCircuit::OutputValue;
  Circuit circuit{ writes ? head.value : head.query,
    writes ? DoubleMatrix(head.output.transpose()) : head.key };
  if (vocabulary)
  {
    circuit.left = &vocabulary->embedding;
    circuit.right = writes ? &vocabulary->unembedding : &vocabulary->embedding;
    circuit.between = writes ? &vocabulary->between : &vocabulary->embedding;
  }
  return circuit;
}

}

std::vector<HeadSpectrum> FindHeadSpectra(
  const Transformer& model, const HeadSpectraOptions& options)
{
  const TransformerConfig& config = model.GetConfig();
  RequireIndex("Layer", options.layer, config.layers, true);
  RequireIndex("Head", options.head, config.heads, true);
  const ProcessedWeights weights(model, options.steps, options.threads);
  const double share = options.overVocabulary ? 0.8 : 0; // of the work
  std::optional<VocabularyProducts> vocabulary;
  if (options.overVocabulary)
  {
    vocabulary = MultiplyVocabulary(weights, options.circuit == SpectrumCircuit::OutputValue,
      options.threads, options.progress.Part(0, share));
  }
  const SingleThreadedBlas blas;
  const Progress progress = options.progress.Part(share, 1);
  std::vector<HeadSpectrum> spectra;
  const std::int64_t first = std::max<std::int64_t>(options.layer, 0);
  const std::int64_t last = options.layer < 0 ? config.layers : first + 1;
  for (std::int64_t layer = first; layer < last; ++layer)
  {
    if (options.layer < 0 && !config.HasAttention(layer))
    {
      continue;
    }
    const ProcessedAttention attention = weights.Attention(layer);
    RequireFinite(attention, layer);
    const std::int64_t head = std::max<std::int64_t>(options.head, 0);
    const std::int64_t count = options.head < 0 ? config.heads : 1;
    const std::size_t begin = spectra.size();
    spectra.resize(begin + ToIndex(count));
    ParallelFor(count, options.threads,
      [&](std::int64_t i)
      {
        const HeadPlace place = { static_cast<std::int32_t>(layer),
          static_cast<std::int32_t>(head + i) };
        spectra[begin + ToIndex(i)] =
          SpectrumOf(place, CircuitOf(attention.heads[head + i], options.circuit, vocabulary));
      });
    progress(layer + 1 - first, last - first);
  }
  return spectra;
}

}
