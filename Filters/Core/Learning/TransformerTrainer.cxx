#include "TransformerTrainer.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/AdamW.h"
#include "Internal/GradientPass.h"
#include "Internal/LearningRandom.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

using Shapes = std::map<std::string, Shape>;

/// A normalization by the name that its gain and shift begin with.
void AddNorm(Shapes& shapes, const std::string& name, const TransformerConfig& config)
{
  const bool isEncoder = config.architecture == "bert" || config.architecture == "vit";
  if (config.norm != NormKind::None)
  {
    shapes[name + (isEncoder ? ".weight" : ".w")] = { config.modelDimension };
  }
  if (config.norm == NormKind::LayerNorm)
  {
    shapes[name + (isEncoder ? ".bias" : ".b")] = { config.modelDimension };
  }
}

void AddLensAttention(Shapes& shapes, const std::string& prefix, const TransformerConfig& config)
{
  const std::int64_t d = config.modelDimension;
  const std::int64_t dimension = config.headDimension;
  const std::string shared = config.keyHeads == config.heads ? "" : "_";
  shapes[prefix + "attn.W_Q"] = { config.heads, d, dimension };
  shapes[prefix + "attn." + shared + "W_K"] = { config.keyHeads, d, dimension };
  shapes[prefix + "attn." + shared + "W_V"] = { config.keyHeads, d, dimension };
  shapes[prefix + "attn.W_O"] = { config.heads, dimension, d };
  if (config.inputBias)
  {
    shapes[prefix + "attn.b_Q"] = { config.heads, dimension };
    shapes[prefix + "attn." + shared + "b_K"] = { config.keyHeads, dimension };
    shapes[prefix + "attn." + shared + "b_V"] = { config.keyHeads, dimension };
  }
  if (config.outputBias)
  {
    shapes[prefix + "attn.b_O"] = { d };
  }
}

void AddLensMlp(Shapes& shapes, const std::string& prefix, const TransformerConfig& config)
{
  const std::int64_t d = config.modelDimension;
  const std::int64_t m = config.mlpDimension;
  shapes[prefix + "mlp.W_in"] = { d, m };
  shapes[prefix + "mlp.W_out"] = { m, d };
  if (config.gated)
  {
    shapes[prefix + "mlp.W_gate"] = { d, m };
  }
  if (config.mlpBias)
  {
    shapes[prefix + "mlp.b_in"] = { m };
    shapes[prefix + "mlp.b_out"] = { d };
    if (config.gated)
    {
      shapes[prefix + "mlp.b_gate"] = { m };
    }
  }
}

Shapes LensShapes(const TransformerConfig& config)
{
  const std::int64_t d = config.modelDimension;
  Shapes shapes;
  shapes["embed.W_E"] = { config.vocabulary, d };
  if (config.position == PositionKind::Learned || config.position == PositionKind::Shortformer)
  {
    shapes["pos_embed.W_pos"] = { config.positions, d };
  }
  if (config.embeddingNorm)
  {
    AddNorm(shapes, "embed.ln", config);
  }
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const std::string prefix = "blocks." + std::to_string(l) + ".";
    AddNorm(shapes, prefix + "ln1", config);
    AddLensAttention(shapes, prefix, config);
    if (config.mlpDimension > 0)
    {
      AddNorm(shapes, prefix + "ln2", config);
      AddLensMlp(shapes, prefix, config);
    }
  }
  if (config.finalNorm)
  {
    AddNorm(shapes, "ln_final", config);
  }
  if (!config.tiedUnembedding)
  {
    shapes["unembed.W_U"] = { d, config.outputVocabulary };
    if (config.outputBias)
    {
      shapes["unembed.b_U"] = { config.outputVocabulary };
    }
  }
  return shapes;
}

void AddLinear(Shapes& shapes, const std::string& name, std::int64_t outputs, std::int64_t inputs)
{
  shapes[name + ".weight"] = { outputs, inputs };
  shapes[name + ".bias"] = { outputs };
}

