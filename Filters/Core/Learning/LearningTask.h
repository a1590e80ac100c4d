#pragma once

#include "TrainingBatch.h"
#include "Weights/Transformer.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// What a transformer can be trained on. Each task shows a known phenomenon. The numbers are those
/// of state files; tasks that are no more left gaps.
enum class TaskKind
{
  RepeatedTokens, ///< a random block of tokens, repeated: induction heads (Olsson et al. 2022)
  Text,           ///< a text file
  StatisticalInduction, ///< sequences of random Markov chains (Edelman et al. 2024)
  ModularAddition,      ///< a + b mod p: grokking (Power et al. 2022, Nanda et al. 2023)
  BeliefStates = 6,     ///< the Mess3 process: its belief simplex (Shai et al. 2024)
  ColorPatches,         ///< images of gradients, stripes and shapes: a small ViT
  MaskedText,           ///< a text file with masked tokens: a small BERT
  LatticeProtein,       ///< hidden residues of a protein on a lattice: attention finds its contacts
  TokenPairs =
    12 ///< the next token of each pair: the attention-only model of the torus (PairTrainer)
};

/// The settings of a task. 0 or empty: the default of the task (DefaultRecipe).
struct TaskOptions
{
  TaskKind kind = TaskKind::RepeatedTokens;
  std::int64_t vocabulary = 0; ///< tokens; ModularAddition: p; StatisticalInduction: states
  std::int64_t context = 0;    ///< tokens of a sequence; fixed for ModularAddition, images
                               ///< and LatticeProtein
  std::filesystem::path text;  ///< Text, MaskedText: a UTF-8 file
  double repeats = 0;          ///< Text, MaskedText: share of the sequences that repeat a stretch
  std::int64_t curriculum = 0; ///< Text, MaskedText: first steps on repeated random tokens
  std::int64_t curriculumVocabulary = 0; ///< Text: tokens of the first of these steps; they grow by
                                         ///< a factor per step to all; 0: all from the first
  double trainShare = 0;  ///< ModularAddition: share of the pairs that are trained on
  std::uint64_t seed = 0; ///< of all data
};

/// A source of training data with the measures of what is learned. All functions are constant: the
/// batch of a step depends on the options and the step alone.
class LearningTask
{
public:
  LearningTask() = default;
  LearningTask(const LearningTask&) = delete;
  LearningTask& operator=(const LearningTask&) = delete;
  virtual ~LearningTask() = default;

  /// Sets what the task determines: input, vocabulary, outputVocabulary, positions (the context),
  /// mask, segments and, for images, their sizes.
  virtual void Configure(TransformerConfig& config) const = 0;

  /// The batch of a step, counted from 0, with `size` sequences or images. ModularAddition: size 0
  /// takes all training pairs.
  virtual TrainingBatch MakeBatch(std::int64_t step, std::int64_t size) const = 0;

  /// Sequences or images that are not trained on, the same at each call, with the targets of their
  /// rows. Loss and Accuracy are measured on them.
  virtual TrainingBatch MakeHeldOut() const = 0;

  /// The names of the task's own measures, such as "Induction", as columns of the curves.
  virtual std::vector<std::string> MeasureNames() const = 0;

  /// The measures of a model, in the order of the names. Throws as RecordTransformer does.
  virtual std::vector<double> Measure(const Transformer& model, int threads) const = 0;

  /// Files beside the weights by name, such as tokenizer.json or preprocessor_config.json, with
  /// which other programs and the recorder read texts or pictures, or the places of the tokens.
  virtual std::map<std::string, std::string> Files() const { return {}; }

  /// The texts of the token ids, such as "0", ..., "52", "=", from which MakeTask's caller makes a
  /// tokenizer. Empty for images and for tasks whose Files have a tokenizer.
  virtual std::vector<std::string> TokenNames() const { return {}; }
};

/// Throws OptionError for an invalid option, for TokenPairs, which has no batches, and if a text is
/// too short, a vocabulary larger than the text allows, or the context impossible for the task;
/// FileError for the text.
std::unique_ptr<LearningTask> MakeTask(const TaskOptions& options);

/// The names of the classes of a task of images; of others none.
std::vector<std::string> LabelsOf(const TaskOptions& task);

/// The names of the tasks as above, in their order.
std::vector<std::string> TaskNames();

std::string NameOf(TaskKind kind);

/// Throws OptionError for a number of no task.
TaskKind TaskNumbered(int number);

/// Throws OptionError with the names for another one.
TaskKind ParseTask(const std::string& name);

}
