#pragma once

#include "vtkMmcifReader.h"
#include "vtkTransformerReader.h"
#include "vtkTransformerRecorder.h"

#include "Core/ModelsOracle.h"
#include "Core/OracleFile.h"
#include "Recordings.h"
#include "TemporaryDirectory.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace atlas::test
{

/// The vocabulary of ESM-2.
inline const char* const EsmVocabulary =
  "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>";

/// The small ESM-2 of the oracle, with a tokenizer, and a recorder of its first protein.
class ProteinModel
{
public:
  const OracleFile Expected{ AnyOracle("esm/b") / "expected.safetensors" };
  TemporaryDirectory Folder;
  Warned<vtkTransformerReader> Reader;
  Warned<vtkTransformerRecorder> Recorder;
  std::string Letters; ///< of the protein

  ProteinModel()
  {
    for (const char* name : { "config.json", "model.safetensors" })
    {
      std::filesystem::copy_file(AnyOracle("esm/b") / name, this->Folder / name);
    }
    std::istringstream words(EsmVocabulary);
    std::vector<std::string> vocabulary;
    std::ofstream file(this->Folder / "vocab.txt");
    for (std::string word; words >> word;)
    {
      vocabulary.push_back(word);
      file << word << '\n';
    }
    file.close();
    for (const std::int64_t id : this->Expected.Integers("0.input_ids"))
    {
      this->Letters += vocabulary[id].size() == 1 ? vocabulary[id] : "";
    }
    this->Reader->SetFileName((this->Folder / "config.json").c_str());
    this->Recorder->SetInputConnection(this->Reader->GetOutputPort());
    this->Recorder->SetPrompts(this->Letters.c_str());
  }
};

/// The name of the residue of a letter.
inline std::string ResidueNameOf(char letter)
{
  static const std::string letters = "ACDEFGHIKLMNPQRSTVWY";
  static const std::vector<std::string> names = { "ALA", "CYS", "ASP", "GLU", "PHE", "GLY", "HIS",
    "ILE", "LYS", "LEU", "MET", "ASN", "PRO", "GLN", "ARG", "SER", "THR", "VAL", "TRP", "TYR" };
  const std::size_t place = letters.find(letter);
  return place == std::string::npos ? "UNK" : names[place];
}

/// A PDB file of a protein along a helix, with C-alpha and C-beta of each residue but for those
/// marked by a space.
inline void WritePdb(const std::filesystem::path& path, const std::string& letters)
{
  std::ofstream file(path);
  int serial = 0;
  for (std::size_t i = 0; i < letters.size(); ++i)
  {
    const double angle = 1.7453 * static_cast<double>(i);
    for (const bool isBeta : { false, true })
    {
      if (letters[i] == ' ' || (isBeta && letters[i] == 'G'))
      {
        continue;
      }
      const double radius = isBeta ? 3.3 : 2.3;
      std::array<char, 96> line;
      std::snprintf(line.data(), line.size(),
        "ATOM  %5d  %s  %s A%4d    %8.3f%8.3f%8.3f  1.00  0.00           C\n", ++serial,
        isBeta ? "CB" : "CA", ResidueNameOf(letters[i]).c_str(), static_cast<int>(i + 1),
        radius * std::cos(angle), radius * std::sin(angle), 1.5 * static_cast<double>(i));
      file << line.data();
    }
  }
}

}
