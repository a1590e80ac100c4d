#include "Files/StructureFile.h"

#include "Base/Error.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

namespace
{

/// With all that the format has: comments, quotes, a text of several lines, other items and loops.
constexpr const char* Protein = R"(data_1ABC
# a comment with data_ and loop_
_entry.id   1ABC
_struct.title 'It''s a "title"'
_struct.text
;several lines
loop_ of text
;
loop_
_entity.id
_entity.type
1 polymer
2 water
#
LOOP_
_atom_site.group_PDB
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.auth_seq_id
_atom_site.auth_asym_id
_atom_site.pdbx_PDB_model_num
ATOM   N N     GLY A 1 1.5   -2 3e1 27 H 1
ATOM   C "C1'" GLY A 2 2.25(3) 0 0  27 H 1
HETATM O O     HOH B . 9 8 7        101 H 2
loop_
_other.id
1
data_second
_atom_site.Cartn_x 5
)";

TEST(StructureFile, ReadsAtoms)
{
  const Structure structure = ParseStructure(Protein, "protein");
  const std::vector<StructureAtom>& atoms = structure.atoms;
  ASSERT_THAT(atoms, SizeIs(3));
  EXPECT_THAT(atoms[0].position, ElementsAre(1.5, -2, 30));
  EXPECT_EQ(atoms[0].name, "N");
  EXPECT_EQ(atoms[0].element, "N");
  EXPECT_EQ(atoms[0].residueName, "GLY");
  EXPECT_EQ(atoms[0].chain, "H");
  EXPECT_EQ(atoms[0].residue, 27);
  EXPECT_EQ(atoms[0].sequence, 1);
  EXPECT_EQ(atoms[0].model, 1);
  EXPECT_FALSE(atoms[0].isHetero);
  EXPECT_EQ(atoms[1].name, "C1'");
  EXPECT_EQ(atoms[1].position[0], 2.25); // without its uncertainty
  EXPECT_EQ(atoms[1].sequence, 2);       // another residue, as by an insertion
  EXPECT_TRUE(atoms[2].isHetero);
  EXPECT_EQ(atoms[2].sequence, 0);
  EXPECT_EQ(atoms[2].model, 2);
  ASSERT_THAT(structure.chains, SizeIs(1));
  EXPECT_EQ(structure.chains[0].name, "H");
  EXPECT_EQ(structure.chains[0].length, 2);
}

/// Files with one atom, or of few items.
TEST(StructureFile, ReadsSingleItems)
{
  const std::vector<StructureAtom> atoms =
    ParseStructure("data_x\n_atom_site.Cartn_x 1\n"
                   "_atom_site.Cartn_y 2 _atom_site.Cartn_z 3\n"
                   "_atom_site.label_asym_id A\n"
                   "_atom_site.label_seq_id 4\n",
      "one")
      .atoms;
  ASSERT_THAT(atoms, SizeIs(1));
  EXPECT_THAT(atoms[0].position, ElementsAre(1, 2, 3));
  EXPECT_EQ(atoms[0].chain, "A");
  EXPECT_EQ(atoms[0].residue, 4);
}

/// A residue of an atom: chain, number of the authors with insertion code, place in the sequence.
std::vector<std::string> ResiduesOf(const Structure& structure)
{
  std::vector<std::string> residues;
  for (const StructureAtom& atom : structure.atoms)
  {
    residues.push_back(atom.chain + std::to_string(atom.residue) + atom.insertion + ":" +
                       std::to_string(atom.sequence));
  }
  return residues;
}

std::vector<std::string> ChainsOf(const Structure& structure)
{
  std::vector<std::string> chains;
  for (const StructureChain& chain : structure.chains)
  {
    chains.push_back(chain.name + std::to_string(chain.length));
  }
  return chains;
}

