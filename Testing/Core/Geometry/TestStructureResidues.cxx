#include "Geometry/StructureResidues.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/StructureFile.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

ResidueAtom Atom(char letter, std::int32_t place, bool isBeta, double x, char chain = 'A')
{
  ResidueAtom atom;
  atom.chain[0] = chain;
  atom.place = place;
  atom.letter = letter;
  atom.isBeta = isBeta;
  atom.position = { x, 0, 0 };
  return atom;
}

/// C-alpha and C-beta of each residue of a chain, at 10 times its place and one further; none for a
/// space.
std::vector<ResidueAtom> Chain(const std::string& letters, char chain = 'A')
{
  std::vector<ResidueAtom> atoms;
  for (std::size_t i = 0; i < letters.size(); ++i)
  {
    const auto place = static_cast<std::int32_t>(i + 1);
    if (letters[i] != ' ')
    {
      atoms.push_back(Atom(letters[i], place, false, 10 * place, chain));
      atoms.push_back(Atom(letters[i], place, true, 10 * place + 1, chain));
    }
  }
  return atoms;
}

/// x of each place; -1 where it is not resolved.
std::vector<double> XOf(const PlacedResidues& placed)
{
  std::vector<double> x;
  for (const std::array<double, 3>& place : placed.places)
  {
    x.push_back(std::isnan(place[0]) ? -1 : place[0]);
  }
  return x;
}

/// A tag that the file does not have, a residue that is not resolved, and a chain that is not asked
/// for: each residue of the sequence knows its place in the file.
TEST(StructureResidues, ResiduesKnowTheirPlaces)
{
  std::vector<ResidueAtom> atoms = Chain("WWW", 'A');
  const std::vector<ResidueAtom> own = Chain("ACD FGHI", 'B');
  atoms.insert(atoms.end(), own.begin(), own.end());
  const PlacedResidues placed = PlaceByAlignment(atoms, "B", "MMACDEFGHI", ContactAtom::CAlpha);
  EXPECT_THAT(placed.numbers, ElementsAre(0, 0, 1, 2, 3, 0, 5, 6, 7, 8));
  EXPECT_EQ(placed.chain, "B");
}

TEST(StructureResidues, GlycineHasItsCAlpha)
{
  const PlacedResidues beta = PlaceByAlignment(Chain("MGK"), "", "MGK", ContactAtom::CBeta);
  EXPECT_THAT(XOf(beta), ElementsAre(11, 20, 31));
  EXPECT_EQ(beta.Identity(), 1);
  EXPECT_EQ(beta.resolved, 3);
  EXPECT_THAT(
    XOf(PlaceByAlignment(Chain("MGK"), "", "MGK", ContactAtom::CAlpha)), ElementsAre(10, 20, 30));
}

TEST(StructureResidues, TheFirstModelAndLocationCount)
{
  std::vector<ResidueAtom> atoms = Chain("MK");
  atoms.push_back(Atom('M', 1, true, 99));
  ResidueAtom other = Atom('M', 1, true, 98);
  other.model = 2;
  atoms.insert(atoms.begin(), other);
  EXPECT_THAT(XOf(PlaceByAlignment(atoms, "A", "MK", ContactAtom::CBeta)), ElementsAre(11, 21));
}

TEST(StructureResidues, GapsAndTagsAreAligned)
{
  // A tag in the structure, and residues of the sequence that it does not have.
  const PlacedResidues tag =
    PlaceByAlignment(Chain("HHHMKVLA"), "", "MKVLAWW", ContactAtom::CAlpha);
  EXPECT_THAT(XOf(tag), ElementsAre(40, 50, 60, 70, 80, -1, -1));
  EXPECT_EQ(tag.identical, 5);
  EXPECT_EQ(tag.compared, 5);
  EXPECT_EQ(tag.known, 7);
  EXPECT_EQ(tag.Identity(), 1);
  EXPECT_NO_THROW(RequireSameProtein(tag, 1, ""));
  // A loop that was not resolved.
  const PlacedResidues loop = PlaceByAlignment(Chain("MK  AW"), "", "MKVLAW", ContactAtom::CAlpha);
  EXPECT_THAT(XOf(loop), ElementsAre(10, 20, -1, -1, 50, 60));
  EXPECT_EQ(loop.Identity(), 1);
  EXPECT_EQ(loop.resolved, 4);
}

