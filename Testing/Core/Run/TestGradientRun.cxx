#include "Run/GradientRun.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "OracleFile.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Of the largest magnitude of an array: what the issue asks for.
constexpr double Tolerance = 1e-5;

TransformerInput InputOf(const std::vector<std::int64_t>& tokens)
{
  TransformerInput input;
  input.tokens = { tokens };
  return input;
}

/// A model of the oracle, its run, and what torch computed.
class OfGradients : public testing::TestWithParam<std::string>
{
public:
  static std::string Name(const testing::TestParamInfo<std::string>& info) { return info.param; }
  static std::filesystem::path Folder(const std::string& name)
  {
    return std::filesystem::path(ATLAS_ORACLE_DIR) / "gradients" / name;
  }

protected:
  OracleFile Oracle{ Folder(GetParam()) / "expected.safetensors" };
  Transformer Model = Transformer::Read(Folder(GetParam()));
  TransformerInput Input = InputOf(this->Oracle.Integers("input_ids"));
  std::int64_t Length = static_cast<std::int64_t>(this->Input.tokens[0].size());
  LogitPair Logits = { this->Oracle.Integers("pair")[0], this->Oracle.Integers("pair")[1],
    this->Length - 1 };
  GradientRun Gradient{ this->Model, this->Length, 2 };

  DoubleMatrix Expected(const std::string& name) const
  {
    const Shape& shape = this->Oracle.ShapeOf("gradient." + name);
    const std::vector<double> values = this->Oracle.Values("gradient." + name);
    const auto columns = static_cast<std::int64_t>(shape.back());
    return Eigen::Map<const DoubleMatrix>(
      values.data(), static_cast<std::int64_t>(values.size()) / columns, columns);
  }

  void ExpectNear(const DoubleMatrix& found, const std::string& name) const
  {
    const DoubleMatrix expected = this->Expected(name);
    ASSERT_EQ(found.rows(), expected.rows()) << name;
    ASSERT_EQ(found.cols(), expected.cols()) << name;
    const double largest = expected.cwiseAbs().maxCoeff();
    EXPECT_TRUE(largest > 0 || expected.rows() == 1) << name; // one row may be 0
    EXPECT_LE((found - expected).cwiseAbs().maxCoeff(), Tolerance * largest) << name;
  }

  /// The sum over heads that share keys.
  DoubleMatrix SumOfGroups(const DoubleMatrix& byHead) const
  {
    const TransformerConfig& config = this->Model.GetConfig();
    const std::int64_t d = config.headDimension;
    DoubleMatrix sums = DoubleMatrix::Zero(byHead.rows(), config.keyHeads * d);
    for (std::int64_t h = 0; h < config.heads; ++h)
    {
      sums.middleCols(h * config.keyHeads / config.heads * d, d) += byHead.middleCols(h * d, d);
    }
    return sums;
  }

  /// Queries, keys and values as the matrices of the architecture give them.
  void ExpectProjections(const RunLayer& layer, const std::string& prefix) const
  {
    const DoubleMatrix key = this->SumOfGroups(layer.key);
    const DoubleMatrix value = this->SumOfGroups(layer.value);
    DoubleMatrix all(key.rows(), 3 * key.cols());
    const std::int64_t d = this->Model.GetConfig().headDimension;
    if (this->Oracle.Has("gradient." + prefix + "c_attn"))
    {
      all << layer.query, key, value;
      this->ExpectNear(all, prefix + "c_attn");
    }
    else if (this->Oracle.Has("gradient." + prefix + "query_key_value"))
    {
      for (std::int64_t h = 0; h < this->Model.GetConfig().heads; ++h)
      {
        all.middleCols(3 * h * d, 3 * d) << layer.query.middleCols(h * d, d),
          key.middleCols(h * d, d), value.middleCols(h * d, d);
      }
      this->ExpectNear(all, prefix + "query_key_value");
    }
    else
    {
      this->ExpectNear(layer.query, prefix + "q_proj");
      this->ExpectNear(key, prefix + "k_proj");
      this->ExpectNear(value, prefix + "v_proj");
    }
  }
};

TEST_P(OfGradients, AreThoseOfTorch)
{
  const TracedRun run = this->Gradient.Run(this->Gradient.Embed(this->Input));
  EXPECT_NEAR(this->Gradient.Difference(run, this->Logits), this->Oracle.Values("difference")[0],
    Tolerance * std::abs(this->Oracle.Values("difference")[0]));
  const RunGradients found = this->Gradient.Differentiate(run, this->Logits, true);
  const std::size_t layers = found.layers.size();
  for (std::size_t l = 0; l < layers; ++l)
  {
    const LayerGradients& layer = found.layers[l];
    const std::string prefix = std::to_string(l) + ".";
    this->ExpectNear(layer.residual, "hidden." + std::to_string(l));
    this->ExpectNear(layer.heads, prefix + "heads");
    const bool isFirst = GetParam() == "opt"; // of which the file has that of the first token alone
    this->ExpectNear(isFirst ? DoubleMatrix(layer.mlp.topRows(1)) : layer.mlp, prefix + "mlp");
    DoubleMatrix attention(layer.attention.size() * this->Length, this->Length);
    for (std::size_t h = 0; h < layer.attention.size(); ++h)
    {
      attention.middleRows(static_cast<std::int64_t>(h) * this->Length, this->Length) =
        layer.attention[h];
    }
    this->ExpectNear(attention, prefix + "attention");
    this->ExpectProjections(layer, prefix);
  }
  this->ExpectNear(found.normed, "hidden." + std::to_string(layers));
}