/// Residues of an mmCIF file: rows of group, atom, alternate location, residue, chain, number,
/// number of the authors, insertion code and model. Entities are 1 of chain A with `length`
/// residues, 2 of chain B with two, and 3 of water in chain W.
Structure Mmcif(const std::string& rows, int length)
{
  std::string text = "data_x\nloop_\n_struct_asym.id\n_struct_asym.entity_id\nA 1\nB 2\nW 3\n"
                     "loop_\n_entity_poly_seq.entity_id\n_entity_poly_seq.num\n2 1\n2 2\n";
  for (int i = length; i > 0; --i) // the order does not count
  {
    text += "1 " + std::to_string(i) + "\n";
  }
  text += "loop_\n";
  for (const char* item : { "group_PDB", "label_atom_id", "label_alt_id", "label_comp_id",
         "label_asym_id", "label_seq_id", "auth_seq_id", "pdbx_PDB_ins_code", "pdbx_PDB_model_num",
         "Cartn_x", "Cartn_y", "Cartn_z" })
  {
    text += "_atom_site." + std::string(item) + "\n";
  }
  for (std::size_t begin = 0; begin < rows.size();)
  {
    const std::size_t end = rows.find('\n', begin);
    text += rows.substr(begin, end - begin) + " 1 2 3\n";
    begin = end + 1;
  }
  return ParseStructure(text, "x.cif");
}

/// Water first, a modified residue as HETATM, an unresolved loop of two residues (4 and 5),
/// negative numbers, alternate locations, two chains.
TEST(StructureFile, NumbersResiduesByTheSequenceOfMmcif)
{
  const Structure found = Mmcif("HETATM O . HOH W . 301 ? 1\n"
                                "ATOM CA . GLY A 1 -1 ? 1\n"
                                "HETATM SE A MSE A 2 0 ? 1\n"
                                "HETATM SE B MSE A 2 0 ? 1\n"
                                "ATOM CA . ALA A 3 1 ? 1\n"
                                "ATOM CA . SER A 6 4 ? 1\n"
                                "ATOM CA . GLY B 2 7 ? 1\n",
    7);
  EXPECT_THAT(
    ResiduesOf(found), ElementsAre("W301:0", "A-1:1", "A0:2", "A0:2", "A1:3", "A4:6", "B7:2"));
  EXPECT_THAT(ChainsOf(found), ElementsAre("A7", "B2"));
}

TEST(StructureFile, KeepsInsertionsApart)
{
  const Structure found = Mmcif("ATOM CA . GLY A 1 52 ? 1\n"
                                "ATOM CA . ALA A 2 52 A 1\n"
                                "ATOM CA . SER A 3 52B ? 1\n" // both in one, as some write it
                                "ATOM CA . GLY A 4 53 ? 1\n",
    4);
  EXPECT_THAT(ResiduesOf(found), ElementsAre("A52:1", "A52A:2", "A52B:3", "A53:4"));
}

TEST(StructureFile, HasNoChainsOfLigandsAlone)
{
  const Structure found = Mmcif("HETATM C1 . LIG A . 1 ? 1\nHETATM O . HOH W . 2 ? 1\n", 0);
  EXPECT_THAT(ResiduesOf(found), ElementsAre("A1:0", "W2:0"));
  EXPECT_TRUE(found.chains.empty());
}

/// The authors' chain H has the polymers A and B of the data bank.
TEST(StructureFile, TwoPolymersOfAChainFollowOneAnother)
{
  const Structure found =
    ParseStructure("data_x\nloop_\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
                   "_atom_site.label_asym_id\n_atom_site.auth_asym_id\n_atom_site.label_seq_id\n"
                   "1 2 3 A H 1\n1 2 3 A H 2\n1 2 3 B H 1\n",
      "x.cif");
  EXPECT_THAT(ResiduesOf(found), ElementsAre("H1:1", "H2:2", "H1:3"));
  EXPECT_THAT(ChainsOf(found), ElementsAre("H3"));
}

TEST(StructureFile, CountsResiduesWithoutASequence)
{
  const Structure found =
    ParseStructure("data_x\nloop_\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
                   "_atom_site.group_PDB\n_atom_site.auth_asym_id\n_atom_site.auth_seq_id\n"
                   "_atom_site.pdbx_PDB_ins_code\n"
                   "1 2 3 ATOM A 52 A\n1 2 3 ATOM A 52 ?\n1 2 3 ATOM A 52 A\n1 2 3 ATOM B 9 ?\n"
                   "1 2 3 HETATM A 90 ?\n",
      "x.cif");
  EXPECT_THAT(ResiduesOf(found), ElementsAre("A52A:1", "A52:2", "A52A:1", "B9:1", "A90:0"));
  EXPECT_THAT(ChainsOf(found), ElementsAre("A2", "B1"));
}

