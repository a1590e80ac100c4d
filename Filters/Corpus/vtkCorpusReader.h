#ifndef vtkCorpusReader_h
#define vtkCorpusReader_h

#include "AttentionAtlasCorpusModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>

/**
 * @class vtkCorpusReader
 * @brief Reads statistics of a corpus that vtkCorpusWriter or the command attention-atlas corpus
 * wrote.
 *
 * Output: a vtkTable with a row per head (CorpusConversion.h), in the first piece.
 */
class ATTENTIONATLASCORPUS_EXPORT vtkCorpusReader : public vtkTaskAlgorithm
{
public:
  static vtkCorpusReader* New();
  vtkTypeMacro(vtkCorpusReader, vtkTaskAlgorithm);

  ///@{
  /**
   * The safetensors file to read. Default: none.
   */
  vtkSetStdStringFromCharMacro(FileName);
  vtkGetCharFromStdStringMacro(FileName);
  ///@}

  /**
   * Whether a file holds statistics of a corpus.
   */
  int CanReadFile(const char* fileName);

protected:
  vtkCorpusReader();
  ~vtkCorpusReader() override = default;

  void Execute(AttentionAtlas::Task& task) override;

private:
  vtkCorpusReader(const vtkCorpusReader&) = delete;
  void operator=(const vtkCorpusReader&) = delete;

  std::string FileName;
};

#endif
