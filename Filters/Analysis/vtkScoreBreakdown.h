#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkHeadAlgorithm.h>

/// The scores of one head as ALiBi + distance bias + bias + attention. Input port 0: a recording
/// with queries and keys. Input port 1: the transformer that was recorded, for the bias b_Q of its
/// queries. The score of query i with key j before the softmax is the sum of (Claus, "Attention
/// Focus Plots")
/// - ALiBi: slope * j (Press et al. 2022); 0 without it
/// - Distance Bias: that of the distance from query to key (T5, Raffel et al. 2020), or of rows and
///   columns between two patches (BEiT, Bao et al. 2022); the column is there only if the model has
///   it
/// - Content to Position: scale * q_i . the key of the distance, and Position to Content: scale *
///   k_j . the query of the distance (DeBERTa, He et al. 2021); likewise
/// - Bias: scale * b_Q . k_j, which depends on the key alone; 0 without a bias
/// - Attention: scale * (q_i - b_Q) . k_j
///
/// Output 0: a vtkTable with the scores of each query from the largest on, with the keys that the
/// mask and the window allow: Layer, Head, Sequence, Query, Key (int; positions), Rank (int, 0 for
/// the largest score of the query), Score, ALiBi, Distance Bias, Content to Position, Position to
/// Content, Bias, Attention (float), Token Index (id type: the row of the query's token in the
/// recording; also the pedigree id), Token and Key Token (string).
///
/// Output 1: a vtkTable with a row per key of the sequence: Layer, Head, Sequence, Position, Token
/// Index, Token, and ALiBi and Bias (double), each minus its mean over the keys, which the softmax
/// does not see.
///
/// Scores of models that cap them (Gemma 2) are no sums, which is an error.
///
/// On several ranks the first one has the tables.
class ATTENTIONATLASANALYSIS_EXPORT vtkScoreBreakdown : public vtkHeadAlgorithm
{
public:
  static vtkScoreBreakdown* New();
  vtkTypeMacro(vtkScoreBreakdown, vtkHeadAlgorithm);

  /// Sets the transformer of the recording.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// The position of the query, from 0; -1: all queries. Default: -1.
  vtkSetMacro(Query, int);
  vtkGetMacro(Query, int);

  /// How many of the largest scores of a query have rows; 0: all. Default: 0.
  vtkSetMacro(Top, int);
  vtkGetMacro(Top, int);

protected:
  vtkScoreBreakdown();

  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Scores;

  int Query = -1;
  int Top = 0;
};
