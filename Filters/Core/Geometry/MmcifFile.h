#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// An atom of a .cif file (mmCIF, the format of the Protein Data Bank).
struct CifAtom
{
  std::array<double, 3> position = { 0, 0, 0 };
  std::string name;
  std::string element;
  std::string residueName;
  std::string chain;         ///< of the authors, as in .pdb files
  std::int32_t residue = 0;  ///< its number by the authors, likewise
  std::int32_t sequence = 0; ///< its number in the sequence, from 1; 0 for ligands and water
  std::int32_t model = 1;    ///< of several, from 1
  bool isHetero = false;     ///< of a ligand or water
};

/// The atoms of a text in the format mmCIF: the items _atom_site of its first data block that has
/// some. Authors' names are those of the data bank where a file has no others. Throws FormatError,
/// beginning with `source`, for a text that is no mmCIF, has no atoms, or in which an atom has no
/// position or number.
std::vector<CifAtom> ParseMmcif(std::string_view text, const std::string& source);

/// Same, of a file. Throws FileError, too.
std::vector<CifAtom> ReadMmcif(const std::filesystem::path& path);

}
