#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkCorpusAlgorithm.h>

/// From which tokens a head attends over a corpus, and to which. All attention counts but that of a
/// query to itself and to the first token of its window.
///
/// Output: a vtkTable with a row per kind of token that occurs at least MinimumOccurrences times:
/// Token (string), TokenId (int), Occurrences (id type); From and To (double), the attention per
/// occurrence, at least 0; From Total and To Total, its sums; From Distance and To Distance, its
/// mean distance in tokens, 0 without attention. Rows fall by SortBy; equal ones rise by id. Field
/// data: Layer, Head.
class ATTENTIONATLASCORPUS_EXPORT vtkHeadTokenTable : public vtkCorpusAlgorithm
{
public:
  static vtkHeadTokenTable* New();
  vtkTypeMacro(vtkHeadTokenTable, vtkCorpusAlgorithm);

  enum SortType
  {
    TO_TOTAL = 0,
    FROM_TOTAL = 1,
    TO = 2,
    FROM = 3,
    OCCURRENCES = 4
  };

  /// The column by which rows fall. Default: TO_TOTAL.
  vtkSetClampMacro(SortBy, int, TO_TOTAL, OCCURRENCES);
  vtkGetMacro(SortBy, int);

  /// Tokens that occur less often are left out, at least 1. Default: 1.
  vtkSetClampMacro(MinimumOccurrences, int, 1, VTK_INT_MAX);
  vtkGetMacro(MinimumOccurrences, int);

  /// The largest number of rows. 0: all. Default: 0.
  vtkSetClampMacro(Top, int, 0, VTK_INT_MAX);
  vtkGetMacro(Top, int);

protected:
  vtkHeadTokenTable();

  void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) override;

private:
  int SortBy = TO_TOTAL;
  int MinimumOccurrences = 1;
  int Top = 0;
};
