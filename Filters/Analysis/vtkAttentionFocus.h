#pragma once

#include "AttentionAtlasAnalysisModule.h"

#include <vtkRecordingAlgorithm.h>

namespace AttentionAtlas
{
class RankGroup;
}

/// Where heads look: at themselves, at the first token, at one key or at many. Input: a recording.
/// The statistics are those of Claus, "Attention Focus Plots", and of attention sinks (Gu et al.
/// 2024). Formulas: Core's AttentionFocus.h.
///
/// Output 0: a vtkTable with a row per head, or per head and query in the order of heads and
/// tokens. Columns of numbers, double or (per query) float, unless stated otherwise; per head the
/// means over its queries:
/// - Layer, Head (int); per query also Sequence, Position (int), Token Index (id type: the row of
///   the token in the recording; also the pedigree id) and Token (string)
/// - Self Weight, First Weight: the attention to the query's own position and to the first token
/// - Strongest Key: the position of the key with the largest weight (per query int)
/// - Strongest Is Self, Strongest Is First: whether that is the query's own position, or the first
///   token (per query unsigned char, 0 or 1)
/// - Concentration: the largest minus the second largest weight; the weight of a single key
/// - Entropy: of the attention, divided by the logarithm of the number of keys that the mask and
///   the layer's window allow, i + 1 of a causal mask: 0 for a single key, 1 if all weigh the same
/// - Sink Rate: whether First Weight is above SinkThreshold (per query unsigned char, 0 or 1)
/// - First Cosine, Query Norm, First Key Norm: q . k_first is their product; absent if the
///   recording has no queries and keys
///
/// Output 1: a vtkTable for line plots whose lines do not cross: Rank (int, 0 for the head of the
/// layer with the largest value), Layer (int), Value (double: of Measure, per head), Head (int); by
/// layer, then rank.
///
/// On several ranks the heads are shared among them; the first one has the tables.
class ATTENTIONATLASANALYSIS_EXPORT vtkAttentionFocus : public vtkRecordingAlgorithm
{
public:
  static vtkAttentionFocus* New();
  vtkTypeMacro(vtkAttentionFocus, vtkRecordingAlgorithm);

  enum PerType
  {
    HEAD = 0,
    QUERY = 1
  };

  enum QuantityType
  {
    WEIGHTS = 0,
    NORM_WEIGHTED = 1
  };

  enum MeasureType
  {
    STRONGEST_IS_SELF = 0,
    STRONGEST_IS_FIRST = 1,
    CONCENTRATION = 2,
    SELF_WEIGHT = 3,
    FIRST_WEIGHT = 4,
    ENTROPY = 5,
    SINK_RATE = 6
  };

  /// What a row of the first table is: HEAD or QUERY. Default: HEAD.
  vtkSetClampMacro(Per, int, HEAD, QUERY);
  vtkGetMacro(Per, int);

  /// Whether the queries at position 0, which can attend only to themselves if the mask is causal,
  /// are left out. Default: off.
  vtkSetMacro(ExcludeFirst, bool);
  vtkGetMacro(ExcludeFirst, bool);
  vtkBooleanMacro(ExcludeFirst, bool);

  /// A first token whose weight is above this, 0 to 1, is a sink. Default: 0.3.
  vtkSetMacro(SinkThreshold, double);
  vtkGetMacro(SinkThreshold, double);

  /// What is measured. WEIGHTS: attention weights. NORM_WEIGHTED: weights times the norms of what
  /// the keys add to the residual stream, divided by their sum. Default: WEIGHTS.
  vtkSetClampMacro(Quantity, int, WEIGHTS, NORM_WEIGHTED);
  vtkGetMacro(Quantity, int);

  /// The column by which the second output is sorted. Default: STRONGEST_IS_SELF.
  vtkSetClampMacro(Measure, int, STRONGEST_IS_SELF, SINK_RATE);
  vtkGetMacro(Measure, int);

protected:
  vtkAttentionFocus();

  void Execute(AttentionAtlas::Task& task) override;

private:
  struct Work;
  void FillTables(const Work& work, const AttentionAtlas::Task& task) const;

  int Per = HEAD;
  bool ExcludeFirst = false;
  double SinkThreshold = 0.3;
  int Quantity = WEIGHTS;
  int Measure = STRONGEST_IS_SELF;
};
