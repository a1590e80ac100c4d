#pragma once

#include "vtkModelAlgorithm.h"

#include <vector>

namespace atlas
{
struct AttentionOnlyModel;
struct EvaluationOptions;
}

/// Base class of the filters that evaluate an attention-only transformer: model and options. Input
/// port 0: the model (vtkMultiBlockDataSet, as produced by vtkAttentionOnlyModelReader). The
/// formulas are in Core's AttentionEvaluation.h: a word pair is a point (e_1, e_2) of a torus, x_s
/// = e_s + p_s, score_h = x_2^T W_QK^h (x_1 - x_2), a_h its sigmoid, mix_h = a_h x_1 + (1 - a_h)
/// x_2, out_h = W_O^h W_V^h mix_h, r = residual + sum_h w_h out_h, logits = W_U r.
class ATTENTIONATLASTORUS_EXPORT vtkTorusAlgorithm : public vtkModelAlgorithm
{
public:
  vtkTypeMacro(vtkTorusAlgorithm, vtkModelAlgorithm);

  enum AnglesType
  {
    ISOMETRIC = 0,
    SKEWED = 1
  };

  enum PatternType
  {
    SOFTMAX = 0,
    HARDMAX = 1
  };

  enum ResidualType
  {
    EMBEDDING_POSITION = 0,
    EMBEDDING = 1,
    NONE = 2,
    RAW_EMBEDDING = 3
  };

  /// How an angle is mapped to a word embedding: ISOMETRIC, e = sqrt(3) (cos(t) u + sin(t) v), or
  /// SKEWED, e = LN((cos t, sin t, 0)), as in the published figures. Default: ISOMETRIC.
  vtkSetClampMacro(Angles, int, ISOMETRIC, SKEWED);
  vtkGetMacro(Angles, int);

  /// SOFTMAX: a_h = 1 / (1 + exp(-score_h)). HARDMAX: a_h = 1 where score_h > 0, else 0. Default:
  /// SOFTMAX.
  vtkSetClampMacro(Pattern, int, SOFTMAX, HARDMAX);
  vtkGetMacro(Pattern, int);

  /// The residual to which the outputs of the heads are added: EMBEDDING_POSITION (x_2), EMBEDDING
  /// (e_2), NONE (0) or RAW_EMBEDDING (word_embedding[t_2]; token pairs only). Default:
  /// EMBEDDING_POSITION.
  vtkSetClampMacro(Residual, int, EMBEDDING_POSITION, RAW_EMBEDDING);
  vtkGetMacro(Residual, int);

  /// The factor w_h of each head's output in the sum, a finite number: one per head of the model,
  /// or none, which means that all are 1 (the default). 0 switches a head off.
  void SetNumberOfHeadWeights(int number);
  void SetHeadWeight(int head, double weight);
  int GetNumberOfHeadWeights() const { return static_cast<int>(this->HeadWeights.size()); }
  double GetHeadWeight(int head) const;

  /// Whether the word embeddings e_s are part of x_s inside score_h. Default: on.
  vtkSetMacro(WordInPattern, vtkTypeBool);
  vtkGetMacro(WordInPattern, vtkTypeBool);
  vtkBooleanMacro(WordInPattern, vtkTypeBool);

  /// Whether the position embeddings p_s are part of x_s inside score_h. Default: on.
  vtkSetMacro(PositionInPattern, vtkTypeBool);
  vtkGetMacro(PositionInPattern, vtkTypeBool);
  vtkBooleanMacro(PositionInPattern, vtkTypeBool);

  /// Whether the word embeddings e_s are part of x_s inside mix_h. The residual keeps them.
  /// Default: on.
  vtkSetMacro(WordInValues, vtkTypeBool);
  vtkGetMacro(WordInValues, vtkTypeBool);
  vtkBooleanMacro(WordInValues, vtkTypeBool);

  /// Whether the position embeddings p_s are part of x_s inside mix_h. The residual keeps them.
  /// Default: on.
  vtkSetMacro(PositionInValues, vtkTypeBool);
  vtkGetMacro(PositionInValues, vtkTypeBool);
  vtkBooleanMacro(PositionInValues, vtkTypeBool);

protected:
  using vtkModelAlgorithm::vtkModelAlgorithm;

  /// The properties above in the form that Core uses.
  atlas::EvaluationOptions GetOptions() const;

private:
  int Angles = ISOMETRIC;
  int Pattern = SOFTMAX;
  int Residual = EMBEDDING_POSITION;
  std::vector<double> HeadWeights;
  vtkTypeBool WordInPattern = 1;
  vtkTypeBool PositionInPattern = 1;
  vtkTypeBool WordInValues = 1;
  vtkTypeBool PositionInValues = 1;
};
