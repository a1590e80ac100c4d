#include "LearningRecipe.h"

#include "Base/Error.h"

#include <cmath>
#include <limits>

namespace atlas
{
namespace
{

void RequireLeast(std::int64_t value, int least, const char* name)
{
  ThrowIf<OptionError>(value < least, name, ": expected ", least > 0 ? "at least 1" : "0 or more",
    ", found ", value, ".");
}

/// What the originals of BERT and ViT have, and the options cannot change.
void SetEncoder(TransformerConfig& config)
{
  RequireLeast(config.mlpDimension, 1, "MlpDimension");
  ThrowIf<OptionError>(config.headDimension * config.heads != config.modelDimension,
    "HeadDimension: expected ModelDimension / Heads for BERT and ViT, ", config.modelDimension,
    " / ", config.heads, ", found ", config.headDimension, ".");
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
int ToInt(std::int64_t value, const char* name)
{
  constexpr int most = std::numeric_limits<int>::max();
  ThrowIf<OptionError>(value > most, name, ": expected at most ", most, ", found ", value, ".");
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
  ThrowIf<OptionError>(recipe.pairs.keepsWeights && recipe.pairs.model.empty(),
    "Model: expected a file whose weights are kept, found none.");
  return options;
}

TransformerConfig MakeConfig(const ArchitectureOptions& architecture, const LearningTask& task)
{
  RequireLeast(architecture.layers, 1, "Layers");
  RequireLeast(architecture.heads, 1, "Heads");
  RequireLeast(architecture.modelDimension, 1, "ModelDimension");
  RequireLeast(architecture.headDimension, 0, "HeadDimension");
  RequireLeast(architecture.mlpDimension, 0, "MlpDimension");
  RequireLeast(architecture.keyHeads, 0, "KeyHeads");
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
  ThrowIf<OptionError>(config.heads % config.keyHeads != 0,
    "KeyHeads: expected a divisor of Heads, ", config.heads, ", found ", config.keyHeads, ".");
  ThrowIf<OptionError>(config.headDimension < 1, "HeadDimension: ", config.heads,
    " heads do not fit into ModelDimension, ", config.modelDimension,
    "; expected HeadDimension to be given, or fewer heads.");
  ThrowIf<OptionError>(config.position == PositionKind::Rotary && config.headDimension % 2 != 0,
    "HeadDimension: expected an even number for Rotary positions, found ", config.headDimension,
    ".");
  config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
  return config;
}

}
