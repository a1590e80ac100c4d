#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkCorpusAlgorithm.h>

/// How a quantity of a head is distributed over the queries of a corpus. Output port 0, a vtkTable
/// with a row per bin: Value, its middle; Count; Share, the part of all counts; Cumulative, the sum
/// of shares up to it (all double). ENTROPY and STRONGEST_WEIGHT have 20 equal bins from 0 to 1,
/// whose counts are queries. DISTANCE has a bin for each distance in tokens; its count is the
/// attention that goes there, which is 1 in all for each query, less with a sink.
///
/// Output port 1, a vtkTable with a row for each percent from 0 to 100: Quantile, from 0 to 1;
/// Entropy, Concentration, Written Norm and, for models that predict a next token, Next Token
/// Effect: the value of rank floor(Quantile (n - 1)) of n queries, within 1 % of it (Core's
/// QuantileSketch.h).
///
/// Field data of both: Layer, Head.
class ATTENTIONATLASCORPUS_EXPORT vtkHeadHistogram : public vtkCorpusAlgorithm
{
public:
  static vtkHeadHistogram* New();
  vtkTypeMacro(vtkHeadHistogram, vtkCorpusAlgorithm);

  enum QuantityType
  {
    ENTROPY = 0,
    STRONGEST_WEIGHT = 1,
    DISTANCE = 2
  };

  /// What is counted. Default: ENTROPY.
  vtkSetClampMacro(Quantity, int, ENTROPY, DISTANCE);
  vtkGetMacro(Quantity, int);

protected:
  vtkHeadHistogram();

  void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) override;

private:
  int Quantity = ENTROPY;
};
