#include "Circuit.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Joined.h"
#include "Base/NamedValues.h"
#include "Files/AtomicFile.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr const char* Format = "attention-atlas.circuit";
constexpr std::int64_t Version = 1;
constexpr std::int64_t MostNodes = 100'000;

/// An edge without its effect, in the order of edges.
auto PlaceOf(const CircuitEdge& edge)
{
  return std::tuple(edge.to, edge.input, edge.from);
}

/// Parses what a file lists, of a model of its shape.
class ListReader
{
public:
  ListReader(const CircuitShape& shape, const std::string& source)
    : Shape(shape)
    , Source(source)
    , Nodes(CircuitNodes(shape))
  {
    for (std::size_t i = 0; i < this->Nodes.size(); ++i)
    {
      this->Numbers.emplace(NameOf(this->Nodes[i]), static_cast<std::int32_t>(i));
    }
  }

  std::vector<std::int32_t> ReadNodes(const json& list) const
  {
    std::vector<std::int32_t> nodes;
    std::set<std::int32_t> known;
    for (const json& item : list)
    {
      const std::string place = "nodes[" + std::to_string(nodes.size()) + "]";
      const std::int32_t node = this->ReadNode(item, place);
      ThrowIf<FormatError>(this->Nodes[node].kind == CircuitNodeKind::Logits, this->Source, ": ",
        place, ": expected a node that writes, found the logits.");
      ThrowIf<FormatError>(!known.insert(node).second, this->Source, ": ", place,
        ": expected each node once, found ", Describe(item), " again.");
      nodes.push_back(node);
    }
    return nodes;
  }

  std::vector<CircuitEdge> ReadEdges(const json& list) const
  {
    std::vector<CircuitEdge> edges;
    std::set<std::tuple<std::int32_t, EdgeInput, std::int32_t>> known;
    for (const json& item : list)
    {
      const std::string place = "edges[" + std::to_string(edges.size()) + "]";
      edges.push_back(this->ReadEdge(item, place));
      ThrowIf<FormatError>(!known.insert(PlaceOf(edges.back())).second, this->Source, ": ", place,
        ": expected each edge once, found one from ", Describe(item["from"]), " to ",
        Describe(item["to"]), " again.");
    }
    return edges;
  }

private:
  const CircuitShape& Shape;
  const std::string& Source;
  std::vector<CircuitNode> Nodes;
  std::map<std::string, std::int32_t> Numbers;

  std::int32_t ReadNode(const json& item, const std::string& place) const
  {
    const auto found =
      item.is_string() ? this->Numbers.find(item.get<std::string>()) : this->Numbers.end();
    ThrowIf<FormatError>(found == this->Numbers.end(), this->Source, ": ", place,
      ": expected a node of ", ToText(this->Shape), ", such as \"embed\" or \"head 0.1\", found ",
      Describe(item), ".");
    return found->second;
  }

  CircuitEdge ReadEdge(const json& item, const std::string& place) const
  {
    ThrowIf<FormatError>(!item.is_object(), this->Source, ": ", place,
      ": expected an object with from, to, input and effect, found ", Describe(item), ".");
    const auto part = [&](const char* key) { return item.contains(key) ? item.at(key) : json(); };
    CircuitEdge edge;
    edge.from = this->ReadNode(part("from"), place + ".from");
    edge.to = this->ReadNode(part("to"), place + ".to");
    const json input = part("input");
    const auto* named =
      input.is_string() ? FindNamed(EdgeInputNames, input.get<std::string>()) : nullptr;
    const CircuitNode& reader = this->Nodes[edge.to];
    const bool isHead = reader.kind == CircuitNodeKind::Head;
    ThrowIf<FormatError>(named == nullptr || (named->value != EdgeInput::Stream) != isHead,
      this->Source, ": ", place, ".input: expected ", isHead ? "Q, K or V" : "Stream", " of ",
      NameOf(reader), ", found ", Describe(input), ".");
    edge.input = named->value;
    ThrowIf<FormatError>(edge.from >= (edge.to == 0 ? 0 : this->Shape.WritersOf(reader)),
      this->Source, ": ", place, ": expected an edge from a node that ", NameOf(reader),
      " reads, found ", Describe(part("from")), ".");
    const json effect = part("effect");
    ThrowIf<FormatError>(!effect.is_number() || !std::isfinite(effect.get<double>()), this->Source,
      ": ", place, ".effect: expected a finite number, found ", Describe(effect), ".");
    edge.effect = effect.get<double>();
    return edge;
  }
};

