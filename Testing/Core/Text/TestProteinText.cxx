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

TEST(ProteinText, NamesWhatIsWrong)
{
  EXPECT_EQ(ErrorOf(" \n"), "Protein: expected a protein, found none.");
  EXPECT_EQ(ErrorOf(">a\n>b\nMK"), "Protein: sequence 'a': expected residues, found none.");
  EXPECT_EQ(ErrorOf(">a\nMK\n>b"), "Protein: sequence 'b': expected residues, found none.");
  EXPECT_EQ(ErrorOf("MKV*"), "Protein: sequence 1: expected residues, letters from A to Z, found "
                             "'*', a stop, behind 3 residues.");
  EXPECT_EQ(ErrorOf(">a\nMk"), "Protein: sequence 'a': expected residues, letters from A to Z, "
                               "found 'k', a lower-case letter; "
                               "in a file .a3m it is an insertion, behind 1 residues.");
  EXPECT_THAT(ErrorOf("M-K"), HasSubstr("'-', a gap; files .a3m may have gaps"));
  EXPECT_THAT(ErrorOf("M1"), HasSubstr("found '1'"));
  EXPECT_THAT(ErrorOf("M\xC3\xA4"), HasSubstr("found the byte 195"));
  EXPECT_THAT(ErrorOf("MK*", ProteinFormat::A3m), HasSubstr("a stop"));
}

}
