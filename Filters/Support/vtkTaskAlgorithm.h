#pragma once

#include "AttentionAtlasSupportModule.h"
#include "ImageRequest.h"
#include "TaskErrors.h"

#include <vtkDataObjectAlgorithm.h>
#include <vtkSmartPointer.h>

#include <string>
#include <vector>

class vtkMultiProcessController;

namespace AttentionAtlas
{
class RankGroup;
class Task;
}

/**
 * @class vtkTaskAlgorithm
 * @brief Base class of our readers, sources and filters: the one way in which they execute.
 *
 * A subclass names its inputs and outputs in its constructor, and fills the outputs, which are
 * empty before, in Execute.
 * - If that throws, all outputs are empty again and the filter reports the error, unless it is the
 *   last one and nothing has changed since. GetLastError and GetErrorCode keep it until the next
 *   success. RequestData returns 1 in any case: 0 would leave downstream filters with the extent of
 *   this attempt, and other ranks waiting.
 * - If it throws atlas::Canceled, as the task's progress does once the user has canceled, all
 *   outputs are empty, and the next update computes them again.
 * - After an error, the next update reads files (Task::Reads) again once they, or files beside
 *   them, were changed. On several ranks this takes a change of the filter, such as by Reload
 *   Files: a rank that saw new files before the others would execute, and wait, alone.
 * - With TOGETHER, a filter executes on all ranks at once: if one fails or is canceled, all do, and
 *   the first one reports the error. With ALONE, each rank executes for itself; what is wrong with
 *   data or options (atlas::Error) is reported by the first piece alone, unless files were read.
 */
class ATTENTIONATLASSUPPORT_EXPORT vtkTaskAlgorithm : public vtkDataObjectAlgorithm
{
public:
  vtkTypeMacro(vtkTaskAlgorithm, vtkDataObjectAlgorithm);

  /// The message of the last execution if it failed; empty if it did not. GetErrorCode has a code
  /// of vtkErrorCode.h: CannotOpenFileError, FileFormatError, or UnknownError for any other error.
  /// On several ranks, all have the error of a filter that executes on all of them at once.
  const char* GetLastError() const { return this->Errors.Text().c_str(); }

  /// The ranks that can execute together. Default: nullptr, the global controller.
  void SetController(vtkMultiProcessController* controller);
  vtkMultiProcessController* GetController() const;

  /// Takes back the request to cancel, which does not count as a change of the filter.
  void WithdrawCancel() { this->AbortExecute = 0; }

  /// Looks whether files were changed that could not be read.
  int ComputePipelineMTime(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector, int requestFromOutputPort, vtkMTimeType* mtime) override;

protected:
  enum OptionType
  {
    ALONE = 0,      ///< each rank executes for itself
    TOGETHER = 1,   ///< all ranks execute together
    WHOLE_INPUT = 2 ///< of a matrix that is shown as an image: the inputs are asked for the same
                    ///< piece whatever part of the image is shown, and so are the other outputs
  };

  /// The types of the inputs and outputs, by port, such as vtkTable or vtkDataSet|vtkTable. An
  /// input with a question mark behind its type is optional. An output with an equals sign before
  /// its type has the class of the first input, of that type. `options`: of OptionType, joined by
  /// |.
  vtkTaskAlgorithm(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
    int options = ALONE);
  ~vtkTaskAlgorithm() override;

  /// Computes the outputs of the task. Throws std::exception with what is wrong. It may set the
  /// progress text, which is removed in the end.
  virtual void Execute(AttentionAtlas::Task& task) = 0;

  /// Makes the output of a port one of this class, unless it is. For RequestDataObject.
  static void MakeOutput(vtkInformationVector* outputVector, int port, const char* className);

  /// Asks for the piece of all outputs that is asked for of one. For RequestUpdateExtent.
  static void AskForAllOutputs(vtkInformation* request, vtkInformationVector* outputVector);

  int FillInputPortInformation(int port, vtkInformation* info) override;
  int FillOutputPortInformation(int port, vtkInformation* info) override;
  vtkExecutive* CreateDefaultExecutive() override;
  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestDataObject(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestUpdateExtent(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) final;

private:
  struct Failure;

  bool IsOfType(int port, vtkDataObject* data) const;
  void RequireTypes(vtkInformationVector** inputVector) const;
  void Fail(AttentionAtlas::Task& task, const Failure& failure, vtkInformationVector* outputVector);

  std::vector<std::string> Inputs;
  std::vector<std::string> Outputs;
  int Options;
  vtkSmartPointer<vtkMultiProcessController> Controller;
  AttentionAtlas::TaskErrors Errors;
  AttentionAtlas::ImageRequest Shown; ///< of a matrix, by each rank alone

  bool ShowsMatrix() const { return this->Options == WHOLE_INPUT; }
};
