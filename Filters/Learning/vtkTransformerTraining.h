#pragma once

#include "AttentionAtlasLearningModule.h"

#include <vtkTaskAlgorithm.h>

#include <memory>
#include <string>

namespace AttentionAtlas
{
struct LearningRequest;
}

/**
 * @class vtkTransformerTraining
 * @brief Trains a transformer on a task and gives it at each checkpoint as a time step.
 *
 * No input. Output port 0: the transformer (vtkMultiBlockDataSet, as vtkTransformerReader gives
 * it); its times are the steps of the checkpoints, and a time between two gives the earlier one.
 * The model is in memory: filters of this process find it as long as this source keeps it. Output
 * port 1: a vtkTable with a row per measured step:
 *
 * - Step (int)
 * - Loss (double): of the step's batch, in nats; NaN after the last step
 * - Accuracy, Held-out Loss (double): of sequences or images that are not trained on
 * - the measures of the task (double)
 *
 * Both have the recipe as JSON in the field array Recipe. Each task has a recipe, with which its
 * phenomenon shows (Core's DefaultRecipe); the properties below replace parts of it. The training
 * runs at the first update after a change and is kept, so that moving in time costs nothing. Cancel
 * keeps what was reached; so does divergence, which is a warning. On several ranks the first one
 * trains, and all get its models; it alone has the table. Formulas: Core's TransformerTrainer.h.
 */
class ATTENTIONATLASLEARNING_EXPORT vtkTransformerTraining : public vtkTaskAlgorithm
{
public:
  static vtkTransformerTraining* New();
  vtkTypeMacro(vtkTransformerTraining, vtkTaskAlgorithm);

  enum TaskType
  {
    REPEATED_TOKENS = 0,
    TEXT,
    STATISTICAL_INDUCTION,
    MODULAR_ADDITION,
    BELIEF_STATES = 6,
    COLOR_PATCHES,
    MASKED_TEXT,
    LATTICE_PROTEIN
  };
  enum PositionsType
  {
    RECIPE_POSITIONS = 0,
    LEARNED,
    SHORTFORMER,
    ALIBI,
    ROTARY,
    NO_POSITIONS
  };
  enum NormalizationType
  {
    RECIPE_NORMALIZATION = 0,
    LAYER_NORM,
    RMS,
    NO_NORMALIZATION
  };
  enum ActivationType
  {
    RECIPE_ACTIVATION = 0,
    GELU,
    GELU_TANH,
    RELU,
    SILU
  };
  enum TiedType
  {
    RECIPE_TIED = 0,
    UNTIED,
    TIED
  };
  enum ProcessingType
  {
    NONE = 0,
    TRANSFORMER_LENS = 1
  };

  /// What is learned: a TaskType, numbered as Core's TaskKind. Default: REPEATED_TOKENS.
  vtkSetClampMacro(Task, int, REPEATED_TOKENS, LATTICE_PROTEIN);
  vtkGetMacro(Task, int);

  /// TEXT and MASKED_TEXT: a UTF-8 file. Default: none.
  vtkSetStdStringFromCharMacro(TextFile);
  vtkGetCharFromStdStringMacro(TextFile);

  /// Number of tokens (MODULAR_ADDITION: p; STATISTICAL_INDUCTION: states) and length of sequences.
  /// 0: as the recipe. Default: 0.
  vtkSetMacro(Vocabulary, int);
  vtkGetMacro(Vocabulary, int);
  vtkSetMacro(Context, int);
  vtkGetMacro(Context, int);

  /// TEXT, MASKED_TEXT: share of sequences that repeat a stretch, 0 to 1, and the number of first
  /// steps on repeated random tokens alone. -1: as the recipe. Default: -1.
  vtkSetMacro(Repeats, double);
  vtkGetMacro(Repeats, double);
  vtkSetMacro(Curriculum, int);
  vtkGetMacro(Curriculum, int);

  /// TEXT: tokens in the first step of the curriculum, which grow by the same factor per step to
  /// all. 0: all from the first step. Default: 0.
  vtkSetMacro(CurriculumVocabulary, int);
  vtkGetMacro(CurriculumVocabulary, int);

  /// MODULAR_ADDITION: share of the pairs that are trained on, in (0, 1). 0: as the recipe.
  /// Default: 0.
  vtkSetMacro(TrainShare, double);
  vtkGetMacro(TrainShare, double);

