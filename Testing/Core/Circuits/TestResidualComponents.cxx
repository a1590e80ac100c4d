#include "Circuits/ResidualComponents.h"

#include "LogitsOracle.h"
#include "Weights/VectorNorm.h"

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

using Vector = Eigen::RowVectorXd;

using OfComponents = OfLogits;

using OfMlps = OfLogits;

}

TEST_P(OfComponents, AddUpToTheStream)
{
  const Recording& recording = this->Oracle.GetRecording();
  const TransformerConfig& config = this->Oracle.GetModel().GetConfig();
  for (const ProcessedWeights* weights : { &this->Processed, &this->Stored })
  {
    const ResidualWeights residual(*weights);
    for (std::int64_t layer = 0; layer < config.layers; ++layer)
    {
      const DoubleMatrix vectors = ComponentVectors(recording, residual, 7, layer);
      Vector sum = vectors.colwise().sum();
      Vector expected = RowOf(recording.residual[layer], 7);
      EXPECT_EQ(vectors.rows(), static_cast<std::int64_t>(ComponentsBefore(config, layer).size()));
      if (config.norm == NormKind::LayerNorm) // known up to the mean
      {
        sum.array() -= sum.mean();
        expected.array() -= expected.mean();
      }
      EXPECT_LE(
        (sum - expected).cwiseAbs().maxCoeff(), LogitsTolerance * expected.cwiseAbs().maxCoeff())
        << layer;
    }
  }
}

TEST_P(OfComponents, EndInTheRecordedEnd)
{
  const Recording& recording = this->Oracle.GetRecording();
  const Transformer& model = this->Oracle.GetModel();
  const TransformerConfig& config = model.GetConfig();
  const ResidualWeights residual(this->Processed);
  const std::vector<std::int64_t> rows = { 3, 12 };
  const DoubleMatrix mlps = LastMlpOutputs(recording, residual, rows);
  for (std::int64_t i = 0; i < 2; ++i)
  {
    const std::int64_t row = rows[i];
    Vector sum = ComponentVectors(
      recording, residual, row, config.layers, mlps.size() > 0 ? mlps.row(i).data() : nullptr)
                   .colwise()
                   .sum();
    Vector expected = RowOf(recording.residual.back(), row);
    if (config.lastResidualIsNormed)
    {
      NormalizeVector(config, model.GetWeights().finalNorm, sum);
    }
    else if (config.norm == NormKind::LayerNorm) // known up to the mean
    {
      sum.array() -= sum.mean();
      expected.array() -= expected.mean();
    }
    EXPECT_LE(
      (sum - expected).cwiseAbs().maxCoeff(), LogitsTolerance * expected.cwiseAbs().maxCoeff());
  }
}

TEST_P(OfMlps, AreThoseThatTheLastIsComputedWith)
{
  // The MLP of layer 0 as a difference, and as that of a model that ends there.
  const Recording& recording = this->Oracle.GetRecording();
  TransformerConfig config = this->Oracle.GetModel().GetConfig();
  const DoubleMatrix vectors = ComponentVectors(recording, ResidualWeights(this->Stored), 4, 1);
  config.layers = 1;
  WeightFiles files = this->Oracle.GetModel().GetFiles();
  TensorViews views;
  for (const auto& [name, view] : files.GetTensors())
  {
    if (name.find(".1.") == std::string::npos)
    {
      views.emplace(name, view);
    }
  }
  const Transformer first(config, WeightFiles(views, "first"));
  const ProcessedWeights weights(first, WeightSteps::Stored);
  const DoubleMatrix mlp = LastMlpOutputs(recording, ResidualWeights(weights), { 4 });
  const Vector expected = vectors.bottomRows(1);
  EXPECT_LE((mlp.row(0) - expected).cwiseAbs().maxCoeff(),
    LogitsTolerance * expected.cwiseAbs().maxCoeff());
}

INSTANTIATE_TEST_SUITE_P(ResidualComponents, OfComponents, OfLogits::Models(), OfLogits::Name);
INSTANTIATE_TEST_SUITE_P(
  ResidualComponents, OfMlps, testing::Values("gpt2", "bloom", "llama"), OfLogits::Name);

TEST(ResidualComponents, AreNamedAsInTheLiterature)
{
  EXPECT_EQ(NameOf({ ComponentKind::Embedding }), "embed");
  EXPECT_EQ(NameOf({ ComponentKind::Position }), "pos");
  EXPECT_EQ(NameOf({ ComponentKind::Head, 3, 11 }), "head 3.11");
  EXPECT_EQ(NameOf({ ComponentKind::Bias, 3 }), "bias 3");
  EXPECT_EQ(NameOf({ ComponentKind::Mlp, 0 }), "mlp 0");
}
