#include "ProteinText.h"

#include "Base/Error.h"
#include "UnicodeText.h"

#include <cstddef>

namespace atlas
{
namespace
{

constexpr std::string_view Blanks = " \t\r\n";

bool IsUpper(char c)
{
  return c >= 'A' && c <= 'Z';
}

bool IsLower(char c)
{
  return c >= 'a' && c <= 'z';
}

/// What is said of a character that is no residue.
std::string Described(char c)
{
  const bool isPrintable = c > ' ' && c <= '~';
  const std::string found = isPrintable
                              ? "'" + std::string(1, c) + "'"
                              : "the byte " + std::to_string(static_cast<unsigned char>(c));
  return c == '*'     ? found + ", a stop"
         : IsLower(c) ? found + ", a lower-case letter; in .a3m files it is an insertion"
         : c == '-'   ? found + ", a gap; .a3m files may have gaps"
                      : found;
}

/// The first characters of a name.
std::string Shortened(const std::string& name)
{
  const std::string text = ReplaceInvalidUtf8(name);
  std::size_t end = 0;
  for (int characters = 0; characters < 60 && end < text.size(); ++characters)
  {
    NextCharacter(text, end);
  }
  return text.substr(0, end);
}

std::string PlaceOf(const ProteinSequence& sequence, std::size_t number)
{
  return ": sequence " +
         (sequence.name.empty() ? std::to_string(number) : "'" + Shortened(sequence.name) + "'");
}

/// Whether a row of an alignment annotates it and is no sequence (HH-suite).
bool IsAnnotation(std::string_view name)
{
  const std::string_view word = name.substr(0, name.find_first_of(Blanks));
  return word == "ss_pred" || word == "ss_conf" || word == "ss_dssp";
}

/// A line without blanks at its ends.
std::string_view Trimmed(std::string_view line)
{
  const std::size_t first = line.find_first_not_of(Blanks);
  return first == std::string_view::npos
           ? std::string_view()
           : line.substr(first, line.find_last_not_of(Blanks) + 1 - first);
}

}

std::vector<ProteinSequence> ParseProteins(
  std::string_view text, ProteinFormat format, const std::string& source)
{
  const bool isAlignment = format == ProteinFormat::A3m;
  std::vector<ProteinSequence> proteins;
  bool isNamed = false;   // the last one has a line >
  bool isSkipped = false; // an annotation
  const auto finish = [&]
  {
    ThrowIf<FormatError>(!proteins.empty() && proteins.back().letters.empty(), source,
      proteins.empty() ? std::string() : PlaceOf(proteins.back(), proteins.size()),
      ": expected residues, found none.");
  };
  while (!text.empty())
  {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(whole.size() + (whole.size() < text.size() ? 1 : 0));
    const std::string_view line = Trimmed(whole);
    const bool isComment =
      isAlignment && !isSkipped && proteins.empty() && line.substr(0, 1) == "#";
    if (line.empty() || isComment)
    {
      continue;
    }
    if (line[0] == '>')
    {
      finish();
      ThrowIf<FormatError>(!proteins.empty() && !isNamed, source,
        ": expected a line that begins with > before the first residues, found residues.");
      const std::string_view name = Trimmed(line.substr(1));
      isSkipped = isAlignment && IsAnnotation(name);
      if (!isSkipped)
      {
        proteins.push_back({ std::string(name), {} });
        isNamed = true;
      }
      continue;
    }
    if (isSkipped)
    {
      continue;
    }
    if (proteins.empty())
    {
      proteins.emplace_back();
    }
    ProteinSequence& protein = proteins.back();
    for (const char c : line)
    {
      const bool isInsertion = isAlignment && (IsLower(c) || c == '.');
      if (isInsertion || Blanks.find(c) != std::string_view::npos)
      {
        continue;
      }
      if (!IsUpper(c) && !(isAlignment && c == '-'))
      {
        const std::size_t before = protein.letters.size();
        throw FormatError(source, PlaceOf(protein, proteins.size()),
          ": expected residues, letters from A to Z, found ", Described(c), ", after ", before,
          before == 1 ? " residue." : " residues.");
      }
      protein.letters += c;
    }
  }
  finish();
  ThrowIf<FormatError>(proteins.empty(), source, ": expected a protein, found none.");
  return proteins;
}

}
