#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkRecordingAlgorithm.h>

#include <memory>

class vtkMultiBlockDataSet;

/// How much each head does what heads are known for: previous token, induction and others. Input
/// port 0: a recording, best of random tokens that are repeated (vtkRandomPrompts, REPEATED_BLOCK).
/// Input port 1 (optional): the transformer that was recorded, for Copying. With A the attention of
/// a head and D_ij = 1 where query i attends to key j in a pattern, else 0:
/// - Previous Token: j = i - 1
/// - Duplicate Token: token j = token i, j < i
/// - Induction: token j - 1 = token i, j <= i
///
/// a score is, by Measure, MUL: sum A D / sum A; ABS: 1 - sum |A - D| / queries (detect_head of
/// TransformerLens, which rounds ABS to three digits); STRIPE: the mean of A_(i, i-1), A_(i, i-P)
/// and A_(i, i-P+1) of sequences that repeat a block of P tokens. Sums are over all queries and
/// keys of all sequences; Previous Token leaves out the first query, which has no token before it.
/// Independent of Measure and exclusions are
/// - Prefix Matching: the mean attention, of queries whose token was there before, to the tokens
///   that came after it (Olsson et al. 2022)
/// - Copying: the share of what the head raises among the logits of the sequence's tokens that goes
///   to the token it attends to (Olsson et al. 2022); see Core's HeadCopying.h. Absent without the
///   transformer
/// - Sink: the mean attention of queries i >= 1 to the first key (Xiao et al. 2023)
///
/// Formulas: Core's HeadPatterns.h. Recordings without token ids and texts, such as those of
/// images, have no Duplicate Token, Induction and Prefix Matching.
///
/// Cross attention has Duplicate Token, where token j of the source is token i of the target (has
/// the same text or, without texts, id), and Sink, the mean attention of all queries to the first
/// token of the source. The other scores are about tokens of one text. Of sound it has Sink alone.
/// Measure is then MUL or ABS.
///
/// Output port 0: a vtkTable with a row per head: Layer, Head (int) and the scores (double). Output
/// port 1: a vtkImageData with a point per head, x = head, y = -row of the layer among those
/// recorded, with the same arrays; the scalars are Induction or, if no token is repeated, Previous
/// Token. Output port 2: the numbers of layers and heads, a vtkPolyData with vertices and the point
/// array Token (string), to be shown as Token Labels.
///
/// On several ranks the heads are shared among them; the first one has the table and the labels,
/// and each its part of the image. Another Measure computes no attention again. Canceling leaves
/// all empty.
class ATTENTIONATLASANALYSIS_EXPORT vtkHeadScores : public vtkRecordingAlgorithm
{
public:
  static vtkHeadScores* New();
  vtkTypeMacro(vtkHeadScores, vtkRecordingAlgorithm);

  enum MeasureType
  {
    MUL = 0,
    ABS = 1,
    STRIPE = 2
  };

  /// Sets the transformer of the recording. Default: none.
  void SetModelConnection(vtkAlgorithmOutput* model) { this->SetInputConnection(1, model); }

  /// How attention is compared with a pattern: MUL, ABS or STRIPE, see above. STRIPE needs a
  /// sequence that repeats a block of tokens. Default: MUL.
  vtkSetClampMacro(Measure, int, MUL, STRIPE);
  vtkGetMacro(Measure, int);

  /// Whether attention to the first key, where it rests if a head has nothing to do, counts as 0 in
  /// MUL and ABS. Default: off.
  vtkSetMacro(ExcludeFirst, bool);
  vtkGetMacro(ExcludeFirst, bool);
  vtkBooleanMacro(ExcludeFirst, bool);

  /// Whether attention of a query to its own position counts as 0 in MUL and ABS. Default: off.
  vtkSetMacro(ExcludeCurrent, bool);
  vtkGetMacro(ExcludeCurrent, bool);
  vtkBooleanMacro(ExcludeCurrent, bool);

protected:
  vtkHeadScores();

  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Measured;
  struct Scores;
  struct Memory;

  Measured MeasureHeads(vtkMultiBlockDataSet* input, vtkMultiBlockDataSet* model,
    const AttentionAtlas::Task& task) const;
  Scores ScoresOf(const Measured& measured) const;

  int Measure = MUL;
  bool ExcludeFirst = false;
  bool ExcludeCurrent = false;
  std::shared_ptr<Memory> Kept;
};
