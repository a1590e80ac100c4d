#pragma once

#include "AttentionAtlasTorusModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

#include <functional>
#include <memory>
#include <vector>

namespace AttentionAtlas
{
struct TrainingRequest;
}

/// Trains an attention-only transformer and gives it at each checkpoint as a time step. No input.
/// Output port 0: the model (vtkMultiBlockDataSet, as vtkAttentionOnlyModelReader gives it); its
/// times are the steps of the checkpoints, 0, CheckpointEvery, 2 CheckpointEvery, ... and Steps,
/// and a time between two gives the earlier one. Output port 1: a vtkTable with a row per
/// checkpoint:
/// - Step (int)
/// - Loss (double): the divergence of the predicted from the true next token, in nats
/// - Accuracy (double): share of pairs that the model has right, by the prior
/// - Phase (int): the head that is being trained, -1 in JOINT
/// - Accuracy Head h (double): share of pairs that argmax W_U out_h has right
///
/// Output port 2: a vtkTable with a row per training of a sweep over seeds, empty unless Runs is at
/// least 1; on several ranks each has its part of the rows:
/// - Seed (vtkTypeInt64), Mode (string)
/// - Loss (double), Accuracy (double): in the end; a loss of NaN tells that the training diverged
/// - Steps to Learn (int): the first step after which the accuracy is 1, -1 if there is none
/// - Accuracy Head h (double): in the end, as above
/// - Union (double): share of pairs that at least one head alone has right
///
/// The task, and all else that is random, follows from Seed. The training runs at the first update
/// after a change and is kept, so that moving in time costs nothing. Cancel keeps what was reached.
/// Formulas: Core's Training.h.
class ATTENTIONATLASTORUS_EXPORT vtkAttentionOnlyTraining : public vtkTaskAlgorithm
{
public:
  static vtkAttentionOnlyTraining* New();
  vtkTypeMacro(vtkAttentionOnlyTraining, vtkTaskAlgorithm);

  enum ModeType
  {
    JOINT = 0,
    BOOSTING = 1,
    BOOSTING_OUTPUT_ONLY = 2
  };
  enum OptimizerType
  {
    ADAM = 0,
    GRADIENT_DESCENT = 1
  };
  enum InitializationType
  {
    PUBLISHED = 0,
    GAUSSIAN = 1
  };

  /// Size of the vocabulary N, number of heads H and their dimension d_h, each at least 1. Default:
  /// 5, 3, 3.
  vtkSetMacro(VocabularySize, int);
  vtkGetMacro(VocabularySize, int);
  vtkSetMacro(Heads, int);
  vtkGetMacro(Heads, int);
  vtkSetMacro(HeadDimension, int);
  vtkGetMacro(HeadDimension, int);

  /// Number of steps of Adam, at least 0, and its rate, positive. Default: 3500, 0.01.
  vtkSetMacro(Steps, int);
  vtkGetMacro(Steps, int);
  vtkSetMacro(LearningRate, double);
  vtkGetMacro(LearningRate, double);

  /// Pairs per step, drawn at random; 0 takes all N^2 with their weights. Default: 0.
  vtkSetMacro(BatchSize, int);
  vtkGetMacro(BatchSize, int);

  /// JOINT: all parameters at once. BOOSTING: head after head, each for its share of the steps,
  /// what the heads before have learned frozen. BOOSTING_OUTPUT_ONLY: the same with queries, keys
  /// and values as they began. Default: JOINT.
  vtkSetClampMacro(Mode, int, JOINT, BOOSTING_OUTPUT_ONLY);
  vtkGetMacro(Mode, int);

  /// alpha in (0, 1] of the prior P(t1, t2) ~ alpha^(t1 + t2) of the pairs. Default: 1, uniform.
  vtkSetMacro(PriorDecay, double);
  vtkGetMacro(PriorDecay, double);

  /// lambda >= 0: how strongly each pair asks for one head that predicts it alone. Default: 0.
  vtkSetMacro(Specialization, double);
  vtkGetMacro(Specialization, double);

  /// ADAM, or GRADIENT_DESCENT: steps down the slope at the learning rate. Default: ADAM.
  vtkSetClampMacro(Optimizer, int, ADAM, GRADIENT_DESCENT);
  vtkGetMacro(Optimizer, int);

  /// What the first parameters are drawn from: PUBLISHED, the uniform distributions of the
  /// published code; GAUSSIAN, normal ones of the same variances. Default: PUBLISHED.
  vtkSetClampMacro(Initialization, int, PUBLISHED, GAUSSIAN);
  vtkGetMacro(Initialization, int);

  /// A .safetensors file of a model with next_token, whose task is trained instead of a random one;
  /// VocabularySize is its. Null or empty: none. Default: none.
  vtkSetStdStringFromCharMacro(ModelFile);
  vtkGetCharFromStdStringMacro(ModelFile);

  /// Whether to begin with the parameters of ModelFile; Heads and HeadDimension are its then.
  /// Default: off.
  vtkSetMacro(ContinueModel, bool);
  vtkGetMacro(ContinueModel, bool);
  vtkBooleanMacro(ContinueModel, bool);

  /// Of all random numbers. Default: 0.
  vtkSetMacro(Seed, int);
  vtkGetMacro(Seed, int);

  /// Steps from one checkpoint to the next, at least 1. Default: 50.
  vtkSetMacro(CheckpointEvery, int);
  vtkGetMacro(CheckpointEvery, int);

  /// How many seeds, from Seed on, the sweep of port 2 trains, at least 0. Default: 0.
  vtkSetMacro(Runs, int);
  vtkGetMacro(Runs, int);

  /// Whether the sweep trains each seed in all modes, and not in Mode alone. Default: off.
  vtkSetMacro(AllModes, bool);
  vtkGetMacro(AllModes, bool);
  vtkBooleanMacro(AllModes, bool);

protected:
  vtkAttentionOnlyTraining();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Results;

  double CheckpointCount() const;
  std::vector<int> CheckpointSteps() const;
  AttentionAtlas::TrainingRequest GetRequest() const;
  void FillTraining(const AttentionAtlas::Task& task) const;
  void FillRuns(const AttentionAtlas::TrainingRequest& request, const AttentionAtlas::Task& task,
    const std::function<bool(double, bool)>& progress);

  int VocabularySize = 5;
  int Heads = 3;
  int HeadDimension = 3;
  int Steps = 3500;
  double LearningRate = 0.01;
  int BatchSize = 0;
  int Mode = JOINT;
  double PriorDecay = 1;
  double Specialization = 0;
  int Optimizer = ADAM;
  int Initialization = PUBLISHED;
  std::string ModelFile;
  bool ContinueModel = false;
  int Seed = 0;
  int CheckpointEvery = 50;
  int Runs = 0;
  bool AllModes = false;
  std::shared_ptr<Results> Trained;
};
