#include "MmcifFile.h"

#include "Error.h"
#include "MappedFile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

namespace atlas
{
namespace
{

constexpr std::string_view Category = "_atom_site.";

/// A word of the format; a text in quotes is a value whatever it says.
struct Word
{
  std::string_view text;
  bool isQuoted = false;

  bool IsTag() const { return !this->isQuoted && this->text.substr(0, 1) == "_"; }

  /// Whether it begins something else than a value. Keywords are of any case.
  bool IsKeyword() const
  {
    return this->Is("loop_") || this->Is("stop_") || this->Is("global_") || this->Begins("data_") ||
           this->Begins("save_");
  }
  bool Is(std::string_view keyword) const
  {
    return this->text.size() == keyword.size() && this->Begins(keyword);
  }
  bool Begins(std::string_view keyword) const
  {
    return !this->isQuoted && this->text.size() >= keyword.size() &&
           std::equal(keyword.begin(), keyword.end(), this->text.begin(),
             [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  }
  bool IsValue() const { return !this->IsTag() && !this->IsKeyword(); }

  /// Whether the value is not known or does not apply.
  bool IsMissing() const { return !this->isQuoted && (this->text == "." || this->text == "?"); }
};

/// Reads words one after another.
class Words
{
public:
  Words(std::string_view text, const std::string& source)
    : Text(text)
    , Source(source)
  {
  }

  std::optional<Word> Next()
  {
    this->SkipSpace();
    if (this->At >= this->Text.size())
    {
      return std::nullopt;
    }
    const char first = this->Text[this->At];
    if (first == ';' && this->IsLineStart())
    {
      return this->Field();
    }
    if (first == '\'' || first == '"')
    {
      return this->Quoted(first);
    }
    const std::size_t begin = this->At;
    while (this->At < this->Text.size() && !IsSpace(this->Text[this->At]))
    {
      ++this->At;
    }
    return Word{ this->Text.substr(begin, this->At - begin) };
  }

private:
  std::string_view Text;
  const std::string& Source;
  std::size_t At = 0;

  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  bool IsLineStart() const { return this->At == 0 || this->Text[this->At - 1] == '\n'; }

  void SkipSpace()
  {
    while (this->At < this->Text.size())
    {
      if (this->Text[this->At] == '#')
      {
        this->At = std::min(this->Text.find('\n', this->At), this->Text.size());
      }
      else if (IsSpace(this->Text[this->At]))
      {
        ++this->At;
      }
      else
      {
        return;
      }
    }
  }

  /// A text of several lines, up to one that begins with a semicolon.
  Word Field()
  {
    const std::size_t begin = this->At + 1;
    const std::size_t end = this->Text.find("\n;", begin);
    if (end == std::string_view::npos)
    {
      throw FormatError(
        this->Source + ": expected the end of a text in semicolons, found the end.");
    }
    this->At = end + 2;
    return { this->Text.substr(begin, end - begin), true };
  }

  /// A text up to the same quote before a space.
  Word Quoted(char quote)
  {
    const std::size_t begin = this->At + 1;
    for (std::size_t end = begin; end < this->Text.size() && this->Text[end] != '\n'; ++end)
    {
      if (this->Text[end] == quote &&
          (end + 1 == this->Text.size() || IsSpace(this->Text[end + 1])))
      {
        this->At = end + 1;
        return { this->Text.substr(begin, end - begin), true };
      }
    }
    throw FormatError(
      this->Source + ": expected the end of a text in quotes, found the end of its line.");
  }
};

/// The columns of atoms, by the names of their items, and the values row by row.
struct Table
{
  std::vector<std::string_view> columns;
  std::vector<Word> values;

  std::size_t Rows() const
  {
    return this->columns.empty() ? 0 : this->values.size() / this->columns.size();
  }

  /// A value of the first of some items that has one; none without.
  std::optional<std::string> Find(
    std::size_t row, std::initializer_list<std::string_view> names) const
  {
    for (const std::string_view name : names)
    {
      const auto column = std::find(this->columns.begin(), this->columns.end(), name);
      if (column == this->columns.end())
      {
        continue;
      }
      const Word& word = this->values[row * this->columns.size() +
                                      static_cast<std::size_t>(column - this->columns.begin())];
      if (!word.IsMissing())
      {
        return std::string(word.text);
      }
    }
    return std::nullopt;
  }
};

/// Reads the loop or the single items of atoms; other items are passed over.
Table ReadAtomSites(std::string_view text, const std::string& source)
{
  Words words(text, source);
  Table table;
  std::optional<Word> word = words.Next();
  if (!word || !word->Begins("data_"))
  {
    throw FormatError(source + ": expected an mmCIF file, which begins with data_, found another.");
  }
  while (word)
  {
    if (word->Begins("data_") && table.Rows() > 0)
    {
      break; // the first block that has some
    }
    const bool isLoop = word->Is("loop_");
    if (isLoop)
    {
      word = words.Next();
    }
    std::vector<std::string_view> tags;
    while (word && word->IsTag() && (isLoop || tags.empty()))
    {
      tags.push_back(word->text);
      word = words.Next();
    }
    const bool isAtoms = !tags.empty() && tags[0].substr(0, Category.size()) == Category;
    std::size_t count = 0;
    while (word && word->IsValue() && (isLoop || count == 0))
    {
      if (isAtoms)
      {
        table.values.push_back(*word);
      }
      ++count;
      word = words.Next();
    }
    if (!tags.empty() && (count == 0 || count % tags.size() != 0))
    {
      throw FormatError(source + ": item '" + std::string(tags[0]) + "': expected a multiple of " +
                        std::to_string(tags.size()) + " values, found " + std::to_string(count) +
                        ".");
    }
    for (std::size_t i = 0; isAtoms && i < tags.size(); ++i)
    {
      table.columns.push_back(tags[i].substr(std::min(Category.size(), tags[i].size())));
    }
    if (tags.empty() && !isLoop)
    {
      word = words.Next(); // data_, or a value behind none
    }
  }
  return table;
}

double RequireNumber(const std::optional<std::string>& text, std::size_t row,
  const std::string& item, const std::string& source)
{
  char* end = nullptr;
  const double number = text ? std::strtod(text->c_str(), &end) : 0;
  if (!text || text->empty() || end == text->c_str() || !std::isfinite(number))
  {
    throw FormatError(source + ": atom " + std::to_string(row) + ": expected a number as " + item +
                      ", found " + (text ? "'" + *text + "'" : "none") + ".");
  }
  return number;
}

std::int32_t IntegerOf(const std::optional<std::string>& text, std::int32_t otherwise,
  std::size_t row, const std::string& item, const std::string& source)
{
  const double number = text ? RequireNumber(text, row, item, source) : otherwise;
  if (number != std::floor(number) || std::abs(number) > std::numeric_limits<std::int32_t>::max())
  {
    throw FormatError(source + ": atom " + std::to_string(row) + ": expected an integer as " +
                      item + ", found '" + text.value_or("") + "'.");
  }
  return static_cast<std::int32_t>(number);
}

}

std::vector<CifAtom> ParseMmcif(std::string_view text, const std::string& source)
{
  const Table table = ReadAtomSites(text, source);
  if (table.Rows() == 0)
  {
    throw FormatError(source + ": expected atoms as items _atom_site, found none.");
  }
  std::vector<CifAtom> atoms;
  atoms.reserve(table.Rows());
  for (std::size_t row = 0; row < table.Rows(); ++row)
  {
    CifAtom atom;
    const auto find = [&](std::initializer_list<std::string_view> names)
    { return table.Find(row, names); };
    const std::array<std::string_view, 3> axes = { "Cartn_x", "Cartn_y", "Cartn_z" };
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      atom.position[axis] =
        RequireNumber(find({ axes[axis] }), row, std::string(axes[axis]), source);
    }
    atom.name = find({ "auth_atom_id", "label_atom_id" }).value_or("");
    atom.element = find({ "type_symbol" }).value_or("");
    atom.residueName = find({ "auth_comp_id", "label_comp_id" }).value_or("");
    atom.chain = find({ "auth_asym_id", "label_asym_id" }).value_or("");
    atom.residue =
      IntegerOf(find({ "auth_seq_id", "label_seq_id" }), 0, row, "auth_seq_id", source);
    atom.sequence = IntegerOf(find({ "label_seq_id" }), 0, row, "label_seq_id", source);
    atom.model = IntegerOf(find({ "pdbx_PDB_model_num" }), 1, row, "pdbx_PDB_model_num", source);
    atom.isHetero = find({ "group_PDB" }).value_or("") == "HETATM";
    atoms.push_back(std::move(atom));
  }
  return atoms;
}

std::vector<CifAtom> ReadMmcif(const std::filesystem::path& path)
{
  return ParseMmcif(ReadFile(path), path.string());
}

}
