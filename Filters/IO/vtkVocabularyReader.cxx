#include "vtkVocabularyReader.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Task.h"
#include "Text/GgufTokenizer.h"
#include "Text/TokenizerFile.h"
#include "Weights/GgufModel.h"

#include <vtkObjectFactory.h>

#include <algorithm>
#include <filesystem>
#include <vector>

using namespace AttentionAtlas;

namespace
{

/// The ids that have a token, and their labels.
struct Tokens
{
  std::vector<int> ids;
  std::vector<std::string> labels;
};

Tokens TokensOf(const atlas::Tokenizer& tokenizer)
{
  Tokens tokens;
  for (int id = 0; id < tokenizer.VocabularySize(); ++id)
  {
    try
    {
      tokens.labels.push_back(tokenizer.Label(id));
      tokens.ids.push_back(id);
    }
    catch (const atlas::OptionError&)
    {
      continue; // vocabularies may have gaps
    }
  }
  return tokens;
}

}

vtkStandardNewMacro(vtkVocabularyReader);

vtkVocabularyReader::vtkVocabularyReader()
  : vtkTaskAlgorithm({}, { "vtkTable" })
{
}

vtkVocabularyReader::~vtkVocabularyReader()
{
  this->SetFileName(nullptr);
}

int vtkVocabularyReader::CanReadFile(const char* fileName)
{
  const std::filesystem::path path = fileName;
  const auto& names = atlas::TokenizerFiles;
  const bool isTokenizer = std::find(names.begin(), names.end(), path.filename()) != names.end();
  return isTokenizer || (atlas::IsGgufName(path) && atlas::IsVocabularyAlone(path)) ? 1 : 0;
}

void vtkVocabularyReader::Execute(Task& task)
{
  if (this->FileName == nullptr || this->FileName[0] == '\0')
  {
    throw atlas::OptionError(
      "FileName: expected a GGUF file or the file of a tokenizer, found none.");
  }
  if (!task.IsFirst())
  {
    return;
  }
  task.Reads(this->FileName);
  const std::filesystem::path path = this->FileName;
  const bool isOfTargets = path.filename().string().rfind("target", 0) == 0; // of Marian
  const atlas::Tokenizer tokenizer = atlas::IsGgufName(path) ? atlas::ReadGgufTokenizer(path)
                                     : isOfTargets ? atlas::ReadTargetTokenizer(path.parent_path())
                                                   : atlas::ReadTokenizer(path.parent_path());
  const Tokens tokens = TokensOf(tokenizer);
  auto* output = task.Output<vtkTable>();
  namespace Names = ArrayNames;
  AddColumn<vtkIntArray>(output, Names::TokenId, tokens.ids);
  AddColumn<vtkStringArray>(output, Names::Token, tokens.labels);
  AddField(output->GetFieldData(), Names::Tokenizer, std::string(tokenizer.Kind()));
  SetFormat(output, Formats::Vocabulary);
}
