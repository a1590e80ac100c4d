#include "Text/ProteinText.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

std::vector<std::string> Parsed(
  const std::string& text, ProteinFormat format = ProteinFormat::Fasta)
{
  std::vector<std::string> found;
  for (const ProteinSequence& protein : ParseProteins(text, format, "Protein"))
  {
    found.push_back(protein.name + "=" + protein.letters);
  }
  return found;
}

std::string ErrorOf(const std::string& text, ProteinFormat format = ProteinFormat::Fasta)
{
  return MessageOf<FormatError>([&] { ParseProteins(text, format, "Protein"); });
}

TEST(ProteinText, LettersAreOneSequence)
{
  EXPECT_THAT(Parsed("MKV LA\n\tWX\r\n"), ElementsAre("=MKVLAWX"));
}

TEST(ProteinText, FastaHasNames)
{
  EXPECT_THAT(Parsed("\n>one of two\r\nMKV\r\nLA\r\n\r\n> two\nWW"),
    ElementsAre("one of two=MKVLA", "two=WW"));
  EXPECT_THAT(Parsed(">\nMK"), ElementsAre("=MK"));
}

TEST(ProteinText, RowsOfAlignmentsLoseInsertions)
{
  EXPECT_THAT(Parsed(">a\nMK-V\n>b\nM-aa.KV", ProteinFormat::A3m), ElementsAre("a=MK-V", "b=M-KV"));
}

/// As HH-suite and ColabFold write them.
TEST(ProteinText, AlignmentsHaveCommentsAndAnnotations)
{
  EXPECT_THAT(Parsed("#5\t1\n# name\n>ss_pred PSIPRED\nCCHH\n#\n>ss_conf\n9128\n>a\nMK-V\n"
                     ">ss_dssp\nC-HH\n>b\nM-KV",
                ProteinFormat::A3m),
    ElementsAre("a=MK-V", "b=M-KV"));
  EXPECT_THAT(ErrorOf(">a\nMK\n#", ProteinFormat::A3m), HasSubstr("found '#', after 2 residues."));
  EXPECT_THAT(ErrorOf("#5\n>a\nMK"), HasSubstr("found '#', after 0 residues."));
  EXPECT_EQ(
    ErrorOf(">ss_pred\nHH", ProteinFormat::A3m), "Protein: expected a protein, found none.");
}

TEST(ProteinText, NamesAreCutBetweenCharacters)
{
  std::string name;
  for (int i = 0; i < 61; ++i)
  {
    name += "\xC3\xA4";
  }
  EXPECT_THAT(ErrorOf(">a" + name + "\n*"), // 60 characters: a and 59 others
    StartsWith("Protein: sequence 'a" + name.substr(0, 2 * 59) + "': expected"));
}

TEST(ProteinText, NamesWhatIsWrong)
{
  EXPECT_EQ(ErrorOf(" \n"), "Protein: expected a protein, found none.");
  EXPECT_EQ(ErrorOf(">a\n>b\nMK"), "Protein: sequence 'a': expected residues, found none.");
  EXPECT_EQ(ErrorOf(">a\nMK\n>b"), "Protein: sequence 'b': expected residues, found none.");
  EXPECT_EQ(ErrorOf("MKV*"), "Protein: sequence 1: expected residues, letters from A to Z, found "
                             "'*', a stop, after 3 residues.");
  EXPECT_EQ(ErrorOf(">a\nMk"), "Protein: sequence 'a': expected residues, letters from A to Z, "
                               "found 'k', a lower-case letter; "
                               "in .a3m files it is an insertion, after 1 residue.");
  EXPECT_EQ(ErrorOf("MK\n>a\nMK"), "Protein: expected a line that begins with > before the first "
                                   "residues, found residues.");
  EXPECT_THAT(ErrorOf("M-K"), HasSubstr("'-', a gap; .a3m files may have gaps"));
  EXPECT_THAT(ErrorOf("M1"), HasSubstr("found '1'"));
  EXPECT_THAT(ErrorOf("M\xC3\xA4"), HasSubstr("found the byte 195"));
  EXPECT_THAT(ErrorOf("MK*", ProteinFormat::A3m), HasSubstr("a stop"));
}

}
