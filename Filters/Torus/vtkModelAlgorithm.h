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
 * @brief Base class of the filters whose first input is an attention-only transformer.
 *
 * Input port 0: the model (vtkMultiBlockDataSet, as produced by vtkAttentionOnlyModelReader).
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
   * Lets the executive create the output with the type set by FillOutputPortInformation.
   */
  int RequestDataObject(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

  /**
   * The model on input port 0, or nullptr if it has no blocks yet: an empty pipeline gives an empty
   * output and no error.
   */
  static vtkMultiBlockDataSet* GetModelInput(vtkInformationVector** inputVector);

  /**
   * RequestData of a filter with small outputs. Calls compute(model), which fills the outputs, for
   * the first piece, and thus on the first rank. Other pieces stay empty, so nothing is drawn or
   * counted twice. Adds the model's field data and the formats, in the order of the ports, to the
   * field data of the outputs. If compute throws, the error is reported; if it returns false, the
   * user has canceled. In both cases every output is left empty.
   */
  int RequestFromModel(vtkInformationVector** inputVector, vtkInformationVector* outputVector,
    const std::vector<const char*>& formats,
    const std::function<bool(const atlas::AttentionOnlyModel&)>& compute);

  /**
   * Passes the model's field data, also what the user added, on to an output that was computed from
   * it. The output keeps its format and the arrays that it has.
   */
  static void CopyModelFields(vtkMultiBlockDataSet* model, vtkDataObject* output);

private:
  vtkModelAlgorithm(const vtkModelAlgorithm&) = delete;
  void operator=(const vtkModelAlgorithm&) = delete;
};

#endif
