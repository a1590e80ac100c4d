#include "Learning/TransformerTrainer.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "Learning/Internal/AdamW.h"
#include "Learning/Internal/GradientPass.h"
#include "Run/RecordTransformer.h"
#include "TestName.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;

namespace
{

using nlohmann::json;

/// Sixty steps of a small model, computed with torch (Testing/Oracle/learning/README.md).
class LearningOracle
{
public:
  explicit LearningOracle(const std::string& name)
    : File(std::filesystem::path(ATLAS_ORACLE_DIR) / "learning" / (name + ".safetensors"))
    , Settings(json::parse(this->File.GetMetadata().at("config")))
    , Training(json::parse(this->File.GetMetadata().at("hyperparameters")))
  {
  }

  const TensorView& Get(const std::string& name) const { return this->File.GetTensors().at(name); }
  bool Has(const std::string& name) const { return this->File.GetTensors().count(name) != 0; }

  /// The tensors whose names begin with "PREFIX.".
  TensorViews Group(const std::string& prefix) const
  {
    TensorViews views;
    for (const auto& [name, view] : this->File.GetTensors())
    {
      if (name.rfind(prefix + ".", 0) == 0)
      {
        views.emplace(name.substr(prefix.size() + 1), view);
      }
    }
    return views;
  }

  std::set<std::string> Decayed() const
  {
    const json names = json::parse(this->File.GetMetadata().at("decayed"));
    return names.get<std::set<std::string>>();
  }

  TransformerConfig Config() const
  {
    const std::string kind = this->File.GetMetadata().at("kind");
    if (kind == "lm")
    {
      return this->LensConfig();
    }
    json settings = this->Settings;
    TransformerConfig config = ParseTransformerConfig(settings.dump(), "oracle");
    config.outputVocabulary = settings.value("num_labels", config.vocabulary);
    return config;
  }

  OptimizerOptions Optimizer() const
  {
    const json& t = this->Training;
    OptimizerOptions options;
    options.rate = t["lr"];
    options.finalRate = t["lr_min"];
    options.schedule = t["schedule"] == "cosine" ? RateSchedule::Cosine : RateSchedule::Constant;
    options.warmup = t["warmup"];
    options.beta1 = t["betas"][0];
    options.beta2 = t["betas"][1];
    options.epsilon = t["eps"];
    options.weightDecay = t["weight_decay"];
    options.decayRule = t["decay"] == "all"      ? DecayRule::All
                        : t["decay"] == "blocks" ? DecayRule::Blocks
                                                 : DecayRule::Matrices;
    options.clip = t["clip"];
    return options;
  }

  TrainingBatch Batch(std::int64_t step) const
  {
    return this->Has("batch.input_ids") ? this->TokenBatch(step) : this->ImageBatch(step);
  }

private:
  SafetensorsFile File;
  json Settings;
  json Training;

  TransformerConfig LensConfig() const
  {
    const json& s = this->Settings;
    TransformerConfig config;
    config.architecture = "transformer_lens";
    config.layers = s["n_layers"];
    config.heads = s["n_heads"];
    config.keyHeads = s.value("n_key_value_heads", config.heads);
    config.modelDimension = s["d_model"];
    config.headDimension = s["d_head"];
    config.mlpDimension = s["attn_only"].get<bool>() ? 0 : s["d_mlp"].get<std::int64_t>();
    config.vocabulary = s["d_vocab"];
    config.outputVocabulary = s.value("d_vocab_out", config.vocabulary);
    config.positions = s["n_ctx"];
    const std::string norm =
      s["normalization_type"].is_null() ? "" : s["normalization_type"].get<std::string>();
    config.norm = norm == "LN"    ? NormKind::LayerNorm
                  : norm == "RMS" ? NormKind::RmsNorm
                                  : NormKind::None;
    config.epsilon = s["eps"];
    config.finalNorm = s["final_norm"];
    config.embeddingNorm = s.value("embed_norm", false);
    const std::string position = s["positional_embedding_type"];
    config.position = position == "shortformer" ? PositionKind::Shortformer
                      : position == "rotary"    ? PositionKind::Rotary
                      : position == "alibi"     ? PositionKind::Alibi
                                                : PositionKind::Learned;
    const std::string activation = s.value("act_fn", "gelu_new");
    config.activation = activation == "relu"   ? Activation::Relu
                        : activation == "silu" ? Activation::Silu
                                               : Activation::GeluTanh;
    config.gated = s.value("gated_mlp", false);
    config.inputBias = config.outputBias = s["biases"];
    config.mlpBias = s.value("mlp_biases", config.inputBias);
    config.tiedUnembedding = s["tied"];
    config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
    return config;
  }

