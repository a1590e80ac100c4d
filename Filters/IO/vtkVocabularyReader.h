#ifndef vtkVocabularyReader_h
#define vtkVocabularyReader_h

#include "AttentionAtlasIOModule.h"
#include "FailedFiles.h"

#include <vtkTableAlgorithm.h>

/**
 * @class vtkVocabularyReader
 * @brief Reads the vocabulary of a tokenizer as a table of tokens.
 *
 * The file is a GGUF file of llama.cpp, with a model or with a vocabulary alone, or one of a
 * tokenizer, whose folder is read as by Core's ReadTokenizer: tokenizer.json, tokenizer.model and
 * others.
 *
 * Output: a vtkTable with a row per token, by id: TokenId (int) and Token (string), the text that
 * the token stands for (Core's Tokenizer::Label). Field data: Tokenizer (string), its kind. The
 * table is in the first piece; it is empty in the others.
 */
class ATTENTIONATLASIO_EXPORT vtkVocabularyReader : public vtkTableAlgorithm
{
public:
  static vtkVocabularyReader* New();
  vtkTypeMacro(vtkVocabularyReader, vtkTableAlgorithm);
  void PrintSelf(ostream& os, vtkIndent indent) override;

  ///@{
  /**
   * The file to read. Default: none.
   */
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);
  ///@}

  /**
   * Returns 1 if `fileName` is a file of a tokenizer, or a GGUF file without a model.
   */
  int CanReadFile(const char* fileName);

  /**
   * After an error, changes with the files, so that the next update reads them again.
   */
  vtkMTimeType GetMTime() override;

protected:
  vtkVocabularyReader();
  ~vtkVocabularyReader() override;

  int RequestData(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

private:
  vtkVocabularyReader(const vtkVocabularyReader&) = delete;
  void operator=(const vtkVocabularyReader&) = delete;

  char* FileName = nullptr;
  AttentionAtlas::FailedFiles Failed;
};

#endif
