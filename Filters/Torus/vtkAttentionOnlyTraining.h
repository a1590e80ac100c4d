#ifndef vtkAttentionOnlyTraining_h
#define vtkAttentionOnlyTraining_h

#include "AttentionAtlasTorusModule.h"

#include <vtkDataObjectAlgorithm.h>

#include <memory>
#include <vector>

/**
 * @class vtkAttentionOnlyTraining
 * @brief Trains an attention-only transformer and gives it at each checkpoint as a time step.
 *
 * No input. Output port 0: the model (vtkMultiBlockDataSet, as vtkAttentionOnlyModelReader gives
 * it); its times are the steps of the checkpoints, 0, CheckpointEvery, 2 CheckpointEvery, ... and
 * Steps, and a time between two gives the earlier one. Output port 1: a vtkTable with a row per
 * checkpoint:
 *
 * - Step (int)
 * - Loss (double): the divergence of the predicted from the true next token, in nats
 * - Accuracy (double): share of pairs that the model has right, by the prior
 * - Phase (int): the head that is being trained, -1 in JOINT
 * - Accuracy Head h (double): share of pairs that argmax W_U out_h has right
 *
 * The task, and all else that is random, follows from Seed. The training runs at the first update
 * after a change and is kept, so that moving in time costs nothing. Cancel keeps the checkpoints
 * that were reached. Formulas: Core's Training.h.
 */
class ATTENTIONATLASTORUS_EXPORT vtkAttentionOnlyTraining : public vtkDataObjectAlgorithm
{
public:
  static vtkAttentionOnlyTraining* New();
  vtkTypeMacro(vtkAttentionOnlyTraining, vtkDataObjectAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  enum ModeType
  {
    JOINT = 0,
    BOOSTING = 1,
    BOOSTING_OUTPUT_ONLY = 2
  };

  ///@{
  /**
   * Size of the vocabulary N, number of heads H and their dimension d_h, each at least 1. Default:
   * 5, 3, 3.
   */
  vtkSetMacro(VocabularySize, int);
  vtkGetMacro(VocabularySize, int);
  vtkSetMacro(Heads, int);
  vtkGetMacro(Heads, int);
  vtkSetMacro(HeadDimension, int);
  vtkGetMacro(HeadDimension, int);
  ///@}

  ///@{
  /**
   * Number of steps of Adam, at least 0, and its rate, positive. Default: 3500, 0.01.
   */
  vtkSetMacro(Steps, int);
  vtkGetMacro(Steps, int);
  vtkSetMacro(LearningRate, double);
  vtkGetMacro(LearningRate, double);
  ///@}

  ///@{
  /**
   * Pairs per step, drawn at random; 0 takes all N^2 with their weights. Default: 0.
   */
  vtkSetMacro(BatchSize, int);
  vtkGetMacro(BatchSize, int);
  ///@}

  ///@{
  /**
   * JOINT: all parameters at once. BOOSTING: head after head, each for its share of the steps, what
   * the heads before have learned frozen. BOOSTING_OUTPUT_ONLY: the same with queries, keys and
   * values as they began. Default: JOINT.
   */
  vtkSetClampMacro(Mode, int, JOINT, BOOSTING_OUTPUT_ONLY);
  vtkGetMacro(Mode, int);
  ///@}

  ///@{
  /**
   * alpha in (0, 1] of the prior P(t1, t2) ~ alpha^(t1 + t2) of the pairs. Default: 1, uniform.
   */
  vtkSetMacro(PriorDecay, double);
  vtkGetMacro(PriorDecay, double);
  ///@}

  ///@{
  /**
   * lambda >= 0: how strongly each pair asks for one head that predicts it alone. Default: 0.
   */
  vtkSetMacro(Specialization, double);
  vtkGetMacro(Specialization, double);
  ///@}

  ///@{
  /**
   * Of all random numbers. Default: 0.
   */
  vtkSetMacro(Seed, int);
  vtkGetMacro(Seed, int);
  ///@}

  ///@{
  /**
   * Steps from one checkpoint to the next, at least 1. Default: 50.
   */
  vtkSetMacro(CheckpointEvery, int);
  vtkGetMacro(CheckpointEvery, int);
  ///@}

protected:
  vtkAttentionOnlyTraining();
  ~vtkAttentionOnlyTraining() override;

  int FillOutputPortInformation(int port, vtkInformation* info) override;
  int RequestDataObject(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkAttentionOnlyTraining(const vtkAttentionOnlyTraining&) = delete;
  void operator=(const vtkAttentionOnlyTraining&) = delete;

  struct History;

  std::vector<int> CheckpointSteps() const;
  void Train();

  int VocabularySize = 5;
  int Heads = 3;
  int HeadDimension = 3;
  int Steps = 3500;
  double LearningRate = 0.01;
  int BatchSize = 0;
  int Mode = JOINT;
  double PriorDecay = 1;
  double Specialization = 0;
  int Seed = 0;
  int CheckpointEvery = 50;
  std::unique_ptr<History> Trained;
};

#endif
