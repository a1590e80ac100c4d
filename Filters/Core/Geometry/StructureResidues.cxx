#include "StructureResidues.h"

#include "Base/Error.h"
#include "Base/Joined.h"
#include "Base/SystemLimits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace atlas
{
namespace
{

constexpr double NoPlace = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<double, 3> Unresolved = { NoPlace, NoPlace, NoPlace };
constexpr char Unknown = 'X';
constexpr char Glycine = 'G';

std::string NameOf(const ResidueAtom& atom)
{
  const auto end = std::find(atom.chain.begin(), atom.chain.end(), '\0');
  return { atom.chain.begin(), end };
}

/// The first model of atoms, of those that stand for residues.
std::int32_t FirstModel(const std::vector<ResidueAtom>& atoms)
{
  std::int32_t model = std::numeric_limits<std::int32_t>::max();
  for (const ResidueAtom& atom : atoms)
  {
    model = atom.isOther ? model : std::min(model, atom.model);
  }
  return model;
}

/// Whether an atom stands for its residue.
bool StandsForResidue(const ResidueAtom& atom, ContactAtom chosen)
{
  return !atom.isOther && atom.isBeta == (chosen == ContactAtom::CBeta && atom.letter != Glycine);
}

/// Residues with the letters of a structure, one after another.
struct Residues
{
  std::string letters;
  std::vector<std::array<double, 3>> places;
  std::vector<bool> sites;
  std::vector<std::int32_t> numbers;

  explicit Residues(std::size_t count)
    : letters(count, Unknown)
    , places(count, Unresolved)
    , sites(count, false)
    , numbers(count, 0)
  {
  }

  void Add(std::size_t i, const ResidueAtom& atom, ContactAtom chosen)
  {
    if (this->letters[i] == Unknown) // else of another location with another residue
    {
      this->letters[i] = atom.letter;
    }
    this->sites[i] = this->sites[i] || atom.isSite;
    this->numbers[i] = atom.place;
    if (StandsForResidue(atom, chosen) && std::isnan(this->places[i][0]))
    {
      this->places[i] = atom.position;
    }
  }
};

std::int64_t CountKnown(std::string_view letters)
{
  return std::count_if(letters.begin(), letters.end(), [](char c) { return c != Unknown; });
}

/// Throws if an alignment of these lengths is too large.
void RequireAlignable(std::size_t rows, std::size_t columns)
{
  constexpr std::size_t largest = std::size_t{ 1 } << 29U;
  ThrowIf<OptionError>(columns > 0 && rows > largest / columns,
    "Structure: expected sequences whose lengths have a product of at most ", largest,
    " for their alignment, found ", rows, " and ", columns, ".");
  RequireMemory(static_cast<double>(rows) * static_cast<double>(columns),
    "an alignment of " + std::to_string(rows) + " and " + std::to_string(columns) + " residues",
    "choose a shorter chain.");
}

/// "83.3 %", rounded down.
std::string Percent(double share)
{
  std::ostringstream text;
  text << std::floor(share * 1000) / 10 << " %";
  return text.str();
}

void Compare(PlacedResidues& placed, std::size_t i, char found, char expected)
{
  placed.resolved += std::isnan(placed.places[i][0]) ? 0 : 1;
  placed.compared += found != Unknown && expected != Unknown ? 1 : 0;
  placed.identical += found != Unknown && found == expected ? 1 : 0;
}

}

double PlacedResidues::Identity() const
{
  return this->compared == 0
           ? NoPlace
           : static_cast<double>(this->identical) / static_cast<double>(this->compared);
}

std::string ShareText(std::int64_t part, std::int64_t all)
{
  const double share = static_cast<double>(part) / static_cast<double>(all);
  return std::to_string(part) + " of " + std::to_string(all) + " (" + Percent(share) + ")";
}

void RequireSameProtein(const PlacedResidues& placed, double identity, const std::string& advice)
{
  ThrowIf<OptionError>(placed.isAligned && placed.compared == 0,
    "Structure: expected residues whose letters can be compared with those of the recording, found "
    "none; bind the structure by Bind Tokens.");
  if (placed.isAligned && placed.compared < placed.known - placed.compared)
  {
    throw OptionError("Structure: expected the same protein, with which at least half "
                      "of the residues align, found ",
      ShareText(placed.compared, placed.known), ". ", advice);
  }
  if (placed.Identity() < identity)
  {
    throw OptionError("Structure: expected the same protein, of which at least ", Percent(identity),
      " of the residues are the same, found ", ShareText(placed.identical, placed.compared), ". ",
      advice);
  }
}

std::vector<std::string> ChainsOf(const std::vector<ResidueAtom>& atoms)
{
  std::vector<std::string> chains;
  for (const ResidueAtom& atom : atoms)
  {
    const std::string name = NameOf(atom);
    if (!atom.isOther && (chains.empty() || chains.back() != name) &&
        std::find(chains.begin(), chains.end(), name) == chains.end())
    {
      chains.push_back(name);
    }
  }
  return chains;
}

PlacedResidues PlaceByTokens(const std::vector<ResidueAtom>& atoms,
  const std::vector<std::int64_t>& residues, std::string_view letters, ContactAtom atom)
{
  const std::int32_t model = FirstModel(atoms);
  Residues found(residues.size());
  for (const ResidueAtom& one : atoms)
  {
    const auto residue = std::lower_bound(residues.begin(), residues.end(), one.token);
    if (one.model == model && residue != residues.end() && *residue == one.token)
    {
      found.Add(residue - residues.begin(), one, atom);
    }
  }
  PlacedResidues placed;
  placed.places = found.places;
  placed.sites = found.sites;
  placed.numbers = found.numbers;
  placed.known = std::min(CountKnown(letters), CountKnown(found.letters));
  for (std::size_t i = 0; i < residues.size(); ++i)
  {
    Compare(placed, i, found.letters[i], letters[i]);
  }
  return placed;
}

PlacedResidues PlaceByAlignment(const std::vector<ResidueAtom>& atoms, const std::string& chain,
  std::string_view letters, ContactAtom atom)
{
  const std::vector<std::string> chains = ChainsOf(atoms);
  ThrowIf<OptionError>(
    chains.empty(), "Structure: expected a protein with atoms CA or CB in a sequence, found none.");
  const std::string& name = chain.empty() ? chains.front() : chain;
  if (std::find(chains.begin(), chains.end(), name) == chains.end())
  {
    throw OptionError("Chain: expected one of the structure's, ",
      Joined(chains, [](const std::string& one) { return "'" + one + "'"; }), ", found '", name,
      "'.");
  }
  const std::int32_t model = FirstModel(atoms);
  const auto isOfChain = [&](const ResidueAtom& one)
  { return one.model == model && NameOf(one) == name; };
  std::int32_t length = 0;
  for (const ResidueAtom& one : atoms)
  {
    length = isOfChain(one) ? std::max(length, one.place) : length;
  }
  constexpr std::int32_t longest = std::int32_t{ 1 } << 20U; // the longest protein has 35,000
  ThrowIf<OptionError>(length > longest, "Structure: expected places in a sequence up to ", longest,
    ", found ", length, " in chain '", name, "'.");
  RequireAlignable(letters.size(), length);
  Residues found(length);
  for (const ResidueAtom& one : atoms)
  {
    if (isOfChain(one))
    {
      found.Add(one.place - 1, one, atom);
    }
  }
  const std::vector<std::int64_t> aligned = AlignSequences(letters, found.letters);
  PlacedResidues placed;
  placed.isAligned = true;
  placed.chain = name;
  placed.known = std::min(CountKnown(letters), CountKnown(found.letters));
  placed.places.assign(letters.size(), Unresolved);
  placed.sites.assign(letters.size(), false);
  placed.numbers.assign(letters.size(), 0);
  for (std::size_t i = 0; i < letters.size(); ++i)
  {
    if (aligned[i] >= 0)
    {
      placed.places[i] = found.places[aligned[i]];
      placed.sites[i] = found.sites[aligned[i]];
      placed.numbers[i] = found.numbers[aligned[i]];
      Compare(placed, i, found.letters[aligned[i]], letters[i]);
    }
  }
  return placed;
}

std::vector<std::int64_t> AlignSequences(std::string_view first, std::string_view second)
{
  const std::size_t rows = first.size();
  const std::size_t columns = second.size();
  RequireAlignable(rows, columns);
  enum Step : char
  {
    Both,
    FirstAlone,
    SecondAlone
  };
  std::vector<Step> steps(rows * columns);
  std::vector<int> above(columns + 1, 0); // scores of a row; gaps at the ends are free
  std::vector<int> row(columns + 1, 0);
  for (std::size_t i = 0; i < rows; ++i)
  {
    for (std::size_t j = 0; j < columns; ++j)
    {
      const bool isSame = first[i] == second[j] && first[i] != Unknown;
      const int both = above[j] + (isSame ? 2 : 0);
      const int firstAlone = above[j + 1] - (j + 1 == columns ? 0 : 2);
      const int secondAlone = row[j] - (i + 1 == rows ? 0 : 2);
      row[j + 1] = std::max({ both, firstAlone, secondAlone });
      steps[i * columns + j] = row[j + 1] == both         ? Both
                               : row[j + 1] == firstAlone ? FirstAlone
                                                          : SecondAlone;
    }
    std::swap(above, row);
    row[0] = 0;
  }
  std::vector<std::int64_t> places(rows, -1);
  std::size_t i = rows;
  std::size_t j = columns;
  while (i > 0 && j > 0)
  {
    const Step step = steps[(i - 1) * columns + j - 1];
    i -= step == SecondAlone ? 0 : 1;
    j -= step == FirstAlone ? 0 : 1;
    if (step == Both)
    {
      places[i] = static_cast<std::int64_t>(j);
    }
  }
  return places;
}

}
