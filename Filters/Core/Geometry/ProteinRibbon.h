#pragma once

#include "Files/StructureFile.h"

#include <array>
#include <cstdint>
#include <vector>

namespace atlas
{

/// How the backbone runs at a residue.
enum class BackboneKind : std::uint8_t
{
  Coil,
  Helix,
  Strand
};

/// The kinds of residues that follow one another. `pieces`: of each unbroken stretch of a chain the
/// places of its C-alpha atoms in Angstrom, in their order; the result has the same sizes.
///
/// A residue with the two before it and the two after it is of a helix or a strand by the six
/// distances of these five (after Zhang and Skolnick 2005: each within 1.3 of those of a
/// helix, 1.42 of those of a strand), and with it the one before it and the one after it. Helices
/// have at least 5 residues. Strands have at least 3, each of which, or one beside it, is closer
/// than 5.2 to a residue of a strand that is not within two of it in its piece.
std::vector<std::vector<BackboneKind>> FindBackboneKinds(
  const std::vector<std::vector<std::array<double, 3>>>& pieces);

/// The backbones of proteins as a surface: flat ribbons along helices, arrows along strands, tubes
/// elsewhere, dashes where residues between two others were not resolved.
struct ProteinRibbon
{
  std::vector<std::array<double, 3>> points; ///< first those of the atoms, which no triangle has
  std::vector<std::array<float, 3>> normals; ///< of length 1; 0 at the atoms
  std::vector<std::int64_t> atoms; ///< of each point the number of the C-alpha of its residue in
                                   ///< the structure; -1 in dashes
  std::vector<BackboneKind> kinds; ///< of each point
  std::vector<std::array<std::int64_t, 3>> triangles;
};

/// The ribbon of all chains of the first model. Residues have a C-alpha; of several at one place of
/// a chain the first counts. A chain is broken where a place is missing, or where neighbors are
/// more than 5 Angstrom apart; dashes cross a break that as many residues can reach across.
ProteinRibbon MakeRibbon(const Structure& structure);

}