  /// Sizes of the model. HeadDimension: if the recipe does not say, ModelDimension / Heads. 0: as
  /// the recipe. Default: 0.
  vtkSetMacro(Layers, int);
  vtkGetMacro(Layers, int);
  vtkSetMacro(Heads, int);
  vtkGetMacro(Heads, int);
  vtkSetMacro(ModelDimension, int);
  vtkGetMacro(ModelDimension, int);
  vtkSetMacro(HeadDimension, int);
  vtkGetMacro(HeadDimension, int);

  /// Neurons of each MLP; 0: attention only; -1: as the recipe. Default: -1.
  vtkSetMacro(MlpDimension, int);
  vtkGetMacro(MlpDimension, int);

  /// Structure of the model: a PositionsType, NormalizationType, ActivationType (of the MLP) and
  /// TiedType (whether the unembedding is the transpose of the embedding). MASKED_TEXT and
  /// COLOR_PATCHES have that of BERT and ViT. Default: as the recipe, each.
  vtkSetClampMacro(Positions, int, RECIPE_POSITIONS, NO_POSITIONS);
  vtkGetMacro(Positions, int);
  vtkSetClampMacro(Normalization, int, RECIPE_NORMALIZATION, NO_NORMALIZATION);
  vtkGetMacro(Normalization, int);
  vtkSetClampMacro(Activation, int, RECIPE_ACTIVATION, SILU);
  vtkGetMacro(Activation, int);
  vtkSetClampMacro(Tied, int, RECIPE_TIED, TIED);
  vtkGetMacro(Tied, int);

  /// Sequences or images of a step, and steps in all. 0: as the recipe. Default: 0.
  vtkSetMacro(BatchSize, int);
  vtkGetMacro(BatchSize, int);
  vtkSetMacro(Steps, int);
  vtkGetMacro(Steps, int);

  /// The learning rate of AdamW. 0: as the recipe. Default: 0.
  vtkSetMacro(LearningRate, double);
  vtkGetMacro(LearningRate, double);

  /// Weight decay of AdamW, and the steps in which the learning rate rises. -1: as the recipe.
  /// Default: -1.
  vtkSetMacro(WeightDecay, double);
  vtkGetMacro(WeightDecay, double);
  vtkSetMacro(Warmup, int);
  vtkGetMacro(Warmup, int);

  /// Of all random numbers, at least 0: the data and the first weights. Default: 0.
  vtkSetMacro(Seed, int);
  vtkGetMacro(Seed, int);

  /// Steps from one checkpoint to the next; 0: about 30 checkpoints, denser at the beginning
  /// (Core's LogarithmicSteps). Steps from one row of the table to the next; 0: about 100 rows.
  /// Default: 0.
  vtkSetMacro(CheckpointEvery, int);
  vtkGetMacro(CheckpointEvery, int);
  vtkSetMacro(MeasureEvery, int);
  vtkGetMacro(MeasureEvery, int);

  /// The weights that are given on, as of vtkTransformerReader; the training is the same. Default:
  /// NONE.
  vtkSetClampMacro(Processing, int, NONE, TRANSFORMER_LENS);
  vtkGetMacro(Processing, int);

  /// The folder of a trained model with recipe.json and training-state.safetensors, from which the
  /// training goes on. Its recipe replaces that of the task, and its seeds replace Seed; Task must
  /// be the same. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(ContinueFrom);
  vtkGetCharFromStdStringMacro(ContinueFrom);

protected:
  vtkTransformerTraining();
  ~vtkTransformerTraining() override;

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  vtkTransformerTraining(const vtkTransformerTraining&) = delete;
  void operator=(const vtkTransformerTraining&) = delete;

  struct Results;

  AttentionAtlas::LearningRequest GetRequest() const;
  void FillOutputs(const std::string& recipe, const AttentionAtlas::Task& task);

  int Task = REPEATED_TOKENS;
  std::string TextFile;
  int Vocabulary = 0;
  int Context = 0;
  double Repeats = -1;
  int Curriculum = -1;
  int CurriculumVocabulary = 0;
  double TrainShare = 0;
  int Layers = 0;
  int Heads = 0;
  int ModelDimension = 0;
  int HeadDimension = 0;
  int MlpDimension = -1;
  int Positions = RECIPE_POSITIONS;
  int Normalization = RECIPE_NORMALIZATION;
  int Activation = RECIPE_ACTIVATION;
  int Tied = RECIPE_TIED;
  int BatchSize = 0;
  int Steps = 0;
  double LearningRate = 0;
  double WeightDecay = -1;
  int Warmup = -1;
  int Seed = 0;
  int CheckpointEvery = 0;
  int MeasureEvery = 0;
  int Processing = NONE;
  std::string ContinueFrom;
  std::unique_ptr<Results> Trained;
};
