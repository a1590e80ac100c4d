#include "Circuits/HeadSpectra.h"

#include "Base/Error.h"
#include "CircuitOracle.h"
#include "Circuits/CircuitFactors.h"
#include "ErrorMessage.h"
#include "Reports.h"
#include "TinyTransformer.h"

#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Of each array, relative to its largest magnitude (Testing/Oracle/analysis/README.md).
constexpr double SpectrumTolerance = 1e-5;
constexpr double EigenvalueTolerance = 2e-5;

HeadSpectraOptions OptionsOf(SpectrumCircuit circuit, bool overVocabulary = false)
{
  HeadSpectraOptions options;
  options.circuit = circuit;
  options.overVocabulary = overVocabulary;
  return options;
}

struct SpectraNumbers
{
  std::vector<double> eigenvalues; ///< real and imaginary parts
  std::vector<double> singular;
  std::vector<double> copying;

  explicit SpectraNumbers(const std::vector<HeadSpectrum>& spectra)
  {
    for (const HeadSpectrum& spectrum : spectra)
    {
      for (const std::complex<double>& value : spectrum.eigenvalues)
      {
        this->eigenvalues.insert(this->eigenvalues.end(), { value.real(), value.imag() });
      }
      const std::vector<double>& values = spectrum.singularValues;
      this->singular.insert(this->singular.end(), values.begin(), values.end());
      this->copying.push_back(spectrum.copying);
    }
  }
};

class SpectraOfModel : public OfCircuits
{
protected:
  std::vector<HeadSpectrum> Find(const HeadSpectraOptions& options) const
  {
    return FindHeadSpectra(this->Oracle.GetModel(), options);
  }
};

TEST_P(SpectraOfModel, EqualTheOracle)
{
  const SpectraNumbers ov(this->Find(OptionsOf(SpectrumCircuit::OutputValue)));
  const SpectraNumbers full(this->Find(OptionsOf(SpectrumCircuit::OutputValue, true)));
  const SpectraNumbers qk(this->Find(OptionsOf(SpectrumCircuit::QueryKey)));
  const auto expect = [&](
                        const std::string& name, const std::vector<double>& found, double tolerance)
  { ExpectClose(name, found, this->Oracle.Values(name), tolerance); };
  expect("ov.eigenvalues", ov.eigenvalues, EigenvalueTolerance);
  expect("ov.full.eigenvalues", full.eigenvalues, EigenvalueTolerance);
  expect("ov.copying", ov.copying, SpectrumTolerance);
  expect("ov.full.copying", full.copying, SpectrumTolerance);
  expect("ov.singular", ov.singular, SpectrumTolerance);
  expect("qk.singular", qk.singular, SpectrumTolerance);
}

/// Circuits over the vocabulary, formed in full from processed weights; the embedding of BLOOM by
/// the definition of its normalization.
class FullCircuit
{
public:
  explicit FullCircuit(const Transformer& model)
    : Weights(model, WeightSteps::TransformerLens)
    , Embedding(this->Weights.TokenEmbedding(0, model.GetConfig().vocabulary))
    , Unembedding(this->Weights.UnembeddingColumns(0, this->Weights.OutputVocabulary()))
  {
    const NormTensors& norm = model.GetWeights().embeddingNorm;
    for (Eigen::Index row = 0; norm.gain.data != nullptr && row < this->Embedding.rows(); ++row)
    {
      const double mean = this->Embedding.row(row).mean();
      const double variance = (this->Embedding.row(row).array() - mean).square().mean();
      for (Eigen::Index m = 0; m < this->Embedding.cols(); ++m)
      {
        const auto at = static_cast<std::uint64_t>(m);
        this->Embedding(row, m) = (this->Embedding(row, m) - mean) /
                                    std::sqrt(variance + model.GetConfig().epsilon) *
                                    norm.gain.At(at) +
                                  norm.shift.At(at);
      }
    }
  }

