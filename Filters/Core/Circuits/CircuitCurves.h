#pragma once

#include "AttributionPatching.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How well a circuit of the strongest nodes or edges does alone.
struct CircuitPoint
{
  std::int64_t size = 0; ///< nodes or edges in the circuit, the strongest ones
  double kept = 0;       ///< the measure with all others as in the corrupted run
  double removed = 0;    ///< the measure with these as in the corrupted run
  double incomplete = 0; ///< the largest |m(C without K) - m(M without K)| over the sets K below
};

/// The curves of circuits of growing size, by falling magnitude of the effects; equal ones in their
/// order. Nodes: all, without the logits. With m the measure,
///
///     faithfulness    = (m kept - m corrupted) / (m clean - m corrupted),
///     without circuit = (m removed - m corrupted) / (m clean - m corrupted),
///     incompleteness  = max over K of |m(C \ K) - m(M \ K)| / |m clean - m corrupted|,
///
/// where m(S) is the measure with all outside S as in the corrupted run, M all of the model and C
/// the circuit. The first (Hanna, Pezzelle and Belinkov 2024) is 1 if the circuit alone reproduces
/// the whole model's difference, and 0 for an empty one. The second, by which Marks et al. 2024
/// measure completeness, is the share of the difference that remains in the model without the
/// circuit: 1 if nothing is removed, 0 if nothing is left. The third (Wang et al. 2022) is 0 if the
/// model without any part K of the circuit does what the circuit without K does. Of its sets K,
/// three are taken: none, the stronger half of the circuit, rounded down, and all of it.
std::vector<CircuitPoint> NodeCircuits(const AttributionPatching& patching,
  const Attribution& attribution, const std::vector<std::int64_t>& sizes,
  const Progress& progress = {});
std::vector<CircuitPoint> EdgeCircuits(const AttributionPatching& patching,
  const Attribution& attribution, const std::vector<std::int64_t>& sizes,
  const Progress& progress = {});

/// The point of one circuit of the model: of its edges, if it has some, which the attribution must
/// have, too, or of its nodes. Throws as WithEdges.
CircuitPoint MeasureCircuit(const AttributionPatching& patching, const Attribution& attribution,
  const Circuit& circuit, const Progress& progress = {});

/// Throws OptionError if the measures of both runs are equal but for rounding: then a circuit has
/// no part of their difference. `loss`: whether they are losses, for the message.
void CheckDifferentMeasures(const AttributionPatching& patching, bool loss = false);

}
