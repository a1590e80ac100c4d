#include "vtkVocabularyReader.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Execution.h"
#include "GgufModel.h"
#include "GgufTokenizer.h"
#include "TokenizerFile.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <vector>

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
      // Vocabularies may have gaps.
    }
  }
  return tokens;
}

}

vtkStandardNewMacro(vtkVocabularyReader);

vtkVocabularyReader::vtkVocabularyReader()
{
  this->SetNumberOfInputPorts(0);
}

vtkVocabularyReader::~vtkVocabularyReader()
{
  this->SetFileName(nullptr);
}

vtkMTimeType vtkVocabularyReader::GetMTime()
{
  this->Failed.Touch(this);
  return this->Superclass::GetMTime();
}

int vtkVocabularyReader::CanReadFile(const char* fileName)
{
  const std::filesystem::path path = fileName;
  const auto& names = atlas::TokenizerFiles;
  const bool isTokenizer = std::find(names.begin(), names.end(), path.filename()) != names.end();
  return isTokenizer || (atlas::IsGgufName(path) && atlas::IsVocabularyAlone(path)) ? 1 : 0;
}

int vtkVocabularyReader::RequestData(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  if (this->FileName == nullptr || this->FileName[0] == '\0')
  {
    vtkErrorMacro("FileName: expected a GGUF file or the file of a tokenizer, found none.");
    return 0;
  }
  if (!AttentionAtlas::IsFirstPiece(outputVector))
  {
    return 1;
  }
  vtkTable* output = vtkTable::GetData(outputVector);
  this->Failed.Forget();
  try
  {
    const std::filesystem::path path = this->FileName;
    const atlas::Tokenizer tokenizer = atlas::IsGgufName(path)
                                         ? atlas::ReadGgufTokenizer(path)
                                         : atlas::ReadTokenizer(path.parent_path());
    const Tokens tokens = TokensOf(tokenizer);
    namespace Names = AttentionAtlas::ArrayNames;
    AttentionAtlas::AddColumn<vtkIntArray>(output, Names::TokenId, tokens.ids);
    AttentionAtlas::AddColumn<vtkStringArray>(output, Names::Token, tokens.labels);
    AttentionAtlas::AddField(
      output->GetFieldData(), Names::Tokenizer, std::string(tokenizer.Kind()));
    AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::Vocabulary);
  }
  catch (const std::exception& e)
  {
    output->Initialize();
    this->Failed.Remember({ this->FileName });
    vtkErrorMacro(<< e.what());
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkVocabularyReader::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "FileName: " << (this->FileName ? this->FileName : "(none)") << "\n";
}
