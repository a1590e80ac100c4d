#include "FuzzTarget.h"
#include "MmcifFile.h"

#include <cmath>

using namespace atlas;

/// Parses any bytes as an mmCIF file: atoms have finite positions, and there is at least one.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  std::vector<CifAtom> atoms;
  if (!fuzz::Read([&] { atoms = ParseMmcif(fuzz::Text(data, size), fuzz::Source); }))
  {
    return 0;
  }
  fuzz::Require(!atoms.empty(), "atoms");
  for (const CifAtom& atom : atoms)
  {
    for (const double x : atom.position)
    {
      fuzz::Require(std::isfinite(x), "finite positions");
    }
  }
  return 0;
}