/// A record of an atom in a PDB file. `number`: five columns with the insertion code. Positions
/// are 3.8 along a line, as the alpha carbons of neighbors are.
std::string PdbAtom(
  const char* record, const char* residue, char chain, const char* number, double x = 0)
{
  std::array<char, 128> line;
  std::snprintf(line.data(), line.size(),
    "%-6s%5d  CA  %3s %c%5s   %8.3f%8.3f%8.3f  1.00  0.00           C\n", record, 1, residue, chain,
    number, 3.8 * x, 0.0, 0.0);
  return line.data();
}

std::string SeqRes(char chain, int count, const std::string& names)
{
  std::array<char, 128> line;
  std::snprintf(line.data(), line.size(), "SEQRES   1 %c %4d  %s\n", chain, count, names.c_str());
  return line.data();
}

/// Water first, a modified residue as HETATM, an unresolved loop of two residues, another chain,
/// and a ligand behind TER.
TEST(StructureFile, NumbersResiduesOfPdbBySeqRes)
{
  const Structure found = ParseStructure(
    SeqRes('A', 7, "GLY MSE ALA TRP TRP SER VAL") + SeqRes('B', 2, "GLY LEU") +
      PdbAtom("HETATM", "HOH", 'A', " 301 ") + PdbAtom("ATOM", "GLY", 'A', "  -1 ", 0) +
      PdbAtom("HETATM", "MSE", 'A', "   0 ", 1) + PdbAtom("ATOM", "ALA", 'A', "   1 ", 2) +
      PdbAtom("ATOM", "SER", 'A', "   4 ", 5) + "TER\n" + PdbAtom("ATOM", "LEU", 'B', "   7 ", 9) +
      "TER\n" + PdbAtom("HETATM", "HEM", 'A', " 200 ") + "END\n",
    "x.pdb");
  EXPECT_THAT(
    ResiduesOf(found), ElementsAre("A301:0", "A-1:1", "A0:2", "A1:3", "A4:6", "B7:2", "A200:0"));
  EXPECT_THAT(ChainsOf(found), ElementsAre("A7", "B2"));
  EXPECT_TRUE(found.atoms[2].isHetero);
  EXPECT_EQ(found.atoms[2].residueName, "MSE");
  EXPECT_EQ(found.atoms[2].name, "CA");
  EXPECT_EQ(found.atoms[2].element, "C");
  EXPECT_THAT(found.atoms[2].position, ElementsAre(3.8, 0, 0));
}

/// The chain continues behind another one and water, and there is no TER.
TEST(StructureFile, CountsResiduesOfPdbWithoutSeqRes)
{
  const Structure found =
    ParseStructure(PdbAtom("HETATM", "HOH", 'A', "   1 ") + PdbAtom("HETATM", "MSE", 'A', "   2 ") +
                     PdbAtom("ATOM", "GLY", 'A', "  52 ") + PdbAtom("ATOM", "ALA", 'A', "  52A") +
                     PdbAtom("ATOM", "ALA", 'B', "   3 ") + PdbAtom("HETATM", " CA", 'A', "  60 ") +
                     PdbAtom("ATOM", "SER", 'A', "  54 ") + PdbAtom("HETATM", "GLY", 'A', "  70 "),
      "x.pdb");
  EXPECT_THAT(ResiduesOf(found),
    ElementsAre("A1:0", "A2:1", "A52:2", "A52A:3", "B3:1", "A60:0", "A54:4", "A70:0"));
  EXPECT_THAT(ChainsOf(found), ElementsAre("A4", "B1"));
}

/// The chain as in entry 1GDR: no name, and columns 73 to 80 are the entry and the number of the
/// line, which looks like a charge.
TEST(StructureFile, ReadsPdbFilesFromBefore1996)
{
  std::string text;
  for (const char* const end : { "1GDR 109", "1GDR 110", "1GDR2+11" })
  {
    std::string line = PdbAtom("ATOM", "MET", ' ', text.empty() ? "   1 " : "   2 ");
    text += line.replace(72, std::string::npos, end) + "\n";
  }
  EXPECT_THAT(ResiduesOf(ParseStructure(text, "x.pdb")), ElementsAre("1:1", "2:2", "2:2"));
}

