#include "Weights/ProcessedWeights.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "TransformerOracle.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

/// Of each array, relative to its largest magnitude (Testing/Oracle/analysis/README.md).
constexpr double Tolerance = 1e-5;
constexpr double RefactoredTolerance = 2e-5;

std::vector<double> Flat(const DoubleMatrix& matrix)
{
  return { matrix.data(), matrix.data() + matrix.size() };
}

std::vector<double> Flat(const Eigen::RowVectorXd& vector)
{
  return { vector.data(), vector.data() + vector.size() };
}

void Append(std::vector<double>& list, const std::vector<double>& values)
{
  list.insert(list.end(), values.begin(), values.end());
}

/// A small model and its weights as an independent program processed them.
class OfProcessed : public OfAnalysis
{
protected:
  TransformerOracle Original{ GetParam() };
  test::OracleFile Expected{ "analysis/" + GetParam() + ".weights.safetensors" };
  Transformer Model = Transformer::Read(this->Original.Path());
  std::int64_t Dimension = this->Model.GetConfig().modelDimension;

  void Expect(const std::string& name, const std::vector<double>& found, double tolerance) const
  {
    ExpectClose(name, found, this->Expected.Values(name), tolerance);
  }

  /// The tensors of a layer's attention by their names in TransformerLens, without those that are
  /// shared by heads more than once.
  std::vector<std::pair<std::string, std::vector<double>>> TensorsOf(
    const ProcessedAttention& attention) const
  {
    const TransformerConfig& config = this->Model.GetConfig();
    const std::size_t group = config.heads / config.keyHeads;
    const std::string shared = group > 1 ? "_" : "";
    std::vector<std::pair<std::string, std::vector<double>>> tensors = { { "W_Q", {} },
      { "b_Q", {} }, { shared + "W_K", {} }, { shared + "b_K", {} }, { shared + "W_V", {} },
      { shared + "b_V", {} }, { "W_O", {} }, { "b_O", Flat(attention.outputBias) } };
    for (std::size_t h = 0; h < attention.heads.size(); ++h)
    {
      const ProcessedHead& head = attention.heads[h];
      Append(tensors[0].second, Flat(head.query));
      Append(tensors[1].second, Flat(head.queryBias));
      Append(tensors[6].second, Flat(head.output));
      if (h % group == 0)
      {
        Append(tensors[2].second, Flat(head.key));
        Append(tensors[3].second, Flat(head.keyBias));
        Append(tensors[4].second, Flat(head.value));
        Append(tensors[5].second, Flat(head.valueBias));
      }
    }
    return tensors;
  }
};

/// The processed weights, and as a model of their own the logits expected.
TEST_P(OfProcessed, WeightsAndLogitsAreExpected)
{
  const Tensors tensors = ProcessedTensors(this->Model);
  TensorViews views;
  std::set<std::string> compared = { "processed.logits" }; // below
  for (const auto& [name, tensor] : tensors)
  {
    views[name] = tensor.View();
    const auto expected = this->Expected.Tensors().find("processed." + name);
    if (expected != this->Expected.Tensors().end())
    {
      EXPECT_EQ(tensor.shape, expected->second.shape) << name;
      this->Expect("processed." + name, tensor.View().ToDouble(), Tolerance);
      compared.insert("processed." + name);
    }
  }
  for (const auto& [name, view] : this->Expected.Tensors())
  {
    const bool isProcessed = name.rfind("processed.", 0) == 0;
    EXPECT_TRUE(!isProcessed || compared.count(name) == 1) << name;
  }
  const Transformer processed(this->Model.GetConfig(), WeightFiles(views, "processed"));
  RecordOptions options;
  options.logits = true;
  const TensorView& ids = this->Expected.Tensors().at("input_ids");
  const std::vector<std::int64_t> all = ids.ToInteger();
  TransformerInput input;
  for (std::int64_t b = 0; b < ids.shape[0]; ++b)
  {
    const auto begin = all.begin() + b * ids.shape[1];
    input.tokens.emplace_back(begin, begin + ids.shape[1]);
  }
  const Recording recording = RecordTransformer(processed, input, options);
  const SharedMatrix& logits = recording.logits;
  this->Expect(
    "processed.logits", { logits.values.get(), logits.values.get() + logits.Count() }, Tolerance);
}

