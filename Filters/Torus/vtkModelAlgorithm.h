#ifndef vtkModelAlgorithm_h
#define vtkModelAlgorithm_h

#include "AttentionAtlasTorusModule.h"

#include <vtkDataObjectAlgorithm.h>

#include <functional>
#include <vector>

class vtkMultiBlockDataSet;

namespace atlas
{
struct AttentionOnlyModel;
}

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
   * RequestData of a filter of a model whose outputs are small: calls compute(model), which fills
   * them, on the first piece, and so rank; on the others they are empty, so that nothing is drawn
   * or counted twice. Adds the model's dimensions and, in the order of the ports, their formats to
   * their field data. An exception of compute is told, and false from it means that the user has
   * cancelled: both leave every output empty.
   */
  int RequestFromModel(vtkInformationVector** inputVector, vtkInformationVector* outputVector,
    const std::vector<const char*>& formats,
    const std::function<bool(const atlas::AttentionOnlyModel&)>& compute);

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
