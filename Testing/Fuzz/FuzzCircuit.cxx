#include "Circuits/Circuit.h"
#include "FuzzTarget.h"

using namespace atlas;

/// Parses any text as a circuit: written and read again, it is the same text, and it differs from
/// itself in nothing.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  Circuit circuit;
  if (!fuzz::Read([&] { circuit = ParseCircuit(fuzz::Text(data, size), fuzz::Source); }))
  {
    return 0;
  }
  const std::string text = ToJson(circuit);
  fuzz::Require(ToJson(ParseCircuit(text, fuzz::Source)) == text, "the same text");
  const CircuitComparison parts = Compare(circuit, circuit);
  fuzz::Require(parts.first.nodes.empty() && parts.second.edges.empty(), "no difference");
  const std::int64_t outside = circuit.shape.NodesBefore(circuit.shape.layers) -
                               static_cast<std::int64_t>(circuit.nodes.size());
  fuzz::Require(static_cast<std::int64_t>(SitesOutside(circuit).size()) >= outside, "all sites");
  return 0;
}