TEST_P(OfGradients, AreLimitsOfDifferences)
{
  const DoubleMatrix embedding = this->Gradient.Embed(this->Input);
  const TracedRun run = this->Gradient.Run(embedding);
  const RunGradients found = this->Gradient.Differentiate(run, this->Logits);
  std::srand(11);
  const DoubleMatrix direction = DoubleMatrix::Random(embedding.rows(), embedding.cols());
  const double step = 1e-5;
  const auto at = [&](double factor)
  {
    return this->Gradient.Difference(
      this->Gradient.Run(embedding + factor * step * direction), this->Logits);
  };
  const double slope = (at(1) - at(-1)) / (2 * step);
  EXPECT_NEAR((found.layers[0].residual.array() * direction.array()).sum(), slope,
    1e-6 * (1 + std::abs(slope)));
  // The z of a head, and what an MLP gives, by runs in which they are replaced.
  const std::int64_t heads = this->Model.GetConfig().heads;
  const std::int64_t d = this->Model.GetConfig().headDimension;
  const auto patched = [&](double factor, bool isHead)
  {
    TracedRun other = run;
    other.layers[0].heads.middleCols(d, d) += factor * step * direction.leftCols(d); // of head 1
    other.layers[1].mlp += factor * step * direction;
    PatchedNodes nodes = { &other, std::vector<bool>(2 * heads), std::vector<bool>(2) };
    nodes.heads[1] = isHead;
    nodes.mlps[1] = !isHead;
    return this->Gradient.Difference(this->Gradient.Run(embedding, nodes), this->Logits);
  };
  const double byHead = (patched(1, true) - patched(-1, true)) / (2 * step);
  EXPECT_NEAR(
    (found.layers[0].heads.middleCols(d, d).array() * direction.leftCols(d).array()).sum(), byHead,
    1e-6 * (1 + std::abs(byHead)));
  const double byMlp = (patched(1, false) - patched(-1, false)) / (2 * step);
  EXPECT_NEAR(
    (found.layers[1].mlp.array() * direction.array()).sum(), byMlp, 1e-6 * (1 + std::abs(byMlp)));
}

TEST_P(OfGradients, OfALossAreLimitsOfDifferences)
{
  const DoubleMatrix embedding = this->Gradient.Embed(this->Input);
  const TracedRun run = this->Gradient.Run(embedding);
  const std::vector<std::int64_t>& tokens = this->Input.tokens.front();
  // By the logits in single precision.
  double sum = 0;
  for (std::int64_t t = 0; t + 1 < this->Length; ++t)
  {
    const std::vector<float> logits = this->Gradient.Logits(run, t);
    double exponentials = 0;
    for (const float logit : logits)
    {
      exponentials += std::exp(static_cast<double>(logit));
    }
    sum += std::log(exponentials) - static_cast<double>(logits[tokens[t + 1]]);
  }
  const double loss = this->Gradient.Loss(run, tokens);
  EXPECT_NEAR(loss, sum / static_cast<double>(this->Length - 1), 1e-5 * loss);
  const RunGradients found = this->Gradient.DifferentiateLoss(run, tokens);
  EXPECT_TRUE((found.normed.bottomRows(1).array() == 0).all()); // nothing follows the last token
  std::srand(12);
  const DoubleMatrix direction = DoubleMatrix::Random(embedding.rows(), embedding.cols());
  const double step = 1e-5;
  const auto at = [&](double factor)
  {
    return this->Gradient.Loss(this->Gradient.Run(embedding + factor * step * direction), tokens);
  };
  const double slope = (at(1) - at(-1)) / (2 * step);
  EXPECT_NEAR((found.layers[0].residual.array() * direction.array()).sum(), slope,
    1e-6 * (1 + std::abs(slope)));
  const auto fromLast = [&](double factor)
  {
    return this->Gradient.Loss(
      this->Gradient.RunFrom(1, run.layers[1].residual + factor * step * direction), tokens);
  };
  const double byLast = (fromLast(1) - fromLast(-1)) / (2 * step);
  EXPECT_NEAR((found.layers[1].residual.array() * direction.array()).sum(), byLast,
    1e-6 * (1 + std::abs(byLast)));
}

