#include "Files/StructureFile.h"
#include "FuzzTarget.h"

#include <algorithm>
#include <cmath>

using namespace atlas;

/// Parses any bytes as an mmCIF or PDB file: there is at least one atom, positions are finite, and
/// residues are in the sequence of their chain.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  Structure structure;
  if (!fuzz::Read([&] { structure = ParseStructure(fuzz::Text(data, size), fuzz::Source); }))
  {
    return 0;
  }
  fuzz::Require(!structure.atoms.empty(), "atoms");
  for (const StructureAtom& atom : structure.atoms)
  {
    for (const double x : atom.position)
    {
      fuzz::Require(std::isfinite(x), "finite positions");
    }
    const auto chain = std::find_if(structure.chains.begin(), structure.chains.end(),
      [&atom](const StructureChain& known) { return known.name == atom.chain; });
    fuzz::Require(atom.sequence == 0 || (atom.sequence > 0 && chain != structure.chains.end() &&
                                          atom.sequence <= chain->length),
      "places in the sequence of the chain");
  }
  return 0;
}