  /// Row `step` of an integer tensor.
  std::vector<std::int64_t> Row(const std::string& name, std::int64_t step) const
  {
    const std::vector<std::int64_t> all = this->Get(name).ToInteger();
    const std::int64_t size = static_cast<std::int64_t>(all.size()) / this->Get(name).shape[0];
    return { all.begin() + step * size, all.begin() + (step + 1) * size };
  }

  TrainingBatch TokenBatch(std::int64_t step) const
  {
    const std::vector<std::int64_t> ids = this->Row("batch.input_ids", step);
    const std::vector<std::int64_t> targets = this->Row("batch.targets", step);
    const std::vector<std::int64_t> mask = this->Row("batch.loss_mask", step);
    const bool padded = this->Has("batch.attention_mask");
    const auto seen =
      padded ? this->Row("batch.attention_mask", step) : std::vector<std::int64_t>();
    const auto types =
      padded ? this->Row("batch.token_type_ids", step) : std::vector<std::int64_t>();
    const std::int64_t length = this->Get("batch.input_ids").shape[2];
    TrainingBatch batch;
    for (std::size_t i = 0; i < ids.size(); ++i)
    {
      if (i % ToIndex(length) == 0)
      {
        batch.input.tokens.emplace_back();
        if (padded)
        {
          batch.input.segments.emplace_back();
        }
      }
      if (padded && seen[i] == 0)
      {
        EXPECT_EQ(mask[i], 0);
        continue; // padding at the end, which no token sees
      }
      batch.input.tokens.back().push_back(ids[i]);
      if (padded)
      {
        batch.input.segments.back().push_back(types[i]);
      }
      batch.targets.push_back(mask[i] != 0 ? targets[i] : -1);
    }
    return batch;
  }

  TrainingBatch ImageBatch(std::int64_t step) const
  {
    const TensorView& pool = this->Get("batch.pixel_values");
    const auto size = static_cast<std::uint64_t>(pool.Count()) / ToIndex(pool.shape[0]);
    const TransformerConfig config = this->Config();
    const std::vector<std::int64_t> targets = this->Row("batch.targets", step);
    TrainingBatch batch;
    for (const std::int64_t image : this->Row("batch.image_index", step))
    {
      std::vector<float> pixels(size);
      pool.ToFloat(ToIndex(image) * size, ToIndex(image + 1) * size, pixels.data());
      batch.input.pixels.insert(batch.input.pixels.end(), pixels.begin(), pixels.end());
      batch.targets.push_back(targets[batch.input.images]);
      batch.targets.resize((++batch.input.images) * config.positions, -1);
    }
    return batch;
  }
};

constexpr std::array<const char*, 10> Variants = { "alibi", "attnonly-learned",
  "attnonly-learned-nofinal", "attnonly-shortformer", "bert-mlm", "gelu-mlp", "modular",
  "rotary-rms", "rotary-rms-gqa", "vit" };

/// The largest number of a tensor of the oracle.
double Largest(const TensorView& view)
{
  const std::vector<double> values = view.ToDouble();
  return Eigen::Map<const Eigen::VectorXd>(values.data(), view.Count()).cwiseAbs().maxCoeff();
}

/// A training in any precision, with the parts of TransformerTrainer.
template<class Number>
struct PlainTrainer
{
  explicit PlainTrainer(const LearningOracle& oracle)
    : parameters(oracle.Config(), oracle.Group("init"))
    , pass(parameters)
    , optimizer(parameters, oracle.Optimizer(), 60)
    , gradient(parameters.Size())
  {
  }

