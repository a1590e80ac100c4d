#include "ProteinText.h"

#include "Base/Error.h"

#include <cstddef>

namespace atlas
{
namespace
{

constexpr std::string_view Spaces = " \t\r\n";

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
         : IsLower(c) ? found + ", a lower-case letter; in a file .a3m it is an insertion"
         : c == '-'   ? found + ", a gap; files .a3m may have gaps"
                      : found;
}

std::string PlaceOf(const ProteinSequence& sequence, std::size_t number)
{
  return ": sequence " +
         (sequence.name.empty() ? std::to_string(number) : "'" + sequence.name.substr(0, 60) + "'");
}

}

std::vector<ProteinSequence> ParseProteins(
  std::string_view text, ProteinFormat format, const std::string& source)
{
  std::vector<ProteinSequence> proteins;
  const auto finish = [&]
  {
    ThrowIf<FormatError>(!proteins.empty() && proteins.back().letters.empty(), source,
      proteins.empty() ? std::string() : PlaceOf(proteins.back(), proteins.size()),
      ": expected residues, found none.");
  };
  while (!text.empty())
  {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + (line.size() < text.size() ? 1 : 0));
    const std::size_t first = line.find_first_not_of(Spaces);
    if (first == std::string_view::npos)
    {
      continue;
    }
    if (line[first] == '>')
    {
      finish();
      const std::size_t begin = line.find_first_not_of(Spaces, first + 1);
      const std::size_t last = line.find_last_not_of(Spaces);
      proteins.push_back(
        { begin == std::string_view::npos ? std::string()
                                          : std::string(line.substr(begin, last + 1 - begin)),
          {} });
      continue;
    }
    if (proteins.empty())
    {
      proteins.emplace_back();
    }
    ProteinSequence& protein = proteins.back();
    for (const char c : line)
    {
      const bool isInsertion = format == ProteinFormat::A3m && (IsLower(c) || c == '.');
      if (isInsertion || Spaces.find(c) != std::string_view::npos)
      {
        continue;
      }
      if (!IsUpper(c) && !(format == ProteinFormat::A3m && c == '-'))
      {
        throw FormatError(source, PlaceOf(protein, proteins.size()),
          ": expected residues, letters from A to Z, found ", Described(c), ", behind ",
          protein.letters.size(), " residues.");
      }
      protein.letters += c;
    }
  }
  finish();
  ThrowIf<FormatError>(proteins.empty(), source, ": expected a protein, found none.");
  return proteins;
}

}