CircuitShape ReadShape(const Settings& settings, const std::string& source)
{
  CircuitShape shape;
  shape.architecture = settings.Text({ "architecture" }, "");
  shape.layers = settings.Size({ "layers" });
  shape.heads = settings.Size({ "heads" });
  shape.mlps = settings.Choice({ "mlps" }, "", CircuitMlpNames);
  ThrowIf<FormatError>(shape.layers > MostNodes || shape.heads > MostNodes ||
                         shape.layers * (shape.heads + 1) > MostNodes,
    source, ": expected a model of at most ", MostNodes, " heads and MLPs, found ", shape.layers,
    " layers of ", shape.heads, " heads.");
  return shape;
}

/// A list that the file must have.
const json& ListOf(const json& object, const char* key, const std::string& source)
{
  const auto found = object.find(key);
  ThrowIf<FormatError>(found == object.end() || !found->is_array(), source, ": ", key,
    ": expected a list, found ", found == object.end() ? "none" : std::string(found->type_name()),
    ".");
  return *found;
}

}

std::string NameOf(const CircuitNode& node)
{
  switch (node.kind)
  {
    case CircuitNodeKind::Embedding:
      return "embed";
    case CircuitNodeKind::Head:
      return "head " + std::to_string(node.layer) + "." + std::to_string(node.head);
    case CircuitNodeKind::Mlp:
      return "mlp " + std::to_string(node.layer);
    default:
      return "logits";
  }
}

CircuitShape::CircuitShape(const TransformerConfig& config)
  : architecture(config.architecture)
  , layers(config.layers)
  , heads(config.heads)
  , mlps(config.mlpDimension == 0                    ? CircuitMlps::None
         : config.order == SublayerOrder::Sequential ? CircuitMlps::AfterHeads
                                                     : CircuitMlps::BesideHeads)
{
}

std::int64_t CircuitShape::NodesBefore(std::int64_t l) const
{
  return 1 + l * (this->heads + (this->mlps == CircuitMlps::None ? 0 : 1));
}

std::int64_t CircuitShape::WritersOf(const CircuitNode& node) const
{
  const bool readsHeads =
    node.kind == CircuitNodeKind::Mlp && this->mlps == CircuitMlps::AfterHeads;
  return this->NodesBefore(node.layer) + (readsHeads ? this->heads : 0);
}

bool CircuitShape::operator==(const CircuitShape& other) const
{
  const auto tie = [](const CircuitShape& shape)
  { return std::tie(shape.architecture, shape.layers, shape.heads, shape.mlps); };
  return tie(*this) == tie(other);
}

std::string ToText(const CircuitShape& shape)
{
  const char* mlps = shape.mlps == CircuitMlps::None         ? " and no MLPs"
                     : shape.mlps == CircuitMlps::AfterHeads ? " and MLPs after them"
                                                             : " and MLPs beside them";
  return Concat(
    shape.architecture, " with ", shape.layers, " layers of ", shape.heads, " heads", mlps);
}

