#ifndef vtkSelectedTokens_h
#define vtkSelectedTokens_h

#include "AttentionAtlasHeadsModule.h"

#include <vtkSelectionAlgorithm.h>

/**
 * @class vtkSelectedTokens
 * @brief The tokens of some points, as a selection that holds in every view of the recording.
 *
 * Input: a vtkDataSet or vtkTable whose points, rows or else cells are tokens, with the array Token
 * Index, such as a part of what vtkHeadEmbedding makes.
 *
 * Output: a vtkSelection with one node of points by pedigree id (VTK_ID_TYPE): the distinct token
 * indices in ascending order. It is empty if there are no points. On several ranks each has the
 * tokens of its points. An input without the array Token Index is an error.
 */
class ATTENTIONATLASHEADS_EXPORT vtkSelectedTokens : public vtkSelectionAlgorithm
{
public:
  static vtkSelectedTokens* New();
  vtkTypeMacro(vtkSelectedTokens, vtkSelectionAlgorithm);

protected:
  vtkSelectedTokens() = default;
  ~vtkSelectedTokens() override = default;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkSelectedTokens(const vtkSelectedTokens&) = delete;
  void operator=(const vtkSelectedTokens&) = delete;
};

#endif