  double Step(const TrainingBatch& batch)
  {
    const double loss = this->pass.Gradient(batch, 2, this->gradient.data());
    this->norm = this->optimizer.Norm(this->gradient.data(), 2);
    this->optimizer.Update(this->parameters.Values(), this->gradient.data(), this->norm, 2);
    return loss;
  }

  ParameterBlock<Number> parameters;
  GradientPass<Number> pass;
  AdamW<Number> optimizer;
  std::vector<Number> gradient;
  double norm = 0;
};

struct Tolerances
{
  double earlyLoss;
  double lateLoss;
  double gradient;
  double weights;
};

/// Compares sixty steps with the oracle, at the tolerances of its README.
template<class Number>
void CompareWithOracle(const std::string& name, const Tolerances& tolerances)
{
  const LearningOracle oracle(name);
  PlainTrainer<Number> trainer(oracle);
  const std::vector<double> losses = oracle.Get("loss64").ToDouble();
  const std::vector<double> norms = oracle.Get("grad_norm64").ToDouble();
  for (std::int64_t step = 0; step < 60; ++step)
  {
    const double loss = trainer.Step(oracle.Batch(step));
    const double expected = losses[step];
    ASSERT_NEAR(
      loss, expected, std::abs(expected) * (step < 20 ? tolerances.earlyLoss : tolerances.lateLoss))
      << "step " << step;
    if (step > 0)
    {
      continue;
    }
    EXPECT_NEAR(trainer.norm, norms[0], norms[0] * tolerances.gradient);
    for (const Parameter& parameter : trainer.parameters.GetParameters())
    {
      const std::vector<double> reference = oracle.Get("grad0." + parameter.name).ToDouble();
      double square = 0;
      double difference = 0;
      for (std::size_t i = 0; i < reference.size(); ++i)
      {
        const double found = trainer.gradient[ToIndex(parameter.first) + i];
        square += reference[i] * reference[i];
        difference += (found - reference[i]) * (found - reference[i]);
      }
      const double scale = Largest(oracle.Get("grad0." + parameter.name)) < 1e-12
                             ? 0.1 * norms[0] // a key bias, whose gradient is 0
                             : std::sqrt(square);
      EXPECT_LT(std::sqrt(difference), scale * tolerances.gradient) << parameter.name;
    }
  }
  for (const Parameter& parameter : trainer.parameters.GetParameters())
  {
    if (Largest(oracle.Get("grad0." + parameter.name)) < 1e-12)
    {
      continue; // rounding noise
    }
    const std::vector<double> reference = oracle.Get("final." + parameter.name).ToDouble();
    for (std::size_t i = 0; i < reference.size(); ++i)
    {
      ASSERT_NEAR(
        trainer.parameters.Values()[ToIndex(parameter.first) + i], reference[i], tolerances.weights)
        << parameter.name << " " << i;
    }
  }
}

using Variant = testing::TestWithParam<const char*>;

TEST_P(Variant, SixtyStepsInDoublePrecisionAreThoseOfTorch)
{
  CompareWithOracle<double>(GetParam(), { 1e-12, 1e-10, 1e-10, 1e-8 });
}

TEST_P(Variant, SixtyStepsInSinglePrecisionAreThoseOfTorch)
{
  CompareWithOracle<float>(GetParam(), { 2e-6, 1e-5, 1e-5, 1e-4 });
}

TEST_P(Variant, ParametersAndTheirDecayAreThoseOfTheOracle)
{
  const LearningOracle oracle(GetParam());
  const TensorViews init = oracle.Group("init");
  const auto shapes = ParameterShapes(oracle.Config());
  EXPECT_EQ(shapes.size(), init.size());
  for (const auto& [name, view] : init)
  {
    ASSERT_EQ(shapes.count(name), 1U) << name;
    EXPECT_EQ(shapes.at(name), view.shape) << name;
    EXPECT_EQ(Decays(oracle.Optimizer().decayRule, name), oracle.Decayed().count(name) == 1)
      << name;
  }
}

TEST_P(Variant, RatesAreThoseOfTheOracle)
{
  const LearningOracle oracle(GetParam());
  const std::vector<double> rates = oracle.Get("lr").ToDouble();
  for (std::int64_t step = 0; step < 60; ++step)
  {
    EXPECT_NEAR(RateOf(oracle.Optimizer(), step, 60), rates[step], 1e-15);
  }
}

void ExpectEqual(const Tensors& found, const Tensors& expected)
{
  for (const auto& [name, tensor] : found)
  {
    EXPECT_EQ(tensor.bytes, expected.at(name).bytes) << name;
  }
}

Tensors OwnedTensors(const TensorViews& views)
{
  Tensors tensors;
  for (const auto& [name, view] : views)
  {
    tensors.emplace(name, Tensor::FromDouble(DType::F32, view.shape, view.ToDouble()));
  }
  return tensors;
}

TEST_P(Variant, BytesDoNotDependOnThreads)
{
  const LearningOracle oracle(GetParam());
  std::vector<Tensors> results;
  for (const int threads : { 1, 2, 5 })
  {
    TransformerTrainer trainer(
      oracle.Config(), OwnedTensors(oracle.Group("init")), oracle.Optimizer(), 60, threads);
    for (std::int64_t step = 0; step < 3; ++step)
    {
      trainer.Step(oracle.Batch(step));
    }
    results.push_back(trainer.Weights());
  }
  ExpectEqual(results[1], results[0]);
  ExpectEqual(results[2], results[0]);
}

TEST_P(Variant, ContinuesFromItsStateToTheByte)
{
  const LearningOracle oracle(GetParam());
  const Tensors init = OwnedTensors(oracle.Group("init"));
  TransformerTrainer whole(oracle.Config(), init, oracle.Optimizer(), 60);
  TransformerTrainer first(oracle.Config(), init, oracle.Optimizer(), 60);
  TransformerTrainer second(oracle.Config(), init, oracle.Optimizer(), 60);
  for (std::int64_t step = 0; step < 6; ++step)
  {
    whole.Step(oracle.Batch(step));
    if (step < 3)
    {
      first.Step(oracle.Batch(step));
    }
  }
  const Tensors state = first.State();
  TensorViews views = ViewsOf(state);
  second.SetState(views);
  EXPECT_EQ(second.StepCount(), 3);
  for (std::int64_t step = 3; step < 6; ++step)
  {
    second.Step(oracle.Batch(step));
  }
  ExpectEqual(second.Weights(), whole.Weights());
  views.erase("step");
  EXPECT_THAT(MessageOf<Error>([&] { second.SetState(views); }), testing::HasSubstr("'step'"));
}

/// What is trained is what is recorded: the losses follow from the logits of the recorder.
TEST_P(Variant, LossIsThatOfTheRecordersLogits)
{
  const LearningOracle oracle(GetParam());
  if (oracle.Config().input == InputKind::Images)
  {
    GTEST_SKIP() << "the recorder has no logits of images";
  }
  TransformerTrainer trainer(
    oracle.Config(), OwnedTensors(oracle.Group("init")), oracle.Optimizer(), 60);
  for (std::int64_t step = 0; step < 5; ++step)
  {
    trainer.Step(oracle.Batch(step));
  }
  const TrainingBatch batch = oracle.Batch(5);
  RecordOptions options;
  options.logits = true;
  const SharedMatrix all = RecordTransformer(trainer.GetModel(), batch.input, options).logits;
  const BatchEvaluation evaluation = EvaluateBatch(trainer.GetModel(), batch);
  double sum = 0;
  int count = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row)
  {
    if (batch.targets[row] < 0)
    {
      EXPECT_EQ(evaluation.predicted[row], -1);
      continue;
    }
    const float* logits = all.Row(static_cast<std::int64_t>(row));
    const std::int64_t classes = all.columns;
    const double largest = *std::max_element(logits, logits + classes);
    double total = 0;
    for (std::int64_t c = 0; c < classes; ++c)
    {
      total += std::exp(logits[c] - largest);
    }
    const double loss = std::log(total) + largest - logits[batch.targets[row]];
    EXPECT_NEAR(evaluation.rowLoss[row], loss, 2e-5);
    sum += loss;
    ++count;
  }
  EXPECT_NEAR(evaluation.loss, sum / count, 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Oracle, Variant, testing::ValuesIn(Variants),
  [](const auto& variant) { return TestName(variant.param); });

/// Gradients of options that no oracle has, against central differences.
class Gradients : public testing::TestWithParam<int>
{
protected:
  static TransformerConfig Config(int which)
  {
    TransformerConfig config;
    config.architecture = "transformer_lens";
    config.layers = 2;
    config.heads = config.keyHeads = 2;
    config.modelDimension = 8;
    config.headDimension = 4;
    config.vocabulary = config.outputVocabulary = 7;
    config.positions = 6;
    config.tiedUnembedding = false;
    config.attentionScale = 2;
    switch (which)
    {
      case 0: // no positions, bidirectional, MLP with GELU
        config.position = PositionKind::None;
        config.mask = AttentionMask::Bidirectional;
        config.mlpDimension = 12;
        config.activation = Activation::Gelu;
        break;
      case 1: // gated GELU, no normalization, scale by layer
        config.mlpDimension = 12;
        config.gated = true;
        config.mlpBias = false; // TransformerLens adds b_in behind the gate
        config.activation = Activation::GeluTanh;
        config.norm = NormKind::None;
        config.finalNorm = false;
        config.scaleByLayer = true;
        break;
      case 2: // rotary with shared keys, biases and RMS
        config.position = PositionKind::Rotary;
        config.norm = NormKind::RmsNorm;
        config.keyHeads = 1;
        break;
      case 3: // Shortformer with an MLP, tied, fewer dimensions than heads fill
        config.position = PositionKind::Shortformer;
        config.mlpDimension = 12;
        config.activation = Activation::Silu;
        config.headDimension = 3;
        config.tiedUnembedding = true;
        break;
      default: // ALiBi, bidirectional, attention only
        config.position = PositionKind::Alibi;
        config.mask = AttentionMask::Bidirectional;
    }
    return config;
  }
};

TEST_P(Gradients, AreCentralDifferences)
{
  const TransformerConfig config = Config(GetParam());
  // Large weights, so that attention and norms are far from linear.
  Tensors weights = InitialWeights(config, 1.5, 3);
  for (auto& [name, tensor] : weights)
  {
    std::vector<double> values = tensor.View().ToDouble();
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      values[i] += 0.3 * std::sin(static_cast<double>(i + name.size())); // biases and gains too
    }
    tensor = Tensor::FromDouble(DType::F32, tensor.shape, values);
  }
  ParameterBlock<double> parameters(config, ViewsOf(weights));
  GradientPass<double> pass(parameters);
  TrainingBatch batch;
  batch.input.tokens = { { 1, 4, 2, 6, 0, 3 }, { 5, 5, 1 }, { 0, 2, 2, 4 } };
  batch.targets = { 4, 2, -1, 0, 3, 1, 5, -1, 6, -1, 2, 4, -1 };
  std::vector<double> gradient(parameters.Size());
  pass.Gradient(batch, 1, gradient.data());
  const double norm =
    Eigen::Map<const Eigen::VectorXd>(gradient.data(), parameters.Size()).cwiseAbs().maxCoeff();
  constexpr double step = 1e-5;
  for (const Parameter& parameter : parameters.GetParameters())
  {
    for (std::int64_t i = 0; i < parameter.count; i += 1 + parameter.count / 23)
    {
      double& value = parameters.Values()[parameter.first + i];
      const double kept = value;
      value = kept + step;
      const double above = pass.Evaluate(batch, 1).loss;
      value = kept - step;
      const double below = pass.Evaluate(batch, 1).loss;
      value = kept;
      EXPECT_NEAR(gradient[parameter.first + i], (above - below) / (2 * step), 1e-6 * norm)
        << parameter.name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, Gradients, testing::Range(0, 5));

TEST(TransformerTrainer, KeepsTheWeightsBeforeADivergence)
{
  const LearningOracle oracle("gelu-mlp");
  OptimizerOptions optimizer = oracle.Optimizer();
  optimizer.rate = 1e30;
  optimizer.warmup = 0;
  TransformerTrainer trainer(oracle.Config(), OwnedTensors(oracle.Group("init")), optimizer, 60);
  std::string message;
  Tensors before;
  for (std::int64_t step = 0; step < 60 && message.empty(); ++step)
  {
    before = trainer.Weights();
    try
    {
      trainer.Step(oracle.Batch(step));
    }
    catch (const DivergenceError& e)
    {
      message = e.what();
    }
  }
  EXPECT_THAT(message,
    testing::AllOf(testing::HasSubstr("diverged in step "), testing::HasSubstr("LearningRate")));
  ExpectEqual(trainer.Weights(), before);
}

TEST(TransformerTrainer, BadArgumentsAreNamed)
{
  const LearningOracle oracle("gelu-mlp");
  const Tensors init = OwnedTensors(oracle.Group("init"));
  const auto expect = [&](const char* message, const auto& change)
  {
    OptimizerOptions optimizer = oracle.Optimizer();
    TrainingBatch batch = oracle.Batch(0);
    Tensors weights = init;
    change(optimizer, batch, weights);
    const auto step = [&]
    { TransformerTrainer(oracle.Config(), weights, optimizer, 60).Step(batch); };
    EXPECT_THAT(MessageOf<Error>(step), testing::HasSubstr(message));
  };
  using Options = OptimizerOptions;
  using Batch = TrainingBatch;
  expect("LearningRate", [](Options& o, auto&, auto&) { o.rate = 0; });
  expect("WeightDecay", [](Options& o, auto&, auto&) { o.weightDecay = std::nan(""); });
  expect("expected one for each of", [](auto&, Batch& b, auto&) { b.targets.pop_back(); });
  expect("expected less than 40", [](auto&, Batch& b, auto&) { b.targets[0] = 40; });
  expect("no row has one",
    [](auto&, Batch& b, auto&) { std::fill(b.targets.begin(), b.targets.end(), -1); });
  expect("99", [](auto&, Batch& b, auto&) { b.input.tokens[0][0] = 99; });
  expect("'embed.W_E'", [](auto&, auto&, Tensors& w) { w.erase("embed.W_E"); });
}

TEST(InitialWeights, FollowTheSeedAlone)
{
  const TransformerConfig config = LearningOracle("gelu-mlp").Config();
  const Tensors first = InitialWeights(config, 0.8, 1);
  EXPECT_EQ(first.at("embed.W_E").bytes, InitialWeights(config, 0.8, 1).at("embed.W_E").bytes);
  EXPECT_NE(first.at("embed.W_E").bytes, InitialWeights(config, 0.8, 2).at("embed.W_E").bytes);
  const std::vector<double> values = first.at("blocks.0.mlp.W_in").View().ToDouble();
  const double square = std::inner_product(values.begin(), values.end(), values.begin(), 0.);
  // 2,048 normal numbers: the standard error of the variance is 3 %.
  EXPECT_NEAR(square / static_cast<double>(values.size()) * 32, 0.64, 0.64 * 0.12);
  EXPECT_EQ(first.at("blocks.1.ln1.w").View().At(5), 1);
  EXPECT_EQ(first.at("blocks.1.attn.b_Q").View().At(5), 0);
}

}
