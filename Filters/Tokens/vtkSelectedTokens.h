#pragma once

#include "AttentionAtlasTokensModule.h"

#include <vtkTaskAlgorithm.h>

/// The tokens of some points, as a selection that holds in every view of the recording. Input: a
/// vtkDataSet or vtkTable whose points, rows or else cells are tokens, with the array Token Index,
/// such as a part of what vtkHeadEmbedding makes.
///
/// Output: a vtkSelection with one node of points by pedigree id (VTK_ID_TYPE): the distinct token
/// indices in ascending order. It is empty if there are no points. On several ranks each has the
/// tokens of its points. An input without the array Token Index is an error.
class ATTENTIONATLASTOKENS_EXPORT vtkSelectedTokens : public vtkTaskAlgorithm
{
public:
  static vtkSelectedTokens* New();
  vtkTypeMacro(vtkSelectedTokens, vtkTaskAlgorithm);

protected:
  vtkSelectedTokens();

  void Execute(AttentionAtlas::Task& task) override;
};
