#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// An atom of a molecule.
struct StructureAtom
{
  std::array<double, 3> position = { 0, 0, 0 };
  std::string name;
  std::string element;
  std::string residueName;
  std::string chain;         ///< of the authors, as in PDB files
  std::int32_t residue = 0;  ///< its number by the authors, likewise
  std::string insertion;     ///< the insertion code behind this number, or empty
  std::int32_t sequence = 0; ///< its place in the sequence of its chain, from 1; 0 for ligands and
                             ///< water
  std::int32_t model = 1;    ///< of several, from 1
  bool isHetero = false;     ///< whether it is a HETATM: of a ligand, water or modified residue
};

/// A chain with a polymer: a protein or a nucleic acid.
struct StructureChain
{
  std::string name;        ///< of the authors
  std::int32_t length = 0; ///< residues of its sequence, with those that have no atoms
};

struct Structure
{
  std::vector<StructureAtom> atoms;   ///< in the order of the file
  std::vector<StructureChain> chains; ///< in the order of their first atoms
};

/// The atoms of a text in one of the formats of the Protein Data Bank: mmCIF, which begins with
/// data_, or else PDB. Alternate locations and all models are among them.
///
/// Of mmCIF these are the items _atom_site of the first data block that has some. The place of a
/// residue is label_seq_id, and the length of its chain follows from _entity_poly_seq; without
/// these items residues count in the order of their atoms. Authors' names are those of the data
/// bank where a file has no others. Two polymers of one chain follow one another.
///
/// Of PDB the places are those in SEQRES, by gemmi's alignment. A chain without SEQRES has the
/// residues up to TER but for water or, without TER, the amino acids and nucleotides, in the order
/// of their atoms.
///
/// Throws FormatError, beginning with `source`, for a text that is neither or has no atoms, in
/// which an atom has no position or a number is none, and for residues that are not in their
/// sequence.
Structure ParseStructure(std::string_view text, const std::string& source);

/// Same, of a file. Throws FileError, too.
Structure ReadStructure(const std::filesystem::path& path);

/// The letter of an amino acid by the name of its residue (MET: M), of a modified one that of what
/// it was made from (MSE: M), by gemmi's table; X for any other residue.
char ResidueLetter(const std::string& name);

}
