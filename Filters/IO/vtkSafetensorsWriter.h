#pragma once

#include "AttentionAtlasIOModule.h"

#include <vtkWriter.h>

class vtkMultiBlockDataSet;

/// Base class of the writers of models and recordings. Input: a vtkMultiBlockDataSet. On several
/// ranks, which all hold the same data, rank 0 writes.
class ATTENTIONATLASIO_EXPORT vtkSafetensorsWriter : public vtkWriter
{
public:
  vtkTypeMacro(vtkSafetensorsWriter, vtkWriter);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  /// The file to write. Default: none.
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);

protected:
  vtkSafetensorsWriter() = default;
  ~vtkSafetensorsWriter() override;

  int FillInputPortInformation(int port, vtkInformation* info) override;
  void WriteData() override;

  /// Writes the input to a file, completely or not at all. Throws std::exception.
  virtual void WriteFile(vtkMultiBlockDataSet* input, const char* fileName) = 0;

private:
  char* FileName = nullptr;
};