TEST_P(OfProcessed, RefactoredWeightsAreExpected)
{
  if (this->Model.GetConfig().position == PositionKind::Rotary)
  {
    EXPECT_THAT(
      MessageOf<ModelError>([&] { ProcessedWeights(this->Model, WeightSteps::Refactored); }),
      AllOf(HasSubstr("refactored weights: expected"), HasSubstr("found llama with a rotary")));
    return;
  }
  const ProcessedWeights weights(this->Model, WeightSteps::Refactored);
  for (std::int64_t l = 0; l < this->Model.GetConfig().layers; ++l)
  {
    for (const auto& [name, values] : this->TensorsOf(weights.Attention(l)))
    {
      this->Expect(
        "refactored.blocks." + std::to_string(l) + ".attn." + name, values, RefactoredTolerance);
    }
  }
}

/// What is recorded of the original model is what the refactored weights give of the same input.
TEST_P(OfProcessed, BasesChangeRecordedVectors)
{
  if (this->Model.GetConfig().position == PositionKind::Rotary)
  {
    return;
  }
  const ProcessedAttention head =
    ProcessedWeights(this->Model, WeightSteps::TransformerLens).Attention(1);
  const ProcessedAttention refactored =
    ProcessedWeights(this->Model, WeightSteps::Refactored).Attention(1);
  for (std::size_t h = 0; h < head.heads.size(); ++h)
  {
    const ProcessedHead& before = head.heads[h];
    const ProcessedHead& after = refactored.heads[h];
    const RefactoredBasis basis = BasisOf(before, after);
    ExpectClose("query", Flat(DoubleMatrix(before.query * basis.query)), Flat(after.query), 1e-12);
    ExpectClose("bias of query", Flat(Eigen::RowVectorXd(before.queryBias * basis.query)),
      Flat(after.queryBias), 1e-12);
    ExpectClose("key", Flat(DoubleMatrix(before.key * basis.key)), Flat(after.key), 1e-12);
    ExpectClose("value", Flat(DoubleMatrix(before.value * basis.value)), Flat(after.value), 1e-12);
    ExpectClose("value and output", Flat(DoubleMatrix(after.value * after.output)),
      Flat(DoubleMatrix(before.value * before.output)), 1e-12);
  }
}

