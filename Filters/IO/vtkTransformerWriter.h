#pragma once

#include "vtkSafetensorsWriter.h"

#include <vector>

/// Writes a transformer that was just trained to a folder, as attention-atlas learn does. Input
/// port 0: the model, from vtkTransformerTraining. Input port 1 (optional): its curves, output 1 of
/// the same. FileName is config.json in the folder, which is made. Beside it are model.safetensors,
/// recipe.json, curves.csv if there are curves, and what else the task has, such as tokenizer.json.
/// vtkTransformerReader, Hugging Face's transformers and TransformerLens read the folder. With the
/// model after the last step there is training-state.safetensors, from which attention-atlas learn
/// --continue and ContinueFrom of vtkTransformerTraining go on, to the same bytes as a training
/// that was not interrupted.
///
/// With Checkpoints, the model after the last step is in the folder, and each checkpoint in a
/// folder checkpoint-N in it; otherwise the folder has the model at the time of the pipeline.
/// Checkpoints of other steps in the folder, or the state of another training, are an error. A
/// training that has gone on from the folder keeps the earlier checkpoints and rows of the curves
/// there.
class ATTENTIONATLASIO_EXPORT vtkTransformerWriter : public vtkSafetensorsWriter
{
public:
  static vtkTransformerWriter* New();
  vtkTypeMacro(vtkTransformerWriter, vtkSafetensorsWriter);

  /// Connects the curves.
  void SetCurvesConnection(vtkAlgorithmOutput* curves) { this->SetInputConnection(1, curves); }

  /// Whether each checkpoint is written, too. Default: true.
  vtkSetMacro(Checkpoints, bool);
  vtkGetMacro(Checkpoints, bool);

  vtkTypeBool ProcessRequest(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

protected:
  vtkTransformerWriter();

  int FillInputPortInformation(int port, vtkInformation* info) override;
  void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) override;

private:
  bool Checkpoints = true;
  std::vector<double> Times; ///< to write; empty: that of the pipeline
  std::size_t Next = 0;      ///< the time that is being written
  bool GoesOn = false;       ///< whether the folder has earlier steps of the training
  bool Failed = false;       ///< whether an earlier one could not be written
};
