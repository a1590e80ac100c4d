#pragma once

#include "AttentionAtlasTorusModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>
#include <vector>

namespace atlas
{
struct AttentionOnlyModel;
}

/// Base class of the filters whose first input is an attention-only transformer. Input port 0: the
/// model (vtkMultiBlockDataSet, as produced by vtkAttentionOnlyModelReader). An empty one gives
/// empty outputs and no error. The outputs have the model's field data, also what the user added.
class ATTENTIONATLASTORUS_EXPORT vtkModelAlgorithm : public vtkTaskAlgorithm
{
public:
  vtkTypeMacro(vtkModelAlgorithm, vtkTaskAlgorithm);

protected:
  enum PieceType
  {
    FIRST_PIECE = 0, ///< small outputs: other pieces stay empty
    EVERY_PIECE = 1
  };

  /// `outputs`, `moreInputs`: their types, as in vtkTaskAlgorithm. `pieces`: of PieceType, for
  /// which the model is evaluated.
  vtkModelAlgorithm(const std::vector<std::string>& outputs,
    const std::vector<std::string>& moreInputs = {}, int pieces = FIRST_PIECE);

  void Execute(AttentionAtlas::Task& task) final;

  /// Computes the outputs from the model. Throws as Execute.
  virtual void Evaluate(const atlas::AttentionOnlyModel& model, AttentionAtlas::Task& task) = 0;

private:
  int Pieces;
};