/// As in entries 4ZHL (37A to 37D, numbers left out) and 1IGY: numbers with several insertions, and
/// insertions that come before their number, in the reverse order of letters.
TEST(StructureFile, InsertionsFollowTheOrderOfTheFile)
{
  const std::string atoms =
    PdbAtom("ATOM", "THR", 'L', "   1B", 0) + PdbAtom("ATOM", "PHE", 'L', "   1A", 1) +
    PdbAtom("ATOM", "GLY", 'L', "   1 ", 2) + PdbAtom("ATOM", "SER", 'L', "  37 ", 3) +
    PdbAtom("ATOM", "SER", 'L', "  37A", 4) + PdbAtom("ATOM", "SER", 'L', "  37B", 5) +
    PdbAtom("ATOM", "TYR", 'L', "  40 ", 6);
  const auto places = ElementsAre("L1B:1", "L1A:2", "L1:3", "L37:4", "L37A:5", "L37B:6", "L40:7");
  EXPECT_THAT(ResiduesOf(ParseStructure(atoms, "x.pdb")), places);
  const Structure known =
    ParseStructure(SeqRes('L', 8, "THR PHE GLY SER SER SER TYR TRP") + atoms, "x.pdb");
  EXPECT_THAT(ResiduesOf(known), places);
  EXPECT_THAT(ChainsOf(known), ElementsAre("L8"));
}

/// Two residues in one place, each in a part of the molecules, as in entry 1EJG.
TEST(StructureFile, ResiduesMayShareAPlace)
{
  std::string proline = PdbAtom("ATOM", "PRO", 'A', "   2 ", 1);
  std::string serine = PdbAtom("ATOM", "SER", 'A', "   2 ", 1);
  proline[16] = 'A';
  serine[16] = 'B';
  const std::string atoms = PdbAtom("ATOM", "GLY", 'A', "   1 ", 0) + proline + serine +
                            PdbAtom("ATOM", "ALA", 'A', "   3 ", 2);
  const auto places = ElementsAre("A1:1", "A2:2", "A2:2", "A3:3");
  EXPECT_THAT(ResiduesOf(ParseStructure(atoms, "x.pdb")), places);
  EXPECT_THAT(ResiduesOf(ParseStructure(SeqRes('A', 3, "GLY PRO ALA") + atoms, "x.pdb")), places);
  EXPECT_THAT(ResiduesOf(Mmcif("ATOM CA . GLY A 1 1 ? 1\nATOM CA A PRO A 2 2 ? 1\n"
                               "ATOM CA B SER A 2 2 ? 1\nATOM CA . ALA A 3 3 ? 1\n",
                3)),
    places);
}

/// Biological assemblies have copies of chains: with names of their own, as in the assembly of
/// 1F2N, or as further models, as PDB files have them.
TEST(StructureFile, CopiesOfAnAssemblyCountAlike)
{
  std::string text = "data_x\nloop_\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n"
                     "_atom_site.label_asym_id\n_atom_site.auth_asym_id\n_atom_site.label_seq_id\n"
                     "_atom_site.auth_seq_id\n";
  for (const char* const copy : { "A", "A-2", "A-60" })
  {
    text +=
      std::string("1 2 3 ") + copy + " " + copy + " 4 67\n1 2 3 " + copy + " " + copy + " 5 68\n";
  }
  const Structure named = ParseStructure(text, "x.cif");
  EXPECT_THAT(
    ResiduesOf(named), ElementsAre("A67:4", "A68:5", "A-267:4", "A-268:5", "A-6067:4", "A-6068:5"));
  EXPECT_THAT(ChainsOf(named), ElementsAre("A5", "A-25", "A-605"));
  const std::string chain =
    PdbAtom("ATOM", "GLY", 'A', "  67 ", 0) + PdbAtom("ATOM", "ALA", 'A', "  68 ", 1) + "ENDMDL\n";
  const Structure models =
    ParseStructure("MODEL        1\n" + chain + "MODEL        2\n" + chain, "x.pdb");
  EXPECT_THAT(ResiduesOf(models), ElementsAre("A67:1", "A68:2", "A67:1", "A68:2"));
  EXPECT_THAT(ChainsOf(models), ElementsAre("A2"));
}

