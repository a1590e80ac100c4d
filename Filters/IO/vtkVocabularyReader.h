#pragma once

#include "AttentionAtlasIOModule.h"

#include <vtkTaskAlgorithm.h>

/// Reads the vocabulary of a tokenizer as a table of tokens. The file is a GGUF file of llama.cpp,
/// with a model or with a vocabulary alone, or one of a tokenizer, whose folder is read as by
/// Core's ReadTokenizer: tokenizer.json, tokenizer.model and others.
///
/// Output: a vtkTable with a row per token, by id: TokenId (int) and Token (string), the text that
/// the token stands for (Core's Tokenizer::Label). Field data: Tokenizer (string), its kind. The
/// table is in the first piece; it is empty in the others.
class ATTENTIONATLASIO_EXPORT vtkVocabularyReader : public vtkTaskAlgorithm
{
public:
  static vtkVocabularyReader* New();
  vtkTypeMacro(vtkVocabularyReader, vtkTaskAlgorithm);

  /// The file to read. Default: none.
  vtkSetFilePathMacro(FileName);
  vtkGetFilePathMacro(FileName);

  /// Returns 1 if `fileName` is a file of a tokenizer, or a GGUF file without a model.
  int CanReadFile(const char* fileName);

protected:
  vtkVocabularyReader();
  ~vtkVocabularyReader() override;

  void Execute(AttentionAtlas::Task& task) override;

private:
  char* FileName = nullptr;
};
