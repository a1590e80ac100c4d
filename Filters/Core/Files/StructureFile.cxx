#include "StructureFile.h"

#include "Base/Error.h"
#include "Base/NumberText.h"
#include "MappedFile.h"

#include <gemmi/align.hpp>
#include <gemmi/cif.hpp>
#include <gemmi/numb.hpp>
#include <gemmi/pdb.hpp>
#include <gemmi/resinfo.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <tuple>

namespace atlas
{
namespace
{

/// What gemmi reads, with one of our errors for one of its own.
template<class Function>
auto ReadByGemmi(const std::string& source, const char* format, const Function& read)
{
  try
  {
    return read();
  }
  catch (const std::bad_alloc&)
  {
    throw;
  }
  catch (const std::exception& error)
  {
    std::string reason = error.what();
    reason.erase(
      0, reason.compare(0, source.size() + 1, source + ":") == 0 ? source.size() + 1 : 0);
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw FormatError(source, ": expected ", format, ", found an error: ", reason, ".");
  }
}

bool IsLetter(char c)
{
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

std::string_view Trimmed(std::string_view text)
{
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos
           ? std::string_view()
           : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// Counts the residues of chains whose sequences are not known, in the order of their atoms.
class ResidueCounter
{
public:
  std::int32_t NumberOf(const StructureAtom& atom)
  {
    const auto [known, isNew] =
      this->Numbers.try_emplace({ atom.chain, atom.residue, atom.insertion }, 0);
    if (isNew)
    {
      known->second = ++this->Counts[atom.chain];
    }
    return known->second;
  }

private:
  std::map<std::tuple<std::string, std::int32_t, std::string>, std::int32_t> Numbers;
  std::map<std::string, std::int32_t> Counts;
};

/// Adds a chain, or makes it as long as this.
void AddChain(std::vector<StructureChain>& chains, const std::string& name, std::int32_t length)
{
  const auto known = std::find_if(chains.begin(), chains.end(),
    [&name](const StructureChain& chain) { return chain.name == name; });
  if (known == chains.end())
  {
    chains.push_back({ name, length });
  }
  else
  {
    known->length = std::max(known->length, length);
  }
}

/// The columns of atoms in an mmCIF file. All but the first three may be missing.
enum Column
{
  X,
  Y,
  Z,
  Group,
  Symbol,
  AuthorAtom,
  Atom,
  AuthorComponent,
  Component,
  AuthorChain,
  Chain,
  Entity,
  AuthorNumber,
  Number,
  Insertion,
  Model
};

const std::vector<std::string> ColumnNames = { "Cartn_x", "Cartn_y", "Cartn_z", "?group_PDB",
  "?type_symbol", "?auth_atom_id", "?label_atom_id", "?auth_comp_id", "?label_comp_id",
  "?auth_asym_id", "?label_asym_id", "?label_entity_id", "?auth_seq_id", "?label_seq_id",
  "?pdbx_PDB_ins_code", "?pdbx_PDB_model_num" };

/// Reads the atoms of a data block of an mmCIF file.
class MmcifAtoms
{
public:
  MmcifAtoms(gemmi::cif::Block& block, const std::string& source)
    : Source(source)
    , Table(block.find("_atom_site.", ColumnNames))
    , HasSequence(this->Table.ok() && this->Table.has_column(Number))
  {
    for (const auto row : block.find("_struct_asym.", { "id", "entity_id" }))
    {
      this->Entities[row.str(0)] = row.str(1);
    }
    for (const auto row : block.find("_entity_poly_seq.", { "entity_id", "num" }))
    {
      std::int32_t& length = this->Lengths[row.str(0)];
      length = std::max(length, this->IntegerOf(row.str(1), "_entity_poly_seq.num"));
    }
  }

  bool AreThere() const { return this->Table.ok() && this->Table.length() > 0; }

  Structure Read()
  {
    Structure structure;
    structure.atoms.reserve(this->Table.length());
    for (const auto row : this->Table)
    {
      structure.atoms.push_back(this->ReadAtom(row));
    }
    // Two polymers of one chain follow one another.
    std::map<std::string, std::int32_t> behind;
    for (Polymer& polymer : this->Polymers)
    {
      polymer.begin = behind[polymer.chain];
      behind[polymer.chain] += polymer.length;
      AddChain(structure.chains, polymer.chain, behind[polymer.chain]);
    }
    for (std::size_t i = 0; i < structure.atoms.size(); ++i)
    {
      StructureAtom& atom = structure.atoms[i];
      atom.sequence += atom.sequence > 0 ? this->Polymers[this->PolymerOf[i]].begin : 0;
    }
    return structure;
  }

private:
  using Row = gemmi::cif::Table::Row;

  /// A polymer: a part of a chain with a sequence.
  struct Polymer
  {
    std::string chain;
    std::int32_t length = 0;
    std::int32_t begin = 0; ///< residues of the chain before it
  };

  const std::string& Source;
  gemmi::cif::Table Table;
  bool HasSequence;
  std::map<std::string, std::string> Entities;       ///< by the chains of the data bank
  std::map<std::string, std::int32_t> Lengths;       ///< of entities
  std::map<std::string, std::size_t> PolymersByName; ///< likewise
  std::vector<Polymer> Polymers;
  std::vector<std::size_t> PolymerOf; ///< of each atom
  ResidueCounter Counter;

  /// What is said where a value is wrong.
  std::string Place() const
  {
    return this->Source + ": atom " + std::to_string(this->PolymerOf.size()) + ": ";
  }

  /// The value of the first of two columns that has one, or empty.
  static std::string Find(const Row& row, int first, int second)
  {
    return row.has2(first) ? row.str(first) : row.has2(second) ? row.str(second) : std::string();
  }

  std::int32_t IntegerOf(const std::string& text, const char* item) const
  {
    const auto number = ToNumber<std::int32_t>(text);
    if (!number)
    {
      throw FormatError(this->Place(), "expected an integer as ", item, ", found '", text, "'.");
    }
    return *number;
  }

  StructureAtom ReadAtom(const Row& row)
  {
    StructureAtom atom;
    for (int axis = X; axis <= Z; ++axis)
    {
      double& x = atom.position[static_cast<std::size_t>(axis)];
      x = gemmi::cif::as_number(row[axis]);
      if (!std::isfinite(x))
      {
        throw FormatError(this->Place(), "expected a number as ",
          ColumnNames[static_cast<std::size_t>(axis)], ", found ",
          row.has2(axis) ? "'" + row.str(axis) + "'" : "none", ".");
      }
    }
    atom.name = Find(row, AuthorAtom, Atom);
    atom.element = Find(row, Symbol, Symbol);
    atom.residueName = Find(row, AuthorComponent, Component);
    atom.chain = Find(row, AuthorChain, Chain);
    atom.insertion = Find(row, Insertion, Insertion);
    std::string number = Find(row, AuthorNumber, Number);
    const std::string_view digits = std::string_view(number).substr(0, number.size() - 1);
    if (atom.insertion.empty() && !number.empty() && IsLetter(number.back()) &&
        ToNumber<std::int32_t>(digits))
    {
      atom.insertion = number.back(); // "52A"
      number.pop_back();
    }
    atom.residue = number.empty() ? 0 : this->IntegerOf(number, "auth_seq_id");
    atom.model = row.has2(Model) ? this->IntegerOf(row.str(Model), "pdbx_PDB_model_num") : 1;
    atom.isHetero = Find(row, Group, Group) == "HETATM";
    const bool isOfPolymer = this->HasSequence ? row.has2(Number) : !atom.isHetero;
    this->PolymerOf.push_back(isOfPolymer ? this->FindPolymer(row, atom) : 0);
    return atom;
  }

  /// The polymer of an atom, which gets its place in the sequence.
  std::size_t FindPolymer(const Row& row, StructureAtom& atom)
  {
    const std::string unit = Find(row, Chain, AuthorChain);
    const auto [known, isNew] =
      this->PolymersByName.try_emplace(atom.chain + " " + unit, this->Polymers.size());
    if (isNew)
    {
      this->Polymers.push_back({ atom.chain });
    }
    Polymer& polymer = this->Polymers[known->second];
    atom.sequence = this->HasSequence ? this->IntegerOf(row.str(Number), "label_seq_id")
                                      : this->Counter.NumberOf(atom);
    const auto entity = this->Entities.find(unit);
    const auto length = this->Lengths.find(row.has2(Entity)                 ? row.str(Entity)
                                           : entity != this->Entities.end() ? entity->second
                                                                            : std::string());
    const bool isKnown = this->HasSequence && length != this->Lengths.end();
    polymer.length = isKnown ? length->second : std::max(polymer.length, atom.sequence);
    if (atom.sequence < 1 || atom.sequence > polymer.length)
    {
      throw FormatError(this->Place(), "expected a label_seq_id from 1 to ", polymer.length,
        ", the length of the sequence, found ", atom.sequence, ".");
    }
    return known->second;
  }
};

Structure ParseMmcif(std::string_view text, const std::string& source)
{
  gemmi::cif::Document document = ReadByGemmi(source, "an mmCIF file",
    [&] { return gemmi::cif::read_memory(text.data(), text.size(), source.c_str()); });
  for (gemmi::cif::Block& block : document.blocks)
  {
    MmcifAtoms atoms(block, source);
    if (atoms.AreThere())
    {
      return atoms.Read();
    }
  }
  throw FormatError(source, ": expected atoms as items _atom_site, found none.");
}

/// Whether a text begins with these lower case letters, in any case.
bool BeginsWithLetters(std::string_view text, std::string_view letters)
{
  return text.size() >= letters.size() &&
         std::equal(letters.begin(), letters.end(), text.begin(),
           [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

/// The lines of a PDB file with the 80 columns that the format has: behind the end of a shorter one
/// gemmi reads what is left of the line before it. Throws FormatError unless the numbers of all
/// atoms are some, as gemmi reads others as 0.
std::string CheckPdb(std::string_view text, const std::string& source)
{
  constexpr std::size_t columns = 80;
  std::string lines;
  std::size_t number = 0;
  while (!text.empty())
  {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    const std::size_t charge = lines.size() + columns - 2;
    lines += line.substr(0, line.find_last_not_of('\r') + 1);
    lines.append(columns - std::min(columns, line.size()), ' ') += '\n';
    if (!BeginsWithLetters(line, "atom") && !BeginsWithLetters(line, "heta")) // as gemmi decides
    {
      continue;
    }
    const auto require = [&](bool holds, const char* what, std::size_t begin, std::size_t size)
    {
      if (!holds)
      {
        throw FormatError(source, ": line ", number, ": expected ", what, " in columns ", begin + 1,
          " to ", begin + size, ", found '", line.substr(std::min(begin, line.size()), size), "'.");
      }
    };
    for (const std::size_t begin : { 30U, 38U, 46U })
    {
      const auto x =
        line.size() < begin + 8 ? std::nullopt : ToNumber<double>(Trimmed(line.substr(begin, 8)));
      require(x && std::isfinite(*x), "a number", begin, 8);
    }
    // Where the charge is, files from before 1996 have the end of the number of the line.
    if (lines.find_first_of("+-", charge) > charge + 1)
    {
      lines.replace(charge, 2, "  ");
    }
    const std::string_view residue = Trimmed(line.substr(22, 4));
    const bool isHybrid36 = residue.size() == 4 && IsLetter(residue.front()) &&
                            std::all_of(residue.begin(), residue.end(), [](char c)
                              { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
    require(isHybrid36 || ToNumber<std::int32_t>(residue), "a residue number", 22, 4);
  }
  return lines;
}

/// Whether a residue of a chain without TER is of its polymer: an amino acid or nucleotide, by its
/// name or, unless it has a known one, by its backbone. Standard ones that are HETATM are not.
bool HasPolymerName(const gemmi::Residue& residue)
{
  const gemmi::ResidueInfo info = gemmi::find_tabulated_residue(residue.name);
  const bool isHetero = residue.het_flag == 'H';
  return info.found()
           ? (info.is_amino_acid() || info.is_nucleic_acid()) && !(isHetero && info.is_standard())
           : (residue.get_ca() != nullptr || residue.get_p() != nullptr) &&
               (!isHetero || (residue.get_n() != nullptr && residue.get_c() != nullptr));
}

/// Gives the residues of a chain their places in SEQRES.
void AlignChain(gemmi::Chain& chain, gemmi::Entity& entity, const std::string& source)
{
  gemmi::ResidueSpan polymer = chain.get_polymer();
  entity.polymer_type = gemmi::check_polymer_type(polymer);
  ReadByGemmi(source, "residues as in SEQRES",
    [&] { gemmi::assign_label_seq_to_polymer(polymer, &entity, false); });
  for (const gemmi::Residue& residue : polymer)
  {
    if (!residue.label_seq)
    {
      throw FormatError(source, ": chain ", chain.name, ": expected residues of its SEQRES, found ",
        residue.str(), ", which is not there.");
    }
  }
}

/// Tells the residues of polymers from others, which move behind them.
void FindPolymer(gemmi::Chain& chain)
{
  for (gemmi::Residue& residue : chain.residues)
  {
    const bool isOfPolymer = residue.entity_type == gemmi::EntityType::Unknown
                               ? HasPolymerName(residue)
                               : residue.entity_type == gemmi::EntityType::Polymer;
    residue.entity_type = isOfPolymer && !residue.is_water() ? gemmi::EntityType::Polymer
                                                             : gemmi::EntityType::NonPolymer;
    residue.subchain.clear(); // gemmi's spans are those of one
  }
  std::stable_partition(chain.residues.begin(), chain.residues.end(),
    [](const gemmi::Residue& residue)
    { return residue.entity_type == gemmi::EntityType::Polymer; });
}

Structure ParsePdb(std::string_view text, const std::string& source)
{
  const std::string lines = CheckPdb(text, source);
  gemmi::Structure read =
    ReadByGemmi(source, "a PDB file", [&] { return gemmi::read_pdb_string(lines, source); });
  int serial = 0; // by which atoms come back into their order
  for (gemmi::Model& model : read.models)
  {
    for (gemmi::Chain& chain : model.chains)
    {
      for (gemmi::Residue& residue : chain.residues)
      {
        for (gemmi::Atom& atom : residue.atoms)
        {
          atom.serial = serial++;
        }
      }
    }
  }
  ThrowIf<FormatError>(serial == 0, source,
    ": expected an mmCIF file, which begins with data_, or a PDB file with records ATOM or HETATM, "
    "found neither.");
  read.merge_chain_parts();
  Structure structure;
  structure.atoms.resize(serial);
  ResidueCounter counter;
  std::int32_t model = 0;
  for (gemmi::Model& each : read.models)
  {
    ++model;
    for (gemmi::Chain& chain : each.chains)
    {
      FindPolymer(chain);
      gemmi::Entity* entity = read.get_entity(chain.name);
      const bool hasPolymer =
        !chain.residues.empty() && chain.residues.front().entity_type == gemmi::EntityType::Polymer;
      const bool hasSequence = hasPolymer && entity != nullptr && !entity->full_sequence.empty();
      if (hasSequence)
      {
        AlignChain(chain, *entity, source);
        AddChain(
          structure.chains, chain.name, static_cast<std::int32_t>(entity->full_sequence.size()));
      }
      for (const gemmi::Residue& residue : chain.residues)
      {
        StructureAtom common;
        common.residueName = residue.name;
        common.chain = chain.name;
        common.residue = *residue.seqid.num;
        common.insertion =
          residue.seqid.has_icode() ? std::string(1, residue.seqid.icode) : std::string();
        common.model = model;
        common.isHetero = residue.het_flag == 'H';
        if (residue.entity_type == gemmi::EntityType::Polymer)
        {
          common.sequence = hasSequence ? *residue.label_seq : counter.NumberOf(common);
          AddChain(structure.chains, chain.name, common.sequence);
        }
        for (const gemmi::Atom& atom : residue.atoms)
        {
          StructureAtom& filled = structure.atoms[atom.serial];
          filled = common;
          filled.name = atom.name;
          filled.element = atom.element.name();
          filled.position = { atom.pos.x, atom.pos.y, atom.pos.z };
        }
      }
    }
  }
  return structure;
}

/// Whether a text begins as mmCIF does, after comments and spaces.
bool IsMmcif(std::string_view text)
{
  while (!text.empty() &&
         (text.front() == '#' || std::isspace(static_cast<unsigned char>(text.front())) != 0))
  {
    text.remove_prefix(
      text.front() == '#' ? std::min(text.find('\n'), text.size()) : std::size_t{ 1 });
  }
  return BeginsWithLetters(text, "data_");
}

}

Structure ParseStructure(std::string_view text, const std::string& source)
{
  return IsMmcif(text) ? ParseMmcif(text, source) : ParsePdb(text, source);
}

Structure ReadStructure(const std::filesystem::path& path)
{
  return ParseStructure(ReadFile(path), path.string());
}

char ResidueLetter(const std::string& name)
{
  const gemmi::ResidueInfo info = gemmi::find_tabulated_residue(name);
  return info.is_amino_acid() && IsLetter(info.one_letter_code)
           ? static_cast<char>(std::toupper(static_cast<unsigned char>(info.one_letter_code)))
           : 'X';
}

}