TEST(StructureFile, ReadsAllModels)
{
  const std::string model =
    PdbAtom("ATOM", "GLY", 'A', "   1 ", 0) + PdbAtom("ATOM", "ALA", 'A', "   2 ", 1) + "TER\n";
  const Structure mmcif = Mmcif("ATOM CA . GLY A 1 1 ? 1\nATOM CA . ALA A 2 2 ? 1\n"
                                "ATOM CA . GLY A 1 1 ? 2\nATOM CA . ALA A 2 2 ? 2\n",
    2);
  const Structure pdb = ParseStructure(
    "MODEL        1\n" + model + "ENDMDL\nMODEL        2\n" + model + "ENDMDL\nEND\n", "x.pdb");
  for (const Structure& found : { mmcif, pdb })
  {
    EXPECT_THAT(ResiduesOf(found), ElementsAre("A1:1", "A2:2", "A1:1", "A2:2"));
    EXPECT_EQ(found.atoms[2].model, 2);
    EXPECT_EQ(found.atoms[3].model, 2);
    EXPECT_THAT(ChainsOf(found), ElementsAre("A2"));
  }
}

TEST(StructureFile, NamesWhatIsWrong)
{
  const std::string items = "_atom_site.Cartn_x _atom_site.Cartn_y _atom_site.Cartn_z ";
  const std::string loop = "data_x loop_ " + items;
  std::vector<Refused> texts = {
    { "", "mmCIF file, which begins with data_, or a PDB file" },
    { "HEADER of a .pdb file", "found neither" },
    { "data_x\n_entry.id x\n", "atoms as items _atom_site, found none" },
    { loop + "1 2 3 4", "mmCIF file, found an error: " },
    { "data_x _a.b 'open", "mmCIF file, found an error: " },
    { "data_x _a.b\n;open", "mmCIF file, found an error: " },
    { loop + "1 2 up", "atom 0: expected a number as Cartn_z, found 'up'" },
    { loop + "1 2 ?", "as Cartn_z, found none" },
    { loop + "1 2 nan", "found 'nan'" },
    { loop + "1 2 12,5", "found '12,5'" },
    { "data_x loop_ _entity_poly_seq.entity_id _entity_poly_seq.num 1 1 1 2 loop_ " + items +
        "_atom_site.label_entity_id _atom_site.label_seq_id 1 2 3 1 3",
      "atom 0: expected a label_seq_id from 1 to 2" },
  };
  for (const std::string number : { "4.5", "12,5", "five", "99999999999" })
  {
    texts.push_back({ loop + "_atom_site.auth_seq_id 1 2 3 " + number,
      "integer as auth_seq_id, found '" + number + "'" });
    texts.push_back({ loop + "_atom_site.label_seq_id 1 2 3 " + number, "expected an integer as" });
  }
  ExpectRefusals<FormatError>(
    texts, [](const std::string& text) { ParseStructure(text, "x.cif"); }, "x.cif: ");
  EXPECT_THAT(MessageOf<FileError>([] { ReadStructure("none.cif"); }), HasSubstr("none.cif"));
}

/// Gemmi alone reads such numbers as 0.
TEST(StructureFile, NamesWhatIsWrongInPdb)
{
  const std::string line = PdbAtom("ATOM", "GLY", 'A', "   5 ");
  const auto with = [&](std::size_t begin, const std::string& found)
  { return std::string(line).replace(begin, found.size(), found); };
  const std::vector<Refused> texts = {
    { "TITLE\n" + with(38, "********"), "line 2: expected a number in columns 39 to 46" },
    { with(46, "    1,50"), "columns 47 to 54, found '    1,50'" },
    { line.substr(0, 50) + "\n", "columns 47 to 54, found '   0'" },
    { with(22, "12,5"), "line 1: expected a residue number in columns 23 to 26, found '12,5'" },
    { SeqRes('A', 2, "ALA ALA") + line + PdbAtom("ATOM", "ALA", 'A', "   6 ", 1) +
        PdbAtom("ATOM", "ALA", 'A', "   7 ", 2),
      "chain A: expected residues of its SEQRES, found 5(GLY)" },
  };
  ExpectRefusals<FormatError>(
    texts, [](const std::string& text) { ParseStructure(text, "x.pdb"); }, "x.pdb: ");
}

TEST(StructureFile, ReadsAFile)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / "protein.cif") << Protein;
  EXPECT_THAT(ReadStructure(folder / "protein.cif").atoms, SizeIs(3));
}

}
