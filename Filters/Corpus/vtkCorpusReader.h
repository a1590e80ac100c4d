#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

/// Reads statistics of a corpus that vtkCorpusWriter or the command attention-atlas corpus wrote.
/// Output: a vtkTable with a row per head (CorpusConversion.h), in the first piece.
class ATTENTIONATLASCORPUS_EXPORT vtkCorpusReader : public vtkTaskAlgorithm
{
public:
  static vtkCorpusReader* New();
  vtkTypeMacro(vtkCorpusReader, vtkTaskAlgorithm);

  /// The safetensors file to read. Default: none.
  vtkSetStdStringFromCharMacro(FileName);
  vtkGetCharFromStdStringMacro(FileName);

  /// Whether a file holds statistics of a corpus.
  int CanReadFile(const char* fileName);

protected:
  vtkCorpusReader();

  void Execute(AttentionAtlas::Task& task) override;

private:
  std::string FileName;
};