/// The layers of BERT and ViT, whose names differ in places.
void AddEncoderLayers(Shapes& shapes, const TransformerConfig& config)
{
  const bool isBert = config.architecture == "bert";
  const std::int64_t d = config.modelDimension;
  const std::int64_t all = config.heads * config.headDimension;
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const std::string prefix = config.architecture + ".encoder.layer." + std::to_string(l) + ".";
    const std::string heads = prefix + (isBert ? "attention.self." : "attention.attention.");
    AddLinear(shapes, heads + "query", all, d);
    AddLinear(shapes, heads + "key", all, d);
    AddLinear(shapes, heads + "value", all, d);
    AddLinear(shapes, prefix + "attention.output.dense", d, all);
    AddLinear(shapes, prefix + "intermediate.dense", config.mlpDimension, d);
    AddLinear(shapes, prefix + "output.dense", d, config.mlpDimension);
    AddNorm(shapes, prefix + (isBert ? "attention.output.LayerNorm" : "layernorm_before"), config);
    AddNorm(shapes, prefix + (isBert ? "output.LayerNorm" : "layernorm_after"), config);
  }
}

Shapes BertShapes(const TransformerConfig& config)
{
  const std::int64_t d = config.modelDimension;
  Shapes shapes;
  shapes["bert.embeddings.word_embeddings.weight"] = { config.vocabulary, d };
  shapes["bert.embeddings.position_embeddings.weight"] = { config.positions, d };
  shapes["bert.embeddings.token_type_embeddings.weight"] = { config.segments, d };
  AddNorm(shapes, "bert.embeddings.LayerNorm", config);
  AddEncoderLayers(shapes, config);
  AddLinear(shapes, "cls.predictions.transform.dense", d, d);
  AddNorm(shapes, "cls.predictions.transform.LayerNorm", config);
  shapes["cls.predictions.bias"] = { config.vocabulary };
  return shapes;
}

Shapes VitShapes(const TransformerConfig& config)
{
  const std::int64_t d = config.modelDimension;
  Shapes shapes;
  shapes["vit.embeddings.cls_token"] = { 1, 1, d };
  shapes["vit.embeddings.position_embeddings"] = { 1, config.positions, d };
  const std::string patches = "vit.embeddings.patch_embeddings.projection";
  shapes[patches + ".weight"] = { d, config.channels, config.patchHeight, config.patchWidth };
  shapes[patches + ".bias"] = { d };
  AddEncoderLayers(shapes, config);
  AddNorm(shapes, "vit.layernorm", config);
  AddLinear(shapes, "classifier", config.outputVocabulary, d);
  return shapes;
}

/// Gains are the only vectors of this name.
bool IsGain(const std::string& name, const Shape& shape)
{
  const std::string last = name.substr(name.rfind('.') + 1);
  return shape.size() == 1 && (last == "w" || last == "weight");
}

bool IsBias(const std::string& name)
{
  const std::string last = name.substr(name.rfind('.') + 1);
  return last == "b" || last == "bias" || last.find("b_") != std::string::npos;
}

void CheckOptimizer(const OptimizerOptions& options)
{
  const auto require = [](bool isRight, const char* name, const char* expected, double found)
  { ThrowIf<OptionError>(!isRight, name, ": expected ", expected, ", found ", found, "."); };
  require(options.rate > 0 && std::isfinite(options.rate), "LearningRate", "a positive number",
    options.rate);
  require(options.finalRate >= 0 && std::isfinite(options.finalRate), "FinalRate", "0 or more",
    options.finalRate);
  require(options.warmup >= 0, "Warmup", "0 or more", static_cast<double>(options.warmup));
  require(options.beta1 >= 0 && options.beta1 < 1, "Beta1", "0 <= Beta1 < 1", options.beta1);
  require(options.beta2 >= 0 && options.beta2 < 1, "Beta2", "0 <= Beta2 < 1", options.beta2);
  require(options.epsilon > 0, "Epsilon", "a positive number", options.epsilon);
  require(options.weightDecay >= 0 && std::isfinite(options.weightDecay), "WeightDecay",
    "0 or more", options.weightDecay);
  require(options.clip >= 0, "Clip", "0 or more", options.clip);
}

/// The tensors of a state whose names begin with `prefix`, without it.
TensorViews GroupOf(const TensorViews& state, const std::string& prefix)
{
  TensorViews group;
  for (const auto& [name, view] : state)
  {
    if (name.compare(0, prefix.size(), prefix) == 0)
    {
      group.emplace(name.substr(prefix.size()), view);
    }
  }
  return group;
}

}

std::map<std::string, Shape> ParameterShapes(const TransformerConfig& config)
{
  return config.architecture == "bert"  ? BertShapes(config)
         : config.architecture == "vit" ? VitShapes(config)
                                        : LensShapes(config);
}

