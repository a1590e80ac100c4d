#pragma once

#include "Tables.h"
#include "TemporaryDirectory.h"

namespace atlas::test
{

/// The small GPT-2 of the oracle with a tokenizer, whose tokens are " w0", " w1" and so on.
class WordModel
{
public:
  static constexpr int Vocabulary = 211;

  WordModel()
  {
    for (const char* name : { "config.json", "model.safetensors" })
    {
      std::filesystem::copy(TransformerOracle::Folder("gpt2") / name, this->Folder / name);
    }
    std::string words;
    for (int id = 0; id < Vocabulary; ++id)
    {
      words +=
        (id == 0 ? "{" : ", ") + ("\"\u0120w" + std::to_string(id)) + "\": " + std::to_string(id);
    }
    WriteBytes(this->Folder / "vocab.json", words + "}");
    WriteBytes(this->Folder / "merges.txt", "#version: 0.2\n");
    this->Reader->SetFileName((this->Folder / "config.json").c_str());
  }

  vtkAlgorithmOutput* Port() { return this->Reader->GetOutputPort(); }

  static std::string Text(double id) { return " w" + std::to_string(static_cast<int>(id)); }

private:
  TemporaryDirectory Folder;
  vtkNew<vtkTransformerReader> Reader;
};

}
