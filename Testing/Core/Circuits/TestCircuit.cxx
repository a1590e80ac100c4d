#include "Circuits/Circuit.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Circuits/AttributionPatching.h"
#include "Circuits/CircuitCurves.h"
#include "ErrorMessage.h"
#include "OracleFile.h"
#include "Run/RecordTransformer.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace
{

/// A model of two layers of two heads, with MLPs after them: embed 0, heads 1 and 2, mlp 3, heads 4
/// and 5, mlp 6, logits 7.
CircuitShape Small()
{
  CircuitShape shape;
  shape.architecture = "gpt2";
  shape.layers = 2;
  shape.heads = 2;
  return shape;
}

/// As a person would write it.
constexpr const char* Written = R"({
  "format": "attention-atlas.circuit", "version": 1,
  "model": {"architecture": "gpt2", "layers": 2, "heads": 2, "mlps": "after heads"},
  "nodes": ["mlp 0"],
  "edges": [
    {"from": "head 0.1", "to": "head 1.0", "input": "K", "effect": -0.5},
    {"from": "embed", "to": "head 0.1", "input": "V", "effect": 2},
    {"from": "head 1.0", "to": "logits", "input": "Stream", "effect": 1e-300}
  ]})";

std::string Replaced(std::string text, const std::string& what, const std::string& by)
{
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// The circuit without nodes and edges, but for a change of the text.
std::string MessageWith(const std::string& what, const std::string& by)
{
  return MessageOf<FormatError>([&] { ParseCircuit(Replaced(Written, what, by), "x.circuit"); });
}

void ExpectSame(const Circuit& found, const Circuit& expected)
{
  EXPECT_TRUE(found.shape == expected.shape);
  EXPECT_EQ(found.nodes, expected.nodes);
  ASSERT_EQ(found.edges.size(), expected.edges.size());
  for (std::size_t i = 0; i < found.edges.size(); ++i)
  {
    EXPECT_EQ(found.edges[i].from, expected.edges[i].from);
    EXPECT_EQ(found.edges[i].to, expected.edges[i].to);
    EXPECT_EQ(found.edges[i].input, expected.edges[i].input);
    EXPECT_EQ(found.edges[i].effect, expected.edges[i].effect);
  }
}

TEST(Circuit, IsReadFromText)
{
  const Circuit circuit = ParseCircuit(Written, "x.circuit");
  EXPECT_TRUE(circuit.shape == Small());
  EXPECT_THAT(circuit.nodes, ElementsAre(0, 2, 3, 4)) << "those at edges, too, without the logits";
  ASSERT_EQ(circuit.edges.size(), 3U); // by reader
  EXPECT_EQ(circuit.edges[0].to, 2);
  EXPECT_EQ(circuit.edges[1].to, 4);
  EXPECT_EQ(circuit.edges[1].from, 2);
  EXPECT_EQ(circuit.edges[1].input, EdgeInput::Key);
  EXPECT_EQ(circuit.edges[1].effect, -0.5);
  EXPECT_EQ(circuit.edges[2].to, 7);
  EXPECT_EQ(circuit.edges[2].effect, 1e-300);
}

TEST(Circuit, IsWrittenAndReadWhole)
{
  const TemporaryDirectory folder;
  CircuitShape shape = Small();
  std::vector<CircuitEdge> edges = CircuitEdges(shape);
  for (std::size_t i = 0; i < edges.size(); ++i)
  {
    edges[i].effect = 0.1 * static_cast<double>(i) - 1. / 3;
  }
  for (const CircuitMlps mlps : { CircuitMlps::AfterHeads, CircuitMlps::None })
  {
    shape.mlps = mlps;
    if (mlps == CircuitMlps::None)
    {
      edges.resize(4); // of embedding and head 0.0, which are there in any case
    }
    const Circuit circuit = MakeCircuit(shape, { 1 }, edges);
    const std::filesystem::path path = folder / "a \"b\".circuit";
    WriteCircuit(path, circuit);
    ExpectSame(ReadCircuit(path), circuit);
  }
  EXPECT_THAT(MessageOf<FileError>([&] { WriteCircuit(folder / "no" / "x", {}); }),
    HasSubstr("cannot write file"));
  EXPECT_THAT(
    MessageOf<FileError>([&] { ReadCircuit(folder / "no"); }), HasSubstr((folder / "no").string()));
}

TEST(Circuit, RefusesWhatIsNone)
{
  const auto message = [](const std::string& text)
  { return MessageOf<FormatError>([&] { ParseCircuit(text, "x.circuit"); }); };
  const std::string text = Written;
  for (std::size_t length = 0; length < text.size(); ++length)
  {
    EXPECT_THAT(message(text.substr(0, length)), HasSubstr("x.circuit: the circuit is not JSON"));
  }
  EXPECT_THAT(message("[]"), HasSubstr("expected the circuit to be a JSON object, found array."));
  EXPECT_THAT(
    message("{}"), HasSubstr("expected a circuit (format attention-atlas.circuit, version "
                             "1), found format null, version null."));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("is not JSON"));
  EXPECT_THAT(MessageWith("\"version\": 1", "\"version\": 2"), HasSubstr("version 2."));
  EXPECT_THAT(MessageWith("\"layers\": 2", "\"layers\": -2"), HasSubstr("layers"));
  EXPECT_THAT(MessageWith("\"layers\": 2", "\"layers\": 2000000000"),
    HasSubstr("expected a model of at most 100000 heads and MLPs"));
  EXPECT_THAT(MessageWith("\"layers\": 2", "\"layers\": 90000"), HasSubstr("at most 100000"));
  EXPECT_THAT(MessageWith("after heads", "above"), HasSubstr("unknown mlps 'above'"));
  EXPECT_THAT(
    MessageWith("[\"mlp 0\"]", "\"mlp 0\""), HasSubstr("nodes: expected a list, found s"));
  EXPECT_THAT(
    MessageWith("\"edges\"", "\"edge\""), HasSubstr("edges: expected a list, found none"));
}

