#include "MmcifFile.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"

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

TEST(MmcifFile, ReadsAtoms)
{
  const std::vector<CifAtom> atoms = ParseMmcif(Protein, "protein");
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
}

/// Files with one atom, or of few items.
TEST(MmcifFile, ReadsSingleItems)
{
  const std::vector<CifAtom> atoms = ParseMmcif("data_x\n_atom_site.Cartn_x 1\n"
                                                "_atom_site.Cartn_y 2 _atom_site.Cartn_z 3\n"
                                                "_atom_site.label_asym_id A\n"
                                                "_atom_site.label_seq_id 4\n",
    "one");
  ASSERT_THAT(atoms, SizeIs(1));
  EXPECT_THAT(atoms[0].position, ElementsAre(1, 2, 3));
  EXPECT_EQ(atoms[0].chain, "A");
  EXPECT_EQ(atoms[0].residue, 4);
}

TEST(MmcifFile, NamesWhatIsWrong)
{
  const auto message = [](const std::string& text)
  { return MessageOf<FormatError>([&] { ParseMmcif(text, "x.cif"); }); };
  EXPECT_EQ(message(""), "x.cif: expected an mmCIF file, which begins with data_, found another.");
  EXPECT_THAT(message("HEADER of a .pdb file"), HasSubstr("begins with data_"));
  EXPECT_EQ(
    message("data_x\n_entry.id x\n"), "x.cif: expected atoms as items _atom_site, found none.");
  const std::string loop = "data_x loop_ _atom_site.Cartn_x _atom_site.Cartn_y _atom_site.Cartn_z ";
  EXPECT_EQ(message(loop + "1 2 3 4"),
    "x.cif: item '_atom_site.Cartn_x': expected a multiple of 3 values, found 4.");
  EXPECT_THAT(message(loop), HasSubstr("found 0."));
  EXPECT_EQ(message(loop + "1 2 up"), "x.cif: atom 0: expected a number as Cartn_z, found 'up'.");
  EXPECT_THAT(message(loop + "1 2 ?"), HasSubstr("as Cartn_z, found none"));
  EXPECT_THAT(message(loop + "1 2 nan"), HasSubstr("found 'nan'"));
  EXPECT_THAT(message("data_x _atom_site.Cartn_x 'open"), HasSubstr("a text in quotes"));
  EXPECT_THAT(message("data_x _atom_site.Cartn_x\n;open"), HasSubstr("a text in semicolons"));
  EXPECT_THAT(message("data_x loop_ _atom_site.Cartn_x _atom_site.Cartn_y _atom_site.Cartn_z "
                      "_atom_site.auth_seq_id 1 2 3 4.5"),
    HasSubstr("expected an integer as auth_seq_id, found '4.5'"));
  EXPECT_THAT(MessageOf<FileError>([] { ReadMmcif("none.cif"); }), HasSubstr("none.cif"));
}

TEST(MmcifFile, ReadsAFile)
{
  const TemporaryDirectory folder;
  std::ofstream(folder / "protein.cif") << Protein;
  EXPECT_THAT(ReadMmcif(folder / "protein.cif"), SizeIs(3));
}

}