std::vector<CircuitNode> CircuitNodes(const CircuitShape& shape)
{
  std::vector<CircuitNode> nodes = { {} };
  const auto layers = static_cast<std::int32_t>(shape.layers);
  for (std::int32_t l = 0; l < layers; ++l)
  {
    for (std::int32_t h = 0; h < static_cast<std::int32_t>(shape.heads); ++h)
    {
      nodes.push_back({ CircuitNodeKind::Head, l, h });
    }
    if (shape.mlps != CircuitMlps::None)
    {
      nodes.push_back({ CircuitNodeKind::Mlp, l });
    }
  }
  nodes.push_back({ CircuitNodeKind::Logits, layers });
  return nodes;
}

std::int64_t CircuitEdgeCount(const CircuitShape& shape)
{
  const std::vector<CircuitNode> nodes = CircuitNodes(shape);
  std::int64_t count = 0;
  for (std::size_t i = 1; i < nodes.size(); ++i)
  {
    count += (nodes[i].kind == CircuitNodeKind::Head ? 3 : 1) * shape.WritersOf(nodes[i]);
  }
  return count;
}

std::vector<CircuitEdge> CircuitEdges(const CircuitShape& shape)
{
  const std::vector<CircuitNode> nodes = CircuitNodes(shape);
  std::vector<CircuitEdge> edges;
  for (std::size_t i = 1; i < nodes.size(); ++i)
  {
    const bool isHead = nodes[i].kind == CircuitNodeKind::Head;
    for (const Named<EdgeInput>& input : EdgeInputNames)
    {
      const bool has = isHead != (input.value == EdgeInput::Stream);
      const std::int64_t writers = has ? shape.WritersOf(nodes[i]) : 0;
      for (std::int64_t from = 0; from < writers; ++from)
      {
        edges.push_back(
          { static_cast<std::int32_t>(from), static_cast<std::int32_t>(i), input.value });
      }
    }
  }
  return edges;
}

bool IsBefore(const CircuitEdge& a, const CircuitEdge& b)
{
  return PlaceOf(a) < PlaceOf(b);
}

void SortByMagnitude(std::vector<CircuitEdge>& edges)
{
  const auto rank = [](const CircuitEdge& edge)
  { return std::tuple_cat(std::tuple(-std::abs(edge.effect)), PlaceOf(edge)); };
  std::sort(edges.begin(), edges.end(),
    [&](const CircuitEdge& a, const CircuitEdge& b) { return rank(a) < rank(b); });
}