TEST(Circuit, NamesTheNodeOrEdgeThatIsWrong)
{
  EXPECT_THAT(MessageWith("\"mlp 0\"", "\"mlp 2\""),
    HasSubstr(
      "x.circuit: nodes[0]: expected a node of gpt2 with 2 layers of 2 heads and MLPs after "
      "them, such as \"embed\" or \"head 0.1\", found \"mlp 2\"."));
  EXPECT_THAT(MessageWith("\"mlp 0\"", "\"logits\""), HasSubstr("nodes[0]: expected a node that"));
  EXPECT_THAT(
    MessageWith("\"mlp 0\"", "\"mlp 0\", \"mlp 0\""), HasSubstr("nodes[1]: expected each"));
  EXPECT_THAT(MessageWith("\"mlp 0\"", "[[[]]]"), HasSubstr("found array."));
  EXPECT_THAT(MessageWith("\"from\": \"embed\"", "\"from\": \"head 0.2\""),
    HasSubstr("edges[1].from: expected a node of"));
  EXPECT_THAT(MessageWith("\"from\": \"embed\"", "\"from\": \"head 1.0\""),
    HasSubstr("edges[1]: expected an edge from a node that head 0.1 reads, found \"head 1.0\"."));
  EXPECT_THAT(MessageWith("\"to\": \"head 0.1\", \"input\": \"V\"",
                "\"to\": \"embed\", \"input\": \"Stream\""),
    HasSubstr("edges[1]: expected an edge from a node that embed reads"));
  EXPECT_THAT(MessageWith("\"input\": \"K\"", "\"input\": \"Stream\""),
    HasSubstr("edges[0].input: expected Q, K or V of head 1.0, found \"Stream\"."));
  EXPECT_THAT(MessageWith("\"input\": \"Stream\"", "\"input\": 3"),
    HasSubstr("edges[2].input: expected Stream of logits, found 3."));
  EXPECT_THAT(MessageWith("\"effect\": 2", "\"effect\": null"),
    HasSubstr("edges[1].effect: expected a finite number, found null."));
  EXPECT_THAT(MessageWith("\"effect\": 2", "\"effect\": 1e999"), HasSubstr("not JSON"));
  EXPECT_THAT(MessageWith("{\"from\": \"embed\", \"to\": \"head 0.1\", \"input\": \"V\"",
                "{\"from\": \"head 0.1\", \"to\": \"head 1.0\", \"input\": \"K\""),
    HasSubstr("edges[1]: expected each edge once, found one from \"head 0.1\" to \"head 1.0\""));
}

