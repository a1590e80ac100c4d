#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The atom that stands for a residue in contacts.
enum class ContactAtom
{
  CBeta, ///< C-beta; of glycine C-alpha
  CAlpha
};

/// A C-alpha or C-beta of a structure, or another atom of a site. Plain bytes, for ranks to
/// exchange.
struct ResidueAtom
{
  std::array<char, 8> chain = {}; ///< the name of its chain, then zeros
  std::int32_t place = 0;         ///< of the residue in the sequence of its chain, from 1
  std::int32_t model = 1;         ///< of several
  std::int32_t token = -1;        ///< position in the recorded sequence, if it is bound; -1: none
  char letter = 'X';              ///< of the residue; X: none
  bool isBeta = false;
  bool isOther = false; ///< neither C-alpha nor C-beta
  bool isSite = false;  ///< its residue is one
  std::array<double, 3> position = { 0, 0, 0 };
};

/// The residues of a structure on those of a sequence.
struct PlacedResidues
{
  std::vector<std::array<double, 3>> places; ///< of each residue of the sequence the position of
                                             ///< its atom; NaN if it was not resolved
  std::vector<bool> sites;                   ///< whether an atom of it says that it is one
  std::vector<std::int32_t> numbers; ///< its place in the sequence of its chain, from 1; 0: none
  std::string chain;                 ///< of all of them; empty if they are bound
  std::int64_t resolved = 0;         ///< residues with one
  std::int64_t known = 0;            ///< residues with known letters, of the shorter of both
  std::int64_t compared = 0;         ///< residues with known letters in both
  std::int64_t identical = 0;        ///< those of them with the same letter
  bool isAligned = false;            ///< by PlaceByAlignment

  /// The share of the compared residues that are the same, from 0 to 1; NaN if none were compared.
  double Identity() const;
};

/// "95 of 100 (95 %)", rounded down to tenths of a percent.
std::string ShareText(std::int64_t part, std::int64_t all);

/// Throws OptionError for the structure of another protein: if fewer of the compared residues than
/// `identity`, from 0 to 1, are the same or, after an alignment, if it compares none or fewer than
/// half of the residues that the shorter sequence has. `advice`: how to go on, the last sentence.
void RequireSameProtein(const PlacedResidues& placed, double identity, const std::string& advice);

/// The names of the chains of atoms that can stand for residues, in their order.
std::vector<std::string> ChainsOf(const std::vector<ResidueAtom>& atoms);

/// Places residues by their tokens. `residues`: the positions of the sequence's residues, rising;
/// `letters`: theirs. The first model counts, and of an atom with several locations the first.
PlacedResidues PlaceByTokens(const std::vector<ResidueAtom>& atoms,
  const std::vector<std::int64_t>& residues, std::string_view letters, ContactAtom atom);

/// Places the residues of a chain by the alignment of its sequence. `chain`: its name; empty: the
/// first. Throws OptionError if the structure does not have it or if its places go beyond 2^20, and
/// as AlignSequences.
PlacedResidues PlaceByAlignment(const std::vector<ResidueAtom>& atoms, const std::string& chain,
  std::string_view letters, ContactAtom atom);

/// The place in `second` of each letter of `first`, or -1, by the global alignment with the largest
/// score (Needleman and Wunsch 1970): 2 for equal letters but X, -2 for each letter beside a gap
/// but at the ends, where gaps are free. Of equal scores, from the end on, pairs come before gaps.
/// Throws OptionError if the product of lengths is more than 2^29, and as RequireMemory.
std::vector<std::int64_t> AlignSequences(std::string_view first, std::string_view second);

}