  Eigen::MatrixXd OutputValue(const HeadPlace& place) const
  {
    const ProcessedHead head = this->HeadAt(place);
    return this->Embedding * head.value * head.output * this->Unembedding.transpose();
  }
  Eigen::MatrixXd QueryKey(const HeadPlace& place) const
  {
    const ProcessedHead head = this->HeadAt(place);
    return this->Embedding * head.query * head.key.transpose() * this->Embedding.transpose();
  }

private:
  ProcessedWeights Weights;
  DoubleMatrix Embedding;
  DoubleMatrix Unembedding;

  ProcessedHead HeadAt(const HeadPlace& place) const
  {
    return this->Weights.Attention(place.layer).heads[place.head];
  }
};

/// The spectrum of a circuit that was formed.
void ExpectSpectrum(const HeadSpectrum& found, const Eigen::MatrixXd& circuit)
{
  const Eigen::VectorXd all = Eigen::JacobiSVD<Eigen::MatrixXd>(circuit).singularValues();
  const std::int64_t count = found.singularValues.size();
  ExpectClose("singular values", found.singularValues,
    std::vector<double>(all.data(), all.data() + count), 1e-7);
  EXPECT_LT(all.tail(all.size() - count).maxCoeff(), 1e-9 * all[0]);
  std::complex<double> sum = 0;
  std::complex<double> squares = 0;
  for (const std::complex<double>& value : found.eigenvalues)
  {
    sum += value;
    squares += value * value;
  }
  const double scale = std::abs(found.eigenvalues[0]);
  EXPECT_NEAR(sum.real(), circuit.trace(), 1e-9 * scale);
  EXPECT_NEAR(squares.real(), (circuit * circuit).trace(), 1e-9 * scale * scale);
  EXPECT_NEAR(sum.imag(), 0, 1e-9 * scale);
}

TEST_P(SpectraOfModel, AreThoseOfTheWholeCircuits)
{
  const FullCircuit circuits(this->Oracle.GetModel());
  for (const HeadSpectrum& found : this->Find(OptionsOf(SpectrumCircuit::OutputValue, true)))
  {
    ExpectSpectrum(found, circuits.OutputValue(found.place));
  }
  for (const HeadSpectrum& found : this->Find(OptionsOf(SpectrumCircuit::QueryKey, true)))
  {
    ExpectSpectrum(found, circuits.QueryKey(found.place));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SpectraOfModel, OfCircuits::Models(), OfCircuits::Name);

TEST(HeadSpectra, DoNotDependOnThreadsOrOnWhichHeadsAreAsked)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  HeadSpectraOptions options = OptionsOf(SpectrumCircuit::OutputValue, true);
  options.threads = 1;
  const std::vector<HeadSpectrum> all = FindHeadSpectra(model, options);
  ASSERT_EQ(all.size(), 6U);
  options.threads = 3;
  const SpectraNumbers three(FindHeadSpectra(model, options));
  EXPECT_EQ(SpectraNumbers(all).eigenvalues, three.eigenvalues);
  options.layer = 1;
  options.head = 2;
  const std::vector<HeadSpectrum> one = FindHeadSpectra(model, options);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].place.layer, 1);
  EXPECT_EQ(one[0].place.head, 2);
  EXPECT_EQ(one[0].eigenvalues, all.back().eigenvalues);
  EXPECT_EQ(one[0].singularValues, all.back().singularValues);
}

/// Sets the first `count` values of a tensor to 0.
void Clear(TinyTransformer& tiny, const std::string& name, std::size_t count)
{
  for (std::size_t i = 0; i < count; ++i)
  {
    tiny.Set(name, i, 0);
  }
}

TEST(HeadSpectra, OfStoredWeightsAndOfAHeadWithoutAny)
{
  TinyTransformer tiny;
  Clear(tiny, "h.0.attn.c_proj.weight", 16 * TinyTransformer::ModelDimension); // W_O of head 0
  const Transformer model = tiny.Make();
  HeadSpectraOptions options = OptionsOf(SpectrumCircuit::OutputValue);
  options.steps = WeightSteps::Stored;
  options.layer = 0;
  const std::vector<HeadSpectrum> found = FindHeadSpectra(model, options);
  EXPECT_EQ(found[0].copying, 0);
  EXPECT_EQ(found[0].singularValues[0], 0);
  const ProcessedHead head = ProcessedWeights(model, WeightSteps::Stored).Attention(0).heads[1];
  const Eigen::VectorXd expected =
    Eigen::JacobiSVD<Eigen::MatrixXd>(head.value * head.output).singularValues();
  ExpectClose("singular values", found[1].singularValues,
    std::vector<double>(expected.data(), expected.data() + 16), 1e-7);
}