Tensors InitialWeights(const TransformerConfig& config, double scale, std::uint64_t seed)
{
  const double deviation = scale / std::sqrt(static_cast<double>(config.modelDimension));
  LearningRandom random(seed, RandomPurpose::Weights);
  Tensors tensors;
  for (const auto& [name, shape] : ParameterShapes(config))
  {
    std::vector<double> values(ElementCount(shape).value_or(0), IsGain(name, shape) ? 1 : 0);
    if (!IsGain(name, shape) && !IsBias(name))
    {
      for (double& value : values)
      {
        value = deviation * random.Normal();
      }
    }
    tensors.emplace(name, Tensor::FromDouble(DType::F32, shape, values));
  }
  return tensors;
}

/// What a training changes, and what it needs for that.
struct TransformerTrainer::Impl
{
  ParameterBlock<float> parameters;
  GradientPass<float> pass;
  AdamW<float> optimizer;
  OptimizerOptions options;
  std::int64_t steps;
  int threads;
  std::vector<float> gradient;

  Impl(const TransformerConfig& config, const Tensors& weights, const OptimizerOptions& how,
    std::int64_t stepCount, int threadCount)
    : parameters(config, ViewsOf(weights))
    , pass(parameters)
    , optimizer(parameters, how, stepCount)
    , options(how)
    , steps(stepCount)
    , threads(threadCount)
    , gradient(parameters.Size())
  {
  }
};

TransformerTrainer::TransformerTrainer(const TransformerConfig& config, const Tensors& weights,
  const OptimizerOptions& optimizer, std::int64_t steps, int threads)
{
  CheckOptimizer(optimizer);
  this->Data = std::make_unique<Impl>(config, weights, optimizer, steps, threads);
}

TransformerTrainer::~TransformerTrainer() = default;

TrainingStep TransformerTrainer::Step(const TrainingBatch& batch)
{
  Impl& d = *this->Data;
  TrainingStep step;
  step.loss = d.pass.Gradient(batch, d.threads, d.gradient.data());
  step.gradientNorm = d.optimizer.Norm(d.gradient.data(), d.threads);
  step.rate = RateOf(d.options, d.optimizer.step, d.steps);
  ThrowIf<DivergenceError>(!std::isfinite(step.loss) || !std::isfinite(step.gradientNorm),
    "the training diverged in step ", d.optimizer.step,
    ": the loss or its gradient is not finite; expected a lower LearningRate or a longer Warmup.");
  d.optimizer.Update(d.parameters.Values(), d.gradient.data(), step.gradientNorm, d.threads);
  return step;
}

const Transformer& TransformerTrainer::GetModel() const
{
  return this->Data->parameters.GetModel();
}

Tensors TransformerTrainer::Weights() const
{
  return this->Data->parameters.ToTensors(this->Data->parameters.Values());
}

std::int64_t TransformerTrainer::StepCount() const
{
  return this->Data->optimizer.step;
}

Tensors TransformerTrainer::State() const
{
  const Impl& d = *this->Data;
  Tensors state;
  const auto add = [&](const std::string& prefix, const float* block)
  {
    for (auto& [name, tensor] : d.parameters.ToTensors(block))
    {
      state.emplace(prefix + name, tensor);
    }
  };
  add("weights.", d.parameters.Values());
  add("first.", d.optimizer.first.data());
  add("second.", d.optimizer.second.data());
  state.emplace("step", Tensor::FromInteger({}, { d.optimizer.step }));
  return state;
}

void TransformerTrainer::SetState(const TensorViews& state)
{
  Impl& d = *this->Data;
  const auto step = state.find("step");
  if (step == state.end() || IsFloating(step->second.dtype) || step->second.Count() != 1)
  {
    throw ModelError("the state of a training: expected a tensor 'step' with one integer.");
  }
  const std::int64_t count = step->second.ToInteger()[0];
  ThrowIf<ModelError>(
    count < 0, "the state of a training: expected 'step' to be 0 or more, found ", count, ".");
  const TransformerConfig& config = d.parameters.GetConfig();
  const ParameterBlock<float> weights(config, GroupOf(state, "weights."));
  const ParameterBlock<float> first(config, GroupOf(state, "first."));
  const ParameterBlock<float> second(config, GroupOf(state, "second."));
  std::copy_n(weights.Values(), weights.Size(), d.parameters.Values());
  d.optimizer.first.assign(first.Values(), first.Values() + first.Size());
  d.optimizer.second.assign(second.Values(), second.Values() + second.Size());
  d.optimizer.step = count;
}

}
