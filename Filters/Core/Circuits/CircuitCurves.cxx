#include "CircuitCurves.h"

#include "Base/Error.h"
#include "Base/Index.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

/// The indices of effects by falling magnitude; equal ones in order.
std::vector<std::size_t> StrongestFirst(const std::vector<double>& effects)
{
  std::vector<std::size_t> order(effects.size());
  std::iota(order.begin(), order.end(), std::size_t{ 0 });
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b)
    { return std::pair(-std::abs(effects[a]), a) < std::pair(-std::abs(effects[b]), b); });
  return order;
}

/// The points of circuits of the first ones in an order, where measure(whether each is in a set,
/// progress) is that with the set alone.
template<class Measure>
std::vector<CircuitPoint> CurveOf(const std::vector<std::size_t>& order,
  const std::vector<std::int64_t>& sizes, double clean, double corrupted, const Progress& progress,
  const Measure& measure)
{
  /// That of those from the first place to before the last.
  const auto between = [&](std::int64_t first, std::int64_t last, const Progress& part)
  {
    std::vector<bool> isIn(order.size());
    std::for_each(
      order.begin() + first, order.begin() + last, [&](std::size_t i) { isIn[i] = true; });
    return measure(std::move(isIn), part);
  };
  const auto all = static_cast<std::int64_t>(order.size());
  std::vector<CircuitPoint> curve;
  for (const std::int64_t size : sizes)
  {
    ThrowIf<OptionError>(
      size < 0 || size > all, "size of a circuit: expected 0 to ", all, ", found ", size, ".");
    const Progress part = progress.Part(curve.size(), curve.size() + 1, sizes.size());
    CircuitPoint point;
    point.size = size;
    point.kept = between(0, size, part.Part(0, 0.25));
    point.removed = between(size, all, part.Part(0.25, 0.5));
    point.incomplete = std::max(std::abs(point.kept - clean), std::abs(corrupted - point.removed));
    if (const std::int64_t half = size / 2; half > 0)
    {
      const double rest = between(half, size, part.Part(0.5, 0.75));
      point.incomplete =
        std::max(point.incomplete, std::abs(rest - between(half, all, part.Part(0.75, 1))));
    }
    part(1, 1);
    curve.push_back(point);
  }
  return curve;
}

/// The points of the first nodes or edges in an order.
std::vector<CircuitPoint> NodeCurve(const AttributionPatching& patching,
  const std::vector<std::size_t>& order, const std::vector<std::int64_t>& sizes,
  const Progress& progress)
{
  return CurveOf(order, sizes, patching.Clean(), patching.Corrupted(), progress,
    [&](std::vector<bool> isIn, const Progress& part)
    {
      isIn.flip();
      return patching.WithPatched(isIn, part);
    });
}
std::vector<CircuitPoint> EdgeCurve(const AttributionPatching& patching,
  const std::vector<CircuitEdge>& edges, const std::vector<std::size_t>& order,
  const std::vector<std::int64_t>& sizes, const Progress& progress)
{
  return CurveOf(order, sizes, patching.Clean(), patching.Corrupted(), progress,
    [&](const std::vector<bool>& isIn, const Progress& part)
    {
      std::vector<CircuitEdge> kept;
      for (std::size_t i = 0; i < isIn.size(); ++i)
      {
        if (isIn[i])
        {
          kept.push_back(edges[i]);
        }
      }
      return patching.WithEdges(kept, part);
    });
}

std::vector<double> EffectsOfNodes(const Attribution& attribution)
{
  std::vector<double> effects(attribution.nodes.size() - 1);
  for (std::size_t i = 0; i < effects.size(); ++i)
  {
    effects[i] = attribution.Effect(static_cast<std::int64_t>(i));
  }
  return effects;
}

std::vector<double> EffectsOfEdges(const Attribution& attribution)
{
  std::vector<double> effects(attribution.edges.size());
  std::transform(attribution.edges.begin(), attribution.edges.end(), effects.begin(),
    [](const CircuitEdge& edge) { return edge.effect; });
  return effects;
}

}

std::vector<CircuitPoint> NodeCircuits(const AttributionPatching& patching,
  const Attribution& attribution, const std::vector<std::int64_t>& sizes, const Progress& progress)
{
  return NodeCurve(patching, StrongestFirst(EffectsOfNodes(attribution)), sizes, progress);
}

std::vector<CircuitPoint> EdgeCircuits(const AttributionPatching& patching,
  const Attribution& attribution, const std::vector<std::int64_t>& sizes, const Progress& progress)
{
  return EdgeCurve(
    patching, attribution.edges, StrongestFirst(EffectsOfEdges(attribution)), sizes, progress);
}

CircuitPoint MeasureCircuit(const AttributionPatching& patching, const Attribution& attribution,
  const Circuit& circuit, const Progress& progress)
{
  const bool ofEdges = !circuit.edges.empty();
  std::vector<std::size_t> order =
    StrongestFirst(ofEdges ? EffectsOfEdges(attribution) : EffectsOfNodes(attribution));
  std::vector<bool> isIn(order.size());
  for (std::size_t i = 0; i < circuit.nodes.size() && !ofEdges; ++i)
  {
    isIn[circuit.nodes[i]] = true;
  }
  for (std::size_t i = 0; i < isIn.size() && ofEdges; ++i)
  {
    isIn[i] = std::binary_search(
      circuit.edges.begin(), circuit.edges.end(), attribution.edges[i], IsBefore);
  }
  std::vector<std::size_t> inside;
  std::copy_if(
    order.begin(), order.end(), std::back_inserter(inside), [&](std::size_t i) { return isIn[i]; });
  const std::vector<std::int64_t> size = { static_cast<std::int64_t>(inside.size()) };
  std::copy_if(order.begin(), order.end(), std::back_inserter(inside),
    [&](std::size_t i) { return !isIn[i]; });
  return (ofEdges ? EdgeCurve(patching, attribution.edges, inside, size, progress)
                  : NodeCurve(patching, inside, size, progress))
    .front();
}

void CheckDifferentMeasures(const AttributionPatching& patching, bool loss)
{
  const double clean = patching.Clean();
  const double corrupted = patching.Corrupted();
  constexpr double tolerance = 1e-9; // of rounding
  ThrowIf<OptionError>(
    std::abs(clean - corrupted) <= tolerance * (std::abs(clean) + std::abs(corrupted)),
    "Circuit: expected runs with different ", loss ? "losses" : "logit differences", ", found ",
    clean,
    loss ? " in both; change Prompt or PatchFrom, which must differ before their last tokens."
         : " in both; change Target, Against or Position, which must not be before the first token "
           "in which Prompt and PatchFrom differ.");
}

}