Circuit MakeCircuit(
  CircuitShape shape, std::vector<std::int32_t> nodes, std::vector<CircuitEdge> edges)
{
  std::sort(edges.begin(), edges.end(), IsBefore);
  edges.erase(std::unique(edges.begin(), edges.end(), [](const CircuitEdge& a, const CircuitEdge& b)
                { return PlaceOf(a) == PlaceOf(b); }),
    edges.end());
  for (const CircuitEdge& edge : edges)
  {
    nodes.push_back(edge.from);
    nodes.push_back(edge.to);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const auto logits = static_cast<std::int32_t>(shape.NodesBefore(shape.layers));
  nodes.erase(std::lower_bound(nodes.begin(), nodes.end(), logits), nodes.end());
  return { std::move(shape), std::move(nodes), std::move(edges) };
}

std::string ToJson(const Circuit& circuit)
{
  const std::vector<CircuitNode> nodes = CircuitNodes(circuit.shape);
  const auto name = [&](std::int32_t node) { return NameOf(nodes[node]); };
  const auto line = [](const nlohmann::ordered_json& value)
  { return value.dump(-1, ' ', false, json::error_handler_t::replace); };
  const CircuitShape& shape = circuit.shape;
  const std::string model =
    line({ { "architecture", shape.architecture }, { "layers", shape.layers },
      { "heads", shape.heads }, { "mlps", NameOf(CircuitMlpNames, shape.mlps) } });
  return Concat("{\n\"format\": \"", Format, "\",\n\"version\": ", Version, ",\n\"model\": ", model,
    ",\n\"nodes\": [",
    Joined(
      circuit.nodes, [&](std::int32_t node) { return line(name(node)); }, ", "),
    "],\n\"edges\": [",
    Joined(
      circuit.edges,
      [&](const CircuitEdge& edge)
      {
        return "\n" +
               line({ { "from", name(edge.from) }, { "to", name(edge.to) },
                 { "input", NameOf(EdgeInputNames, edge.input) }, { "effect", edge.effect } });
      },
      ","),
    "]\n}\n");
}

void WriteCircuit(const std::filesystem::path& path, const Circuit& circuit)
{
  AtomicFile file(path);
  const std::string text = ToJson(circuit);
  file.Write(text.data(), text.size());
  file.Commit();
}

Circuit ParseCircuit(std::string_view text, const std::string& source)
{
  const json object = ParseJsonObject(text, source, "the circuit");
  const auto format = object.value("format", json());
  const auto version = object.value("version", json());
  ThrowIf<FormatError>(format != Format || version != Version, source,
    ": expected a circuit (format ", Format, ", version ", Version, "), found format ",
    Describe(format), ", version ", Describe(version), ".");
  CircuitShape shape;
  try
  {
    const Settings settings(object, source);
    shape = ReadShape(settings.NestedOrEmpty({ "model" }), source);
  }
  catch (const ModelError& e)
  {
    throw FormatError(e.what());
  }
  const ListReader reader(shape, source);
  std::vector<std::int32_t> nodes = reader.ReadNodes(ListOf(object, "nodes", source));
  std::vector<CircuitEdge> edges = reader.ReadEdges(ListOf(object, "edges", source));
  return MakeCircuit(std::move(shape), std::move(nodes), std::move(edges));
}

Circuit ReadCircuit(const std::filesystem::path& path)
{
  return ParseCircuit(ReadFile(path), path.string());
}

void CheckCircuit(
  const Circuit& circuit, const TransformerConfig& config, const std::string& source)
{
  const CircuitShape shape(config);
  ThrowIf<OptionError>(!(circuit.shape == shape), source, ": expected a circuit of ", ToText(shape),
    ", found one of ", ToText(circuit.shape), ".");
}

std::vector<ActivationSite> SitesOutside(const Circuit& circuit)
{
  const std::vector<CircuitNode> nodes = CircuitNodes(circuit.shape);
  std::vector<ActivationSite> sites;
  auto next = circuit.nodes.begin();
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
  {
    if (next != circuit.nodes.end() && ToIndex(*next) == i)
    {
      ++next;
      continue;
    }
    const CircuitNode& node = nodes[i];
    const ActivationKind kind = node.kind == CircuitNodeKind::Head  ? ActivationKind::HeadOutput
                                : node.kind == CircuitNodeKind::Mlp ? ActivationKind::MlpOutput
                                                                    : ActivationKind::Residual;
    sites.push_back({ kind, std::max(node.layer, 0), std::max(node.head, 0) });
  }
  return sites;
}

CircuitComparison Compare(const Circuit& first, const Circuit& second)
{
  ThrowIf<OptionError>(!(first.shape == second.shape),
    "circuits: expected two of one model, found one of ", ToText(first.shape), " and one of ",
    ToText(second.shape), ".");
  CircuitComparison found;
  const auto split = [](const auto& a, const auto& b, const auto& before, auto&& parts)
  {
    std::set_intersection(
      a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(*parts[0]), before);
    std::set_difference(
      a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(*parts[1]), before);
    std::set_difference(
      b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(*parts[2]), before);
  };
  split(first.nodes, second.nodes, std::less<>(),
    std::array{ &found.both.nodes, &found.first.nodes, &found.second.nodes });
  split(first.edges, second.edges, IsBefore,
    std::array{ &found.both.edges, &found.first.edges, &found.second.edges });
  for (Circuit* part : { &found.both, &found.first, &found.second })
  {
    part->shape = first.shape;
  }
  return found;
}

}