/// The weights as in the file, of which the processed ones are a closed form.
TEST_P(OfProcessed, FoldingScalesAndCenters)
{
  const ProcessedWeights stored(this->Model, WeightSteps::Stored);
  const ProcessedWeights processed(this->Model, WeightSteps::TransformerLens);
  if (this->Model.GetConfig().norm == NormKind::None)
  {
    const ProcessedHead a = stored.Attention(0).heads[1];
    const ProcessedHead b = processed.Attention(0).heads[1];
    EXPECT_EQ(a.query, b.query);
    EXPECT_EQ(a.output, b.output);
    return;
  }
  const NormTensors& norm = this->Model.GetWeights().layers[0].attentionNorm;
  const std::vector<double> gain = norm.gain.ToDouble();
  const ProcessedHead a = stored.Attention(0).heads[1];
  ProcessedHead b = processed.Attention(0).heads[1];
  // Folding, undone but for the centering of each column.
  const Eigen::Map<const Eigen::VectorXd> gains(gain.data(), this->Dimension);
  DoubleMatrix folded = gains.asDiagonal() * a.query;
  if (this->Model.GetConfig().norm == NormKind::LayerNorm)
  {
    folded.rowwise() -= folded.colwise().mean().eval();
  }
  ExpectClose("folded", Flat(b.query), Flat(folded), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Models, OfProcessed, OfProcessed::Models(), OfProcessed::Name);

/// Log-probabilities of today's architectures with processed weights, beside those with the stored
/// ones; or they are refused.
TEST(ProcessedWeights, OfOtherArchitecturesPredictTheSame)
{
  int compared = 0;
  for (const std::string name : { "gemma", "gemma2", "gpt_neox", "gptj", "llama3", "mistral",
         "olmo", "opt", "phi", "phi3", "qwen2", "qwen2-tied", "qwen3-v5", "stablelm" })
  {
    const std::filesystem::path folder = atlas::test::ModelsOracle("transformers/" + name);
    if (folder.empty())
    {
      continue;
    }
    const Transformer model = Transformer::Read(folder);
    Tensors tensors;
    try
    {
      tensors = ProcessedTensors(model);
    }
    catch (const ModelError&)
    {
      continue;
    }
    TensorViews views;
    for (const auto& [tensor, values] : tensors)
    {
      views.emplace(tensor, values.View());
    }
    const Transformer processed(model.GetConfig(), WeightFiles(views, "processed"));
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5, 9, 2, 6 } };
    RecordOptions options;
    options.logits = true;
    const SharedMatrix stored = RecordTransformer(model, input, options).logits;
    const SharedMatrix found = RecordTransformer(processed, input, options).logits;
    ASSERT_EQ(found.columns, stored.columns) << name;
    for (std::int64_t row = 0; row < stored.rows; ++row)
    {
      // Processing may add a constant to all logits of a token.
      const double shift =
        static_cast<double>(found.Row(row)[0]) - static_cast<double>(stored.Row(row)[0]);
      for (std::int64_t c = 0; c < stored.columns; ++c)
      {
        ASSERT_NEAR(static_cast<double>(found.Row(row)[c]) - shift,
          static_cast<double>(stored.Row(row)[c]), 1e-3)
          << name << ", token " << row << ", logit " << c;
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

TEST(ProcessedWeights, RefuseWhatCannotBeProcessed)
{
  const Transformer bert = Transformer::Read(TransformerOracle::Folder("bert"));
  EXPECT_THAT(MessageOf<ModelError>([&] { ProcessedWeights(bert, WeightSteps::TransformerLens); }),
    AllOf(HasSubstr("weight processing: expected a model whose normalizations come before"),
      HasSubstr("found bert")));
  const ProcessedWeights stored(bert, WeightSteps::Stored);
  EXPECT_EQ(stored.Attention(0).heads.size(), 4U);
}

/// Without an unembedding the rest can still be processed.
TEST(ProcessedWeights, NeedNoUnembedding)
{
  const Transformer vit = Transformer::Read(TransformerOracle::Folder("vit"));
  const ProcessedWeights weights(vit, WeightSteps::TransformerLens);
  EXPECT_EQ(weights.OutputVocabulary(), 0);
  EXPECT_THAT(MessageOf<ModelError>([&] { ProcessedTensors(vit); }),
    HasSubstr("expected a model of text, found vit"));
  const DoubleMatrix query = weights.Attention(1).heads[0].query;
  EXPECT_LE(query.colwise().mean().cwiseAbs().maxCoeff(), 1e-15);
}

/// The bytes do not depend on the threads.
TEST(ProcessedWeights, AreTheSameOnAnyNumberOfThreads)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  const ProcessedWeights one(model, WeightSteps::TransformerLens, 1);
  const ProcessedWeights four(model, WeightSteps::TransformerLens, 4);
  EXPECT_EQ(one.UnembeddingBias(), four.UnembeddingBias());
  EXPECT_EQ(one.UnembeddingColumns(7, 150), four.UnembeddingColumns(7, 150));
}

/// The weights of a decoder's own heads can be read as they are stored, but what they write is
/// changed by its attention to the encoder.
TEST(ProcessedWeights, OfDecodersBesideEncodersAreStoredOnes)
{
  for (const std::string name : { "t5", "bart" })
  {
    const Transformer model = Transformer::Read(ModelsOracle("transformers/" + name));
    EXPECT_EQ(MessageOf<ModelError>([&] { ProcessedWeights(model, WeightSteps::TransformerLens); }),
      "weight processing: expected a model without an encoder beside its decoder, found " + name +
        ".");
    EXPECT_FALSE(IsProcessable(model.GetConfig()));
    const ProcessedWeights stored(model, WeightSteps::Stored);
    const DoubleMatrix query = stored.Attention(1).heads[2].query;        // [d_model, d_head]
    const TensorView& weight = model.GetWeights().layers[1].query.weight; // [H d_head, d_model]
    for (Eigen::Index row = 0; row < query.rows(); ++row)
    {
      for (Eigen::Index column = 0; column < query.cols(); ++column)
      {
        const Eigen::Index place = (2 * query.cols() + column) * query.rows() + row;
        EXPECT_EQ(query(row, column), weight.At(static_cast<std::uint64_t>(place)));
      }
    }
    EXPECT_EQ(MessageOf<ModelError>([&] { stored.UnembeddingColumns(0, 1); }),
      "the unembedding of the residual stream: expected a model without an encoder beside its "
      "decoder, found " +
        name + ".");
  }
}

}