TEST(StructureResidues, AnotherProteinIsTold)
{
  const PlacedResidues other =
    PlaceByAlignment(Chain("WWWWWWWWWW"), "", "MKVLAMKVLA", ContactAtom::CBeta);
  EXPECT_LT(other.Identity(), 0.2);
  const PlacedResidues mutant =
    PlaceByAlignment(Chain("MKVLAMKVLW"), "", "MKVLAMKVLA", ContactAtom::CBeta);
  EXPECT_EQ(mutant.Identity(), 0.9);
  const PlacedResidues piece = // a short piece that is the same
    PlaceByAlignment(Chain("WWWWWWWWMK"), "", "MKVLAVLAVLA", ContactAtom::CBeta);
  EXPECT_EQ(piece.compared, 2);
  EXPECT_EQ(piece.known, 10);
  EXPECT_EQ(MessageOf<OptionError>([&] { RequireSameProtein(piece, 0.9, "Choose another."); }),
    "Structure: expected the same protein, with which at least half of the residues "
    "align, found 2 of 10 (20 %). Choose another.");
  EXPECT_EQ(MessageOf<OptionError>([&] { RequireSameProtein(mutant, 0.95, "Choose another."); }),
    "Structure: expected the same protein, of which at least 95 % of the residues are "
    "the same, found 9 of 10 (90 %). Choose another.");
  EXPECT_NO_THROW(RequireSameProtein(mutant, 0.9, ""));
}

TEST(StructureResidues, UnknownResiduesAreNotAccepted)
{
  const PlacedResidues unknown = PlaceByAlignment(Chain("MKVLA"), "", "XXXXX", ContactAtom::CAlpha);
  EXPECT_TRUE(std::isnan(unknown.Identity()));
  EXPECT_THAT(MessageOf<OptionError>([&] { RequireSameProtein(unknown, 0, ""); }),
    HasSubstr("expected residues whose letters can be compared with those of the recording"));
}

/// Nothing is allocated for places that no protein has.
TEST(StructureResidues, PlacesAreBounded)
{
  std::vector<ResidueAtom> atoms = Chain("MK");
  atoms.push_back(Atom('V', 2000000000, false, 0));
  EXPECT_EQ(
    MessageOf<OptionError>([&] { PlaceByAlignment(atoms, "", "MKV", ContactAtom::CAlpha); }),
    "Structure: expected places in a sequence up to 1048576, found 2000000000 in chain 'A'.");
  atoms.back().place = 1 << 20;
  EXPECT_THAT(MessageOf<OptionError>(
                [&] { PlaceByAlignment(atoms, "", std::string(600, 'M'), ContactAtom::CAlpha); }),
    HasSubstr("a product of at most 536870912 for their alignment, found 600 and 1048576."));
}

TEST(StructureResidues, ChainsAreChosen)
{
  std::vector<ResidueAtom> atoms = Chain("AAAA", 'B');
  const std::vector<ResidueAtom> more = Chain("MKVL", 'A');
  atoms.insert(atoms.end(), more.begin(), more.end());
  EXPECT_THAT(ChainsOf(atoms), ElementsAre("B", "A"));
  EXPECT_EQ(PlaceByAlignment(atoms, "A", "MKVL", ContactAtom::CBeta).Identity(), 1);
  EXPECT_LT(PlaceByAlignment(atoms, "", "MKVL", ContactAtom::CBeta).Identity(), 1);
  EXPECT_EQ(
    MessageOf<OptionError>([&] { PlaceByAlignment(atoms, "C", "MKVL", ContactAtom::CBeta); }),
    "Chain: expected one of the structure's, 'B', 'A', found 'C'.");
  EXPECT_THAT(MessageOf<OptionError>([&] { PlaceByAlignment({}, "", "MKVL", ContactAtom::CBeta); }),
    HasSubstr("expected a protein"));
}

