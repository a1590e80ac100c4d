#pragma once

#include "Base/NamedValues.h"
#include "Run/Interventions.h"
#include "Weights/TransformerConfig.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// What writes to the residual stream, or reads the logits from it.
enum class CircuitNodeKind
{
  Embedding, ///< what the first layer reads
  Head,
  Mlp,
  Logits
};

struct CircuitNode
{
  CircuitNodeKind kind = CircuitNodeKind::Embedding;
  std::int32_t layer = -1; ///< -1 for the embedding; L for the logits
  std::int32_t head = -1;  ///< -1 but for heads
};

/// "embed", "head 0.1" (layer and head), "mlp 0", "logits".
std::string NameOf(const CircuitNode& node);

/// What of a node reads what another one writes.
enum class EdgeInput
{
  Query, ///< of a head
  Key,
  Value,
  Stream ///< of an MLP or the logits
};

inline constexpr std::array<Named<EdgeInput>, 4> EdgeInputNames = { {
  { "Q", EdgeInput::Query },
  { "K", EdgeInput::Key },
  { "V", EdgeInput::Value },
  { "Stream", EdgeInput::Stream },
} };

struct CircuitEdge
{
  std::int32_t from = 0; ///< indices of nodes
  std::int32_t to = 0;
  EdgeInput input = EdgeInput::Stream;
  double effect = 0;
};

/// The MLPs of a model as nodes.
enum class CircuitMlps
{
  None,
  AfterHeads, ///< an MLP reads what the heads of its layer write
  BesideHeads ///< it does not
};
inline constexpr std::array<Named<CircuitMlps>, 3> CircuitMlpNames = { {
  { "none", CircuitMlps::None },
  { "after heads", CircuitMlps::AfterHeads },
  { "beside heads", CircuitMlps::BesideHeads },
} };

/// Which nodes and edges a model has.
struct CircuitShape
{
  std::string architecture;
  std::int64_t layers = 0;
  std::int64_t heads = 0; ///< of each layer
  CircuitMlps mlps = CircuitMlps::AfterHeads;

  CircuitShape() = default;
  CircuitShape(const TransformerConfig& config); // NOLINT(hicpp-explicit-conversions): it is one

  /// The number of nodes before layer l.
  std::int64_t NodesBefore(std::int64_t l) const;

  /// A node reads the outputs of the first nodes: how many.
  std::int64_t WritersOf(const CircuitNode& node) const;

  bool operator==(const CircuitShape& other) const;
};

/// "gpt2 with 2 layers of 8 heads and no MLPs".
std::string ToText(const CircuitShape& shape);

/// The nodes of a model in the order in which they are computed: embedding, heads and MLP of each
/// layer, logits.
std::vector<CircuitNode> CircuitNodes(const CircuitShape& shape);

/// The number of edges of a model, and all of them, in the order of IsBefore, without effects.
std::int64_t CircuitEdgeCount(const CircuitShape& shape);
std::vector<CircuitEdge> CircuitEdges(const CircuitShape& shape);

/// Whether an edge is before another one by reader, its input, then writer.
bool IsBefore(const CircuitEdge& a, const CircuitEdge& b);

/// Sorts edges by falling magnitude of their effects; equal ones by IsBefore.
void SortByMagnitude(std::vector<CircuitEdge>& edges);

/// A part of a model that is thought to do something.
struct Circuit
{
  CircuitShape shape;
  std::vector<std::int32_t> nodes; ///< indices of CircuitNodes, rising, without the logits; also
                                   ///< those at edges
  std::vector<CircuitEdge> edges;  ///< in the order of IsBefore; empty: all between the nodes
};

/// A circuit of these nodes and edges, and the nodes at edges. Duplicates are counted once.
Circuit MakeCircuit(
  CircuitShape shape, std::vector<std::int32_t> nodes, std::vector<CircuitEdge> edges);

/// A circuit as the text of a file, a JSON object in lines: "format", "version", "model" with the
/// shape, "nodes" by name, and "edges", each with "from", "to", "input" and "effect".
std::string ToJson(const Circuit& circuit);

/// Writes the file completely or not at all. Throws FileError.
void WriteCircuit(const std::filesystem::path& path, const Circuit& circuit);

/// Throws FormatError for a text that is no circuit, another format or version, a node or edge that
/// the model of the file does not have or that is there twice, and a model of more than 100 000
/// nodes; the message begins with `source`.
Circuit ParseCircuit(std::string_view text, const std::string& source);

/// Throws as ParseCircuit does, and FileError.
Circuit ReadCircuit(const std::filesystem::path& path);

/// Throws OptionError, which begins with `source`, unless a circuit is of models of this shape.
void CheckCircuit(
  const Circuit& circuit, const TransformerConfig& config, const std::string& source);

/// The sites of a run that a circuit leaves out, to replace them: heads, MLPs and, as the residual
/// stream before layer 0, the embedding. In order. Of a circuit of edges, nodes at none are
/// outside.
std::vector<ActivationSite> SitesOutside(const Circuit& circuit);

/// What two circuits have in common and what only one of them has. Edges have the effects of the
/// circuit that they are taken from, those of both of the first.
struct CircuitComparison
{
  Circuit both;
  Circuit first;
  Circuit second;
};

/// Throws OptionError unless both are circuits of models of one shape, and both of edges or both of
/// nodes; an empty one is both.
CircuitComparison Compare(const Circuit& first, const Circuit& second);

}