/// W_O W_V is a rotation by 90 degrees of two components, and 2 in another: eigenvalues 2, i, -i.
TEST(HeadSpectra, ReadEigenvaluesInTheirOrder)
{
  TinyTransformer tiny;
  constexpr std::size_t d = TinyTransformer::ModelDimension;
  Clear(tiny, "h.0.attn.c_attn.weight", d * 3 * d);
  Clear(tiny, "h.0.attn.c_proj.weight", d * d);
  for (std::size_t c = 0; c < 3; ++c)
  {
    tiny.Set("h.0.attn.c_attn.weight", c * 3 * d + 2 * d + c, 1); // W_V: component c of the stream
  }
  tiny.Set("h.0.attn.c_proj.weight", 0 * d + 1, 1);
  tiny.Set("h.0.attn.c_proj.weight", 1 * d + 0, -1);
  tiny.Set("h.0.attn.c_proj.weight", 2 * d + 2, 2);
  HeadSpectraOptions options = OptionsOf(SpectrumCircuit::OutputValue);
  options.steps = WeightSteps::Stored;
  const HeadSpectrum found = FindHeadSpectra(tiny.Make(), options)[0];
  EXPECT_NEAR(std::abs(found.eigenvalues[0] - std::complex<double>(2, 0)), 0, 1e-12);
  EXPECT_NEAR(std::abs(found.eigenvalues[1] - std::complex<double>(0, 1)), 0, 1e-12);
  EXPECT_NEAR(std::abs(found.eigenvalues[2] - std::complex<double>(0, -1)), 0, 1e-12);
  EXPECT_NEAR(found.copying, 0.5, 1e-12);
  EXPECT_NEAR(found.singularValues[0], 2, 1e-12);
  EXPECT_NEAR(found.singularValues[2], 1, 1e-12);
}

TEST(HeadSpectra, NamesWhatIsWrong)
{
  TinyTransformer tiny;
  const auto message = [&](const HeadSpectraOptions& options)
  { return MessageOf<OptionError>([&] { FindHeadSpectra(tiny.Make(), options); }); };
  HeadSpectraOptions options;
  options.layer = 2;
  EXPECT_THAT(message(options), HasSubstr("Layer: expected a number from 0 to 1"));
  options.layer = 0;
  options.head = -2;
  EXPECT_THAT(message(options), HasSubstr("Head: expected a number from 0 to 2"));
  tiny.Set("h.1.attn.c_attn.weight", 3, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(MessageOf<ModelError>([&] { FindHeadSpectra(tiny.Make(), {}); }),
    HasSubstr("expected finite weights, found NaN or infinity"));
  TinyTransformer words;
  words.Set("wte.weight", 3, std::numeric_limits<float>::infinity());
  EXPECT_THAT(MessageOf<ModelError>(
                [&] { FindHeadSpectra(words.Make(), OptionsOf(SpectrumCircuit::QueryKey, true)); }),
    HasSubstr("the embedding of tokens: expected finite numbers"));
  const Transformer pictures = Transformer::Read(TransformerOracle::Folder("vit"));
  EXPECT_NO_THROW(FindHeadSpectra(pictures, OptionsOf(SpectrumCircuit::QueryKey)));
  EXPECT_THROW(FindHeadSpectra(pictures, OptionsOf(SpectrumCircuit::QueryKey, true)), Error);
}

TEST(HeadSpectra, Stop)
{
  const TinyTransformer tiny;
  HeadSpectraOptions options = OptionsOf(SpectrumCircuit::OutputValue, true);
  std::vector<double> reports;
  options.progress = KeepReports(reports, 2);
  EXPECT_THROW(FindHeadSpectra(tiny.Make(), options), Canceled);
  EXPECT_EQ(reports.size(), 2U);
}

}