TEST(StructureResidues, BoundOnesHaveTheirTokens)
{
  std::vector<ResidueAtom> atoms = Chain("MK");
  const std::vector<ResidueAtom> more = Chain("V", 'B');
  atoms.insert(atoms.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < atoms.size(); ++i)
  {
    atoms[i].token = static_cast<std::int32_t>(1 + i / 2);
  }
  const PlacedResidues placed = PlaceByTokens(atoms, { 1, 2, 3, 4 }, "MKVX", ContactAtom::CBeta);
  EXPECT_THAT(XOf(placed), ElementsAre(11, 21, 11, -1));
  EXPECT_EQ(placed.compared, 3);
  EXPECT_EQ(placed.identical, 3);
  EXPECT_EQ(placed.resolved, 3);
}

/// Crambin has proline and serine at 22: of places with several residues the first counts.
TEST(StructureResidues, TheFirstResidueOfAPlaceCounts)
{
  std::vector<ResidueAtom> atoms = Chain("TP");
  for (const ResidueAtom& atom : { Atom('S', 2, false, 50), Atom('S', 2, true, 51),
         Atom('S', 3, false, 30), Atom('S', 3, true, 31) })
  {
    atoms.push_back(atom);
  }
  const PlacedResidues placed = PlaceByAlignment(atoms, "", "TPS", ContactAtom::CBeta);
  EXPECT_EQ(placed.Identity(), 1);
  EXPECT_THAT(XOf(placed), ElementsAre(11, 21, 31));
}

/// A residue is a site if any of its atoms says so, also one that does not stand for it.
TEST(StructureResidues, SitesAreThoseOfAnyAtom)
{
  std::vector<ResidueAtom> atoms = Chain("MKV");
  atoms[1].isSite = true; // C-beta of M
  ResidueAtom side = Atom('V', 3, false, 7);
  side.isOther = side.isSite = true;
  atoms.insert(atoms.begin(), side);
  for (const auto& placed : { PlaceByAlignment(atoms, "A", "GMKV", ContactAtom::CAlpha),
         PlaceByAlignment(atoms, "A", "GMKV", ContactAtom::CBeta) })
  {
    EXPECT_THAT(placed.sites, ElementsAre(false, true, false, true));
    EXPECT_EQ(placed.resolved, 3);
    EXPECT_NE(placed.places[3][0], 7) << "the place of an atom that does not stand for it";
  }
  for (std::size_t i = 0; i < atoms.size(); ++i)
  {
    atoms[i].token = atoms[i].place;
  }
  EXPECT_THAT(PlaceByTokens(atoms, { 1, 2, 3 }, "MKV", ContactAtom::CBeta).sites,
    ElementsAre(true, false, true));
  atoms[0].chain[0] = 'B'; // such as a ligand or DNA before the protein, of another model
  atoms[0].model = 0;
  EXPECT_THAT(ChainsOf(atoms), ElementsAre("A"));
  EXPECT_EQ(PlaceByAlignment(atoms, "", "MKV", ContactAtom::CBeta).Identity(), 1);
}

TEST(StructureResidues, AlignmentsAreGlobal)
{
  EXPECT_THAT(AlignSequences("ACD", "ACD"), ElementsAre(0, 1, 2));
  EXPECT_THAT(AlignSequences("ACD", ""), ElementsAre(-1, -1, -1));
  EXPECT_THAT(AlignSequences("", "ACD"), IsEmpty());
  EXPECT_THAT(AlignSequences("ACDEF", "ACEF"), ElementsAre(0, 1, -1, 2, 3));
  EXPECT_THAT(AlignSequences("CDE", "AACDEAA"), ElementsAre(2, 3, 4));
}

TEST(StructureResidues, ModifiedResiduesHaveTheirLetters)
{
  EXPECT_EQ(ResidueLetter("MET"), 'M');
  EXPECT_EQ(ResidueLetter("MSE"), 'M');
  EXPECT_EQ(ResidueLetter("SEP"), 'S');
  for (const char* name : { "HOH", "ATP", "DA", "U", "", "Q1X" })
  {
    EXPECT_EQ(ResidueLetter(name), 'X') << name;
  }
}

}