TEST(Circuit, IsOfAModelOfOneShape)
{
  const Circuit circuit = ParseCircuit(Written, "x.circuit");
  TransformerConfig config;
  config.architecture = "gpt2";
  config.layers = 2;
  config.heads = 2;
  config.mlpDimension = 8;
  CheckCircuit(circuit, config, "x.circuit");
  config.heads = 3;
  EXPECT_THAT(MessageOf<OptionError>([&] { CheckCircuit(circuit, config, "x.circuit"); }),
    testing::StrEq("x.circuit: expected a circuit of gpt2 with 2 layers of 3 heads and MLPs after "
                   "them, found one of gpt2 with 2 layers of 2 heads and MLPs after them."));
  Circuit other = circuit;
  other.shape.mlps = CircuitMlps::BesideHeads;
  EXPECT_THAT(MessageOf<OptionError>([&] { Compare(circuit, other); }),
    HasSubstr("circuits: expected two of one model, found one of gpt2"));
}

TEST(Circuit, IsCompared)
{
  const Circuit first = MakeCircuit(Small(), { 6 },
    { { 0, 1, EdgeInput::Query, 1 }, { 0, 1, EdgeInput::Key, 2 }, { 1, 7, EdgeInput::Stream, 3 } });
  const Circuit second =
    MakeCircuit(Small(), { 5 }, { { 0, 1, EdgeInput::Query, 10 }, { 0, 1, EdgeInput::Value, 20 } });
  const CircuitComparison found = Compare(first, second);
  ExpectSame(found.both, { Small(), { 0, 1 }, { { 0, 1, EdgeInput::Query, 1 } } });
  ExpectSame(found.first,
    { Small(), { 6 }, { { 0, 1, EdgeInput::Key, 2 }, { 1, 7, EdgeInput::Stream, 3 } } });
  ExpectSame(found.second, { Small(), { 5 }, { { 0, 1, EdgeInput::Value, 20 } } });
  EXPECT_THAT(Compare(first, first).first.edges, IsEmpty());
}

/// The recorder with all sites outside a circuit patched has the logits of attribution's own runs,
/// which the oracles check.
TEST(Circuit, IsRunByTheRecorder)
{
  for (const char* folder : { "gradients/gpt2", "gradients/gpt_neox", "transformers/attn-only" })
  {
    const Transformer model = Transformer::Read(std::filesystem::path(ATLAS_ORACLE_DIR) / folder);
    TransformerInput clean;
    clean.tokens = { { 3, 8, 1, 9, 7, 7, 2 } };
    TransformerInput corrupted;
    corrupted.tokens = { { 3, 5, 1, 9, 4, 7, 2 } };
    AttributionOptions options;
    options.target = 4;
    options.against = 9;
    const AttributionPatching patching(model, clean, corrupted, options);
    const auto last = static_cast<std::int32_t>(patching.GetNodes().size()) - 1;
    const std::vector<std::vector<std::int32_t>> circuits = { { 0, 2, last - 1 }, { 1, 3 }, {} };
    for (const std::vector<std::int32_t>& nodes : circuits)
    {
      const Circuit circuit = MakeCircuit(model.GetConfig(), nodes, {});
      RecordOptions record;
      record.logits = true;
      record.interventions.source = corrupted;
      for (const ActivationSite& site : SitesOutside(circuit))
      {
        record.interventions.list.push_back({ site, Replacement::Source });
      }
      EXPECT_EQ(record.interventions.list.size(), ToIndex(last) - nodes.size());
      const Recording recording = RecordTransformer(model, clean, record);
      const float* logits = recording.logits.Row(6);
      const CircuitPoint point = MeasureCircuit(patching, patching.Attribute(false), circuit);
      EXPECT_EQ(point.size, static_cast<std::int64_t>(nodes.size()));
      EXPECT_NEAR(static_cast<double>(logits[4]) - static_cast<double>(logits[9]), point.kept, 2e-5)
        << folder;
    }
  }
}

}
