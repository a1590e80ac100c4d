#ifndef vtkModelAlgorithm_h
#define vtkModelAlgorithm_h

#include "AttentionAtlasTorusModule.h"

#include <vtkDataObjectAlgorithm.h>

class vtkMultiBlockDataSet;

/**
 * @class vtkModelAlgorithm
 * @brief Base of the filters whose first input is an attention-only transformer.
 *
 * Input port 0: the model (vtkMultiBlockDataSet, as vtkAttentionOnlyModelReader gives it).
 */
class ATTENTIONATLASTORUS_EXPORT vtkModelAlgorithm : public vtkDataObjectAlgorithm
{
public:
  vtkTypeMacro(vtkModelAlgorithm, vtkDataObjectAlgorithm);

protected:
  vtkModelAlgorithm() = default;
  ~vtkModelAlgorithm() override = default;

  int FillInputPortInformation(int port, vtkInformation* info) override;

  /**
   * Leaves the output to be created with the type that FillOutputPortInformation names.
   */
  int RequestDataObject(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

  /**
   * The model on input port 0, or nullptr if that has no block yet: an empty pipeline gives an
   * empty output and no error.
   */
  static vtkMultiBlockDataSet* GetModelInput(vtkInformationVector** inputVector);

  /**
   * Whether this is the piece, and so the rank, that small geometry comes from: on the others it is
   * empty, so that nothing is drawn or counted twice.
   */
  static bool IsFirstPiece(vtkInformationVector* outputVector);

  /**
   * Copies the model's dimensions to the field data of an output that was computed from it.
   */
  static void CopyModelFields(vtkMultiBlockDataSet* model, vtkDataObject* output);

  /**
   * Tells how much is done, 0 to 1, and whether the user has cancelled.
   */
  bool ProgressAndCheckAbort(double progress);

  /**
   * To be returned from RequestData when the user has cancelled: nothing rather than half, on any
   * output port. The next update computes the outputs anew, even if nothing has changed.
   */
  int LeaveUnfinished(vtkInformationVector* outputVector);

private:
  vtkModelAlgorithm(const vtkModelAlgorithm&) = delete;
  void operator=(const vtkModelAlgorithm&) = delete;
};

#endif
