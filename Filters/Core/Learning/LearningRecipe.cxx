#include "LearningRecipe.h"

#include "Error.h"

#include <cmath>
#include <limits>
#include <string>

namespace atlas
{
namespace
{

void RequirePositive(std::int64_t value, const std::string& name)
{
  if (value < 1)
  {
    throw OptionError(name + ": expected at least 1, found " + std::to_string(value) + ".");
  }
}

void RequireNotNegative(std::int64_t value, const std::string& name)
{
  if (value < 0)
  {
    throw OptionError(name + ": expected 0 or more, found " + std::to_string(value) + ".");
  }
}

/// What the originals of BERT and ViT have, and the options cannot change.
void SetEncoder(TransformerConfig& config)
{
  RequirePositive(config.mlpDimension, "MlpDimension");
  if (config.headDimension * config.heads != config.modelDimension)
  {
    throw OptionError("HeadDimension: expected ModelDimension / Heads for BERT and ViT, " +
                      std::to_string(config.modelDimension) + " / " + std::to_string(config.heads) +
                      ", found " + std::to_string(config.headDimension) + ".");
  }
  const bool isBert = config.input == InputKind::Tokens;
  config.architecture = isBert ? "bert" : "vit";
  config.normPlace = isBert ? NormPlace::AfterSublayer : NormPlace::BeforeSublayer;
  config.embeddingNorm = isBert;
  config.finalNorm = !isBert;
  config.tiedUnembedding = isBert;
  config.activation = Activation::Gelu;
  config.epsilon = 1e-12;
  config.norm = NormKind::LayerNorm;
  config.position = PositionKind::Learned;
  config.gated = false;
  config.inputBias = config.outputBias = config.mlpBias = true;
}

/// A size as the options of pairs have it.
int ToInt(std::int64_t value, const std::string& name)
{
  constexpr int most = std::numeric_limits<int>::max();
  if (value > most)
  {
    throw OptionError(name + ": expected at most " + std::to_string(most) + ", found " +
                      std::to_string(value) + ".");
  }
  return static_cast<int>(value);
}

}

TrainingOptions ToPairTraining(const LearningRecipe& recipe)
{
  TrainingOptions options;
  options.vocabularySize = ToInt(recipe.task.vocabulary, "Vocabulary");
  options.heads = ToInt(recipe.architecture.heads, "Heads");
  options.headDimension = ToInt(recipe.architecture.headDimension, "HeadDimension");
  options.steps = ToInt(recipe.steps, "Steps");
  options.learningRate = recipe.optimizer.rate;
  options.batchSize = ToInt(recipe.batchSize, "BatchSize");
  options.mode = recipe.pairs.mode;
  options.optimizer = recipe.pairs.gradientDescent ? Optimizer::GradientDescent : Optimizer::Adam;
  options.initialization =
    recipe.pairs.gaussian ? Initialization::Gaussian : Initialization::Published;
  options.priorDecay = recipe.pairs.priorDecay;
  options.specialization = recipe.pairs.specialization;
  options.seed = recipe.seed;
  CheckOptions(options);
  if (recipe.pairs.keepsWeights && recipe.pairs.model.empty())
  {
    throw OptionError("Model: expected a file whose weights are kept, found none.");
  }
  return options;
}

TransformerConfig MakeConfig(const ArchitectureOptions& architecture, const LearningTask& task)
{
  RequirePositive(architecture.layers, "Layers");
  RequirePositive(architecture.heads, "Heads");
  RequirePositive(architecture.modelDimension, "ModelDimension");
  RequireNotNegative(architecture.headDimension, "HeadDimension");
  RequireNotNegative(architecture.mlpDimension, "MlpDimension");
  RequireNotNegative(architecture.keyHeads, "KeyHeads");
  TransformerConfig config;
  config.architecture = "transformer_lens";
  config.layers = architecture.layers;
  config.heads = architecture.heads;
  config.keyHeads = architecture.keyHeads > 0 ? architecture.keyHeads : architecture.heads;
  config.modelDimension = architecture.modelDimension;
  config.headDimension = architecture.headDimension > 0
                           ? architecture.headDimension
                           : architecture.modelDimension / architecture.heads;
  config.mlpDimension = architecture.mlpDimension;
  config.norm = architecture.norm;
  config.finalNorm = architecture.norm != NormKind::None;
  config.position = architecture.positions;
  config.activation = architecture.activation;
  config.gated = architecture.gated;
  config.inputBias = config.outputBias = architecture.biases;
  // TransformerLens adds the first bias of a gated MLP behind the gate, so it has none here.
  config.mlpBias = architecture.biases && !architecture.gated;
  config.tiedUnembedding = architecture.tied;
  task.Configure(config);
  if (config.input == InputKind::Images || config.segments > 0)
  {
    SetEncoder(config);
  }
  if (config.heads % config.keyHeads != 0)
  {
    throw OptionError("KeyHeads: expected a divisor of Heads, " + std::to_string(config.heads) +
                      ", found " + std::to_string(config.keyHeads) + ".");
  }
  if (config.headDimension < 1)
  {
    throw OptionError("HeadDimension: " + std::to_string(config.heads) +
                      " heads do not fit into ModelDimension, " +
                      std::to_string(config.modelDimension) +
                      "; expected HeadDimension to be given, or fewer heads.");
  }
  if (config.position == PositionKind::Rotary && config.headDimension % 2 != 0)
  {
    throw OptionError("HeadDimension: expected an even number for Rotary positions, found " +
                      std::to_string(config.headDimension) + ".");
  }
  config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
  return config;
}

}