/// The gradient of what a layer reads is what goes by, plus what its heads and its MLP read.
TEST_P(OfGradients, AddUpOverReaders)
{
  const TracedRun run = this->Gradient.Run(this->Gradient.Embed(this->Input));
  const RunGradients found = this->Gradient.Differentiate(run, this->Logits);
  const TransformerConfig& config = this->Model.GetConfig();
  DoubleMatrix sum = found.residual;
  for (std::int64_t l = config.layers; l-- > 0;)
  {
    sum += found.layers[l].byMlp;
    for (std::int64_t h = 0; h < config.heads; ++h)
    {
      for (const HeadInput input : { HeadInput::Query, HeadInput::Key, HeadInput::Value })
      {
        sum += this->Gradient.ByHead(run, found, l, h, input);
      }
    }
    const double largest = sum.cwiseAbs().maxCoeff();
    EXPECT_LE((sum - found.layers[l].residual).cwiseAbs().maxCoeff(), 1e-12 * largest);
  }
}

/// What a head writes changes as its z does, and the gradients of both agree.
TEST_P(OfGradients, AgreeOnWhatIsWritten)
{
  const TracedRun run = this->Gradient.Run(this->Gradient.Embed(this->Input));
  const RunGradients found = this->Gradient.Differentiate(run, this->Logits);
  const std::int64_t d = this->Model.GetConfig().headDimension;
  const auto& last = found.layers.back();
  const std::int64_t layer = this->Model.GetConfig().layers - 1;
  std::srand(12);
  const DoubleMatrix change = DoubleMatrix::Random(this->Length, d);
  const DoubleMatrix written = this->Gradient.WrittenByHead(run, layer, 1, change);
  DoubleMatrix read = found.residual;
  if (this->Model.GetConfig().order == SublayerOrder::Sequential)
  {
    read += last.byMlp;
  }
  const double expected = (last.heads.middleCols(d, d).array() * change.array()).sum();
  EXPECT_NEAR((written.array() * read.array()).sum(), expected, 1e-12 * (1 + std::abs(expected)));
}

/// The bound is not far above: it counts gates, and what W_O gives, of any model.
TEST_P(OfGradients, TakeAsMuchMemoryAsTold)
{
  const DoubleMatrix embedding = this->Gradient.Embed(this->Input);
  const TracedRun run = this->Gradient.Run(embedding);
  std::int64_t numbers = embedding.size() + run.residual.size() + run.normed.size();
  for (const TracedLayer& layer : run.layers)
  {
    for (const DoubleMatrix* part : { &layer.residual, &layer.query, &layer.key, &layer.value,
           &layer.heads, &layer.mlp, &layer.attended, &layer.middle, &layer.up, &layer.gate })
    {
      numbers += part->size();
    }
  }
  const double told = TracedMemory(this->Model, this->Length) / sizeof(double);
  EXPECT_GE(told, numbers);
  EXPECT_LE(told, 1.5 * static_cast<double>(numbers));
}

INSTANTIATE_TEST_SUITE_P(Torch, OfGradients,
  testing::Values(
    "gemma", "gemma2", "gpt2", "gpt_neox", "llama", "mistral", "opt", "qwen2", "qwen3"),
  OfGradients::Name);

TEST(GradientRun, IsEqualForAnyNumberOfThreads)
{
  const Transformer model = Transformer::Read(OfGradients::Folder("qwen3"));
  const TransformerInput input = InputOf({ 3, 8, 1, 20, 7, 7, 2 });
  const LogitPair logits = { 4, 9, 6 };
  const auto of = [&](int threads)
  {
    const GradientRun gradient(model, 7, threads);
    return gradient.Differentiate(gradient.Run(gradient.Embed(input)), logits).layers[0].residual;
  };
  EXPECT_EQ(of(1), of(3));
}

TEST(GradientRun, RefusesWhatItDoesNotKnow)
{
  const auto message = [](const std::string& name)
  {
    const Transformer model = Transformer::Read(TransformerOracle::Folder(name) / "config.json");
    return MessageOf<ModelError>([&] { CheckGradients(model); });
  };
  EXPECT_EQ(message("bert"), "gradients: expected a model with causal attention, found bert, whose "
                             "tokens attend to later ones.");
  EXPECT_EQ(message("vit"), "gradients: expected a model of texts, found vit, which reads images.");
}

TEST(GradientRun, HasTheSameLogitsWithRoundedProducts)
{
  Transformer model = Transformer::Read(OfGradients::Folder("llama"));
  const auto logits = [&]
  {
    const GradientRun gradient(model, 4, 1);
    return gradient.Logits(gradient.Run(gradient.Embed(InputOf({ 3, 8, 1, 20 }))), 3);
  };
  const std::vector<float> single = logits();
  model.SetProducts(ProductPrecision::Bfloat16);
  EXPECT_EQ(logits(), single);
}

}
