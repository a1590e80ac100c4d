#pragma once

#include "LearningTask.h"
#include "PairTrainer.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>

namespace atlas
{

/// The sizes and the structure of a transformer that is trained; the task determines the rest.
struct ArchitectureOptions
{
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t keyHeads = 0; ///< divides heads; 0: as many
  std::int64_t modelDimension = 64;
  std::int64_t headDimension = 0; ///< 0: modelDimension / heads
  std::int64_t mlpDimension = 0;  ///< 0: attention only
  PositionKind positions = PositionKind::Learned;
  NormKind norm = NormKind::LayerNorm;
  Activation activation = Activation::GeluTanh;
  bool gated = false;
  bool biases = true; ///< of attention and MLP; a gated MLP has none
  bool tied = false;  ///< the unembedding is the transpose of the embedding
};

/// Which parameters decay.
enum class DecayRule
{
  Matrices, ///< all matrices, with the embeddings and positions
  Blocks,   ///< the matrices of the layers and the unembedding, unless it is tied
  All
};

enum class RateSchedule
{
  Constant,
  Cosine ///< falls from the rate to finalRate along half a cosine after the warm-up
};

/// AdamW (Loshchilov and Hutter 2019) with warm-up and clipping, as torch.optim.AdamW and
/// clip_grad_norm_.
struct OptimizerOptions
{
  double rate = 1e-3;
  double finalRate = 0; ///< Cosine only
  RateSchedule schedule = RateSchedule::Constant;
  std::int64_t warmup =
    0; ///< in step s < warmup, counted from 0, the rate is times (s + 1) / warmup
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0;
  DecayRule decayRule = DecayRule::Matrices;
  double clip = 1; ///< largest norm of the gradient of all parameters; 0: no limit
};

/// What only TokenPairs has.
struct PairOptions
{
  TrainingMode mode = TrainingMode::Joint;
  bool gradientDescent = false; ///< in place of Adam
  bool gaussian = false;        ///< normal first weights in place of the published ones
  double priorDecay = 1;
  double specialization = 0;
  std::filesystem::path model; ///< a file of a model whose task is trained; empty: draw a task
  bool keepsWeights = false;   ///< whether to start from the weights of that model
};

/// Everything that determines a training.
struct LearningRecipe
{
  TaskOptions task;
  PairOptions pairs;
  ArchitectureOptions architecture;
  OptimizerOptions optimizer;
  std::int64_t steps = 1000;
  std::int64_t batchSize = 64; ///< sequences per step; ModularAddition, TokenPairs: 0, all pairs
  double initialization = 0.8; ///< standard deviation of the first weights of all matrices, times
                               ///< sqrt(modelDimension), as in TransformerLens
  std::uint64_t seed = 0;      ///< of the first weights; TaskOptions has that of the data
};

/// The settings with which the phenomenon of a task shows, and the time that it takes, measured in
/// Plugin/Documentation/Learning.md. `text` is empty.
LearningRecipe DefaultRecipe(TaskKind kind);

/// The options of PairTrainer in a recipe of TokenPairs; rate, steps, batchSize, seed, vocabulary,
/// heads and headDimension are the recipe's. Throws OptionError for an invalid one.
TrainingOptions ToPairTraining(const LearningRecipe& recipe);

/// The configuration of the model of a recipe: architecture transformer_lens; bert for MaskedText;
/// vit for images. Throws OptionError with the name of the first invalid option.
TransformerConfig MakeConfig(const ArchitectureOptions& architecture, const LearningTask& task);

}
