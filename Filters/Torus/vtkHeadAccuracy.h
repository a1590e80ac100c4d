#pragma once

#include "vtkTorusAlgorithm.h"

/// Counts the token pairs that each head of an attention-only transformer predicts correctly alone.
/// Input: the model, with next_token. Output: a vtkTable with one row for each head alone, which
/// predicts argmax W_U out_h without a residual; one for All Heads, the whole model; and one for
/// the Union, the pairs that at least one head alone predicts correctly. Columns:
/// - Name (string): "Head 0", ..., "All Heads", "Union"
/// - Accuracy (double): the fraction of correct pairs, 0 to 1
/// - Correct, Pairs (int): the number of correct pairs and of all pairs, N^2
///
/// Field data: the model's dimensions. Computed in double precision; on a tie the lowest class is
/// predicted. On several ranks, rank 0 has the table.
class ATTENTIONATLASTORUS_EXPORT vtkHeadAccuracy : public vtkModelAlgorithm
{
public:
  static vtkHeadAccuracy* New();
  vtkTypeMacro(vtkHeadAccuracy, vtkModelAlgorithm);

  /// The residual to which the outputs of all heads are added, one of
  /// vtkTorusAlgorithm::ResidualType. A head alone has none. Default: EMBEDDING_POSITION.
  vtkSetClampMacro(
    Residual, int, vtkTorusAlgorithm::EMBEDDING_POSITION, vtkTorusAlgorithm::RAW_EMBEDDING);
  vtkGetMacro(Residual, int);

protected:
  vtkHeadAccuracy();

  void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) override;

private:
  int Residual = vtkTorusAlgorithm::EMBEDDING_POSITION;
};
