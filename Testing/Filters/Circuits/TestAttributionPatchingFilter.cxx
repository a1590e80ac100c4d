#include "vtkAttributionPatching.h"
#include "vtkCircuitReader.h"
#include "vtkCircuitWriter.h"

#include "Circuits/AttributionPatching.h"
#include "Circuits/Circuit.h"
#include "Core/OracleFile.h"
#include "Files/MappedFile.h"
#include "Matchers.h"
#include "Run/RecordTransformer.h"
#include "Tables.h"
#include "TemporaryDirectory.h"
#include "Transformers.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

using namespace atlas;
using namespace atlas::test;

namespace
{

std::filesystem::path Folder()
{
  return std::filesystem::path(ATLAS_ORACLE_DIR) / "gradients" / "gpt2";
}

std::string TextOf(const std::vector<std::int64_t>& ids)
{
  std::string text;
  for (const std::int64_t id : ids)
  {
    text += (text.empty() ? "" : " ") + std::to_string(id);
  }
  return text;
}

/// The prompt of the oracle of gradients, and another one.
class Attributed : public Warned<vtkAttributionPatching>
{
public:
  OracleFile Oracle{ Folder() / "expected.safetensors" };
  TransformerReader Model;
  std::vector<std::int64_t> Prompt = this->Oracle.Integers("input_ids");
  std::vector<std::int64_t> Other = this->Prompt;

  Attributed()
  {
    this->Model->SetFileName((Folder() / "config.json").c_str());
    this->Get()->SetInputConnection(this->Model->GetOutputPort());
    this->Other[2] = (this->Other[2] + 5) % 50;
    this->Other[4] = (this->Other[4] + 9) % 50;
    this->Get()->SetPrompt(TextOf(this->Prompt).c_str());
    this->Get()->SetPatchFrom(TextOf(this->Other).c_str());
    const std::vector<std::int64_t> pair = this->Oracle.Integers("pair");
    this->Get()->SetTarget(("#" + std::to_string(pair[0])).c_str());
    this->Get()->SetAgainst(("#" + std::to_string(pair[1])).c_str());
  }

  /// What the first layer reads, as it is recorded.
  std::vector<double> Embedding(const std::vector<std::int64_t>& tokens) const
  {
    RecordOptions options;
    options.residual = true;
    TransformerInput input;
    input.tokens = { tokens };
    const Recording recording = RecordTransformer(Transformer::Read(Folder()), input, options);
    const SharedMatrix& residual = recording.residual[0];
    std::vector<double> values;
    for (std::int64_t row = 0; row < residual.rows; ++row)
    {
      values.insert(values.end(), residual.Row(row), residual.Row(row) + residual.columns);
    }
    return values;
  }
};

TEST(AttributionPatchingFilter, HasTheEffectsOfNodes)
{
  Attributed attributed;
  attributed->SetSteps(1);
  vtkTable* nodes = attributed.Table(1);
  EXPECT_THAT(ColumnNames(nodes), ElementsAre("Node", "Layer", "Head", "Effect"));
  EXPECT_THAT(Texts(nodes->GetRowData(), "Node"),
    ElementsAre("embed", "head 0.0", "head 0.1", "head 0.2", "head 0.3", "mlp 0", "head 1.0",
      "head 1.1", "head 1.2", "head 1.3", "mlp 1"));
  EXPECT_THAT(Column(nodes, "Layer"), ElementsAre(-1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
  // torch's gradient, and embeddings of the recorder.
  const std::vector<double> gradient = attributed.Oracle.Values("gradient.hidden.0");
  const std::vector<double> clean = attributed.Embedding(attributed.Prompt);
  const std::vector<double> other = attributed.Embedding(attributed.Other);
  double expected = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i)
  {
    expected += (other[i] - clean[i]) * gradient[i];
  }
  EXPECT_NEAR(Column(nodes, "Effect")[0], expected, 1e-5 * std::abs(expected));
  EXPECT_NEAR(attributed.Field("Prompt Logit Difference", 1)[0],
    attributed.Oracle.Values("difference")[0], 1e-5);
  attributed->ExactOn();
  const std::vector<double> exact = Column(attributed.Table(1), "Exact Effect");
  ASSERT_THAT(exact, SizeIs(11));
  EXPECT_NEAR(exact[0],
    attributed.Field("Source Logit Difference")[0] - attributed.Field("Prompt Logit Difference")[0],
    1e-9)
    << "all that follows from the embedding";
}

TEST(AttributionPatchingFilter, IsAGraphOfTheStrongestEdges)
{
  Attributed attributed;
  attributed->SetTop(7);
  vtkPolyData* graph = attributed.Geometry(0);
  ASSERT_EQ(graph->GetNumberOfPoints(), 12); // logits too
  ASSERT_EQ(graph->GetNumberOfLines(), 7);
  EXPECT_EQ(graph->GetPoint(2)[0], 1); // head 0.1
  EXPECT_EQ(graph->GetPoint(5)[0], 4); // mlp 0, which reads the heads of its layer
  EXPECT_EQ(graph->GetPoint(5)[1], 0.5);
  EXPECT_EQ(graph->GetPoint(0)[1], -1);
  EXPECT_EQ(graph->GetPoint(11)[1], 2);
  vtkTable* edges = attributed.Table(2);
  // A layer: 4 heads by 3 inputs and an MLP; then the logits.
  EXPECT_EQ(edges->GetNumberOfRows(), 12 * 1 + 5 + 12 * 6 + 10 + 11);
  const std::vector<double> effects = Column(edges, "Effect");
  const std::vector<double> shown = Values(graph->GetCellData(), "Effect");
  for (std::size_t i = 0; i < shown.size(); ++i)
  {
    EXPECT_EQ(shown[i], effects[shown.size() - 1 - i]);
    EXPECT_GE(std::abs(effects[i]), std::abs(effects[i + 1]));
  }
  EXPECT_THAT(Values(graph->GetCellData(), "Opacity").back(), 1);
  EXPECT_THAT(attributed.Field("Lines Left Out"), ElementsAre(110 - 7));
  // What leaves a node adds up to its effect.
  const std::vector<std::string> from = Texts(edges->GetRowData(), "From");
  double sum = 0;
  for (std::size_t i = 0; i < from.size(); ++i)
  {
    sum += from[i] == "head 0.2" ? effects[i] : 0;
  }
  EXPECT_NEAR(sum, Column(attributed.Table(1), "Effect")[3], 1e-12);
  EXPECT_THAT(Texts(attributed.Geometry(3)->GetPointData(), "Token")[2], Eq("0.1"));
}

TEST(AttributionPatchingFilter, RunsCircuitsAlone)
{
  Attributed attributed;
  EXPECT_EQ(attributed.Table(4)->GetNumberOfRows(), 0);
  for (const int circuit : { vtkAttributionPatching::NODES, vtkAttributionPatching::EDGES })
  {
    attributed->SetCircuit(circuit);
    vtkTable* curve = attributed.Table(4);
    const std::vector<double> kept = Column(curve, "Faithfulness");
    const std::vector<double> removed = Column(curve, "Without Circuit");
    const std::vector<double> incomplete = Column(curve, "Incompleteness");
    EXPECT_NEAR(incomplete.front(), 1, 1e-9);
    EXPECT_NEAR(incomplete.back(), 0, 1e-9);
    EXPECT_EQ(Column(curve, "Size").back(), circuit == vtkAttributionPatching::NODES ? 11 : 110);
    EXPECT_NEAR(kept.front(), 0, 1e-9);
    EXPECT_NEAR(kept.back(), 1, 1e-9);
    EXPECT_NEAR(removed.front(), 1, 1e-9);
    EXPECT_NEAR(removed.back(), 0, 1e-9);
  }
}

TEST(AttributionPatchingFilter, PatchesTheStrongestEdgesExactly)
{
  Attributed attributed;
  attributed->SetExactEdges(4);
  attributed->EdgesOff(); // which exact ones need
  const std::vector<double> exact = Column(attributed.Table(2), "Exact Effect");
  ASSERT_THAT(exact, SizeIs(110));
  EXPECT_TRUE(std::isnan(exact[4]));
  const atlas::Transformer model = Transformer::Read(Folder());
  TransformerInput prompt;
  TransformerInput other;
  prompt.tokens = { attributed.Prompt };
  other.tokens = { attributed.Other };
  AttributionOptions options;
  const std::vector<std::int64_t> pair = attributed.Oracle.Integers("pair");
  options.target = pair[0];
  options.against = pair[1];
  const AttributionPatching patching(model, prompt, other, options);
  for (vtkIdType i = 0; i < 4; ++i)
  {
    std::vector<CircuitEdge> others = CircuitEdges(model.GetConfig());
    const auto name = [&](std::int32_t node) { return NameOf(patching.GetNodes()[node]); };
    const auto text = [&](const char* column)
    { return Texts(attributed.Table(2)->GetRowData(), column)[i]; };
    const auto one = std::find_if(others.begin(), others.end(),
      [&](const CircuitEdge& edge)
      {
        return name(edge.from) == text("From") && name(edge.to) == text("To") &&
               NameOf(EdgeInputNames, edge.input) == text("Input");
      });
    ASSERT_NE(one, others.end());
    others.erase(one);
    EXPECT_NEAR(exact[i], patching.WithEdges(others) - patching.Clean(), 1e-9);
  }
  attributed->SetExactEdges(1000);
  const std::vector<double> all = Column(attributed.Table(2), "Exact Effect");
  EXPECT_TRUE(
    std::none_of(all.begin(), all.end(), [](double effect) { return std::isnan(effect); }));
}

TEST(AttributionPatchingFilter, TakesPairsOfPrompts)
{
  Attributed attributed;
  attributed->SetTarget(nullptr);
  attributed->SetAgainst(nullptr);
  const auto measured = [&](const std::string& prompt, const std::string& other)
  {
    attributed->SetPrompt(prompt.c_str());
    attributed->SetPatchFrom(other.c_str());
    std::vector<double> values = Column(attributed.Table(1), "Effect");
    values.push_back(attributed.Field("Prompt Logit Difference")[0]);
    return values;
  };
  const std::string prompt = TextOf(attributed.Prompt);
  const std::string other = TextOf(attributed.Other);
  const std::vector<double> first = measured(prompt, other);
  const std::vector<double> second = measured("7 8 9 10", "7 3 9 10");
  const std::vector<double> secondTokens = attributed.Field("Target TokenId");
  const std::vector<double> both = measured(prompt + "\n7 8 9 10", other + "\n7 3 9 10");
  for (std::size_t i = 0; i < both.size(); ++i)
  {
    EXPECT_NEAR(both[i], (first[i] + second[i]) / 2, 1e-12);
  }
  EXPECT_EQ(attributed.Field("Target TokenId")[1], secondTokens[0]);
  attributed->SetPatchFrom(other.c_str());
  EXPECT_THAT(attributed.Error(), HasSubstr("PatchFrom: expected as many prompts as Prompt has, 2, "
                                            "found 1; set PromptFormat to OneText"));
}

TEST(AttributionPatchingFilter, LeavesOutEdges)
{
  Attributed attributed;
  const std::vector<double> effects = Column(attributed.Table(1), "Effect");
  attributed->EdgesOff();
  EXPECT_EQ(Column(attributed.Table(1), "Effect"), effects);
  EXPECT_EQ(attributed.Geometry(0)->GetNumberOfLines(), 0);
  EXPECT_EQ(attributed.Geometry(0)->GetNumberOfPoints(), 12);
  EXPECT_EQ(attributed.Table(2)->GetNumberOfRows(), 0);
  attributed->SetCircuit(vtkAttributionPatching::EDGES);
  EXPECT_EQ(Column(attributed.Table(4), "Size").back(), 110);
}

/// Writes the graph that a filter shows.
std::string Saved(vtkAlgorithm* filter, const std::filesystem::path& path)
{
  Observed<vtkCircuitWriter> writer;
  writer->SetInputConnection(filter->GetOutputPort());
  writer->SetFileName(path.string().c_str());
  EXPECT_EQ(writer->Write(), 1);
  return path.string();
}

TEST(AttributionPatchingFilter, WritesTheCircuitThatItShows)
{
  const TemporaryDirectory folder;
  Attributed attributed;
  attributed->SetTop(7);
  const std::string file = Saved(attributed.Get(), folder / "7.circuit");
  Observed<vtkCircuitReader> read;
  EXPECT_EQ(read->CanReadFile(file.c_str()), 1);
  EXPECT_EQ(read->CanReadFile((Folder() / "config.json").string().c_str()), 0);
  const std::filesystem::path cut = folder / "cut.circuit"; // whose message the reader has
  std::filesystem::copy_file(file, cut);
  std::filesystem::resize_file(cut, 40);
  EXPECT_EQ(read->CanReadFile(cut.string().c_str()), 1);
  Observed<vtkCircuitReader> other;
  other->SetFileName(cut.string().c_str());
  EXPECT_THAT(other.Error(), HasSubstr("cut.circuit: the circuit is not JSON"));
  read->SetFileName(file.c_str());
  vtkTable* edges = Updated<vtkTable>(read.Get(), 2);
  vtkTable* all = attributed.Table(2);
  ASSERT_EQ(edges->GetNumberOfRows(), 7);
  for (const char* column : { "From", "To", "Input" })
  {
    std::vector<std::string> strongest = Texts(all->GetRowData(), column);
    strongest.resize(7);
    EXPECT_EQ(Texts(edges->GetRowData(), column), strongest);
  }
  std::vector<double> effects = Column(all, "Effect");
  effects.resize(7);
  EXPECT_EQ(Column(edges, "Effect"), effects) << "to the last bit";
  auto* graph = Updated<vtkPolyData>(read.Get(), 0);
  vtkPolyData* shown = attributed.Geometry(0);
  EXPECT_EQ(Values(graph->GetCellData(), "Effect"), Values(shown->GetCellData(), "Effect"));
  const std::vector<double> isIn = Values(graph->GetPointData(), "In Circuit");
  EXPECT_EQ(isIn, Values(shown->GetPointData(), "In Circuit"));
  EXPECT_EQ(std::accumulate(isIn.begin(), isIn.end(), 0.),
    static_cast<double>(Updated<vtkTable>(read.Get(), 1)->GetNumberOfRows()));
  EXPECT_EQ(graph->GetPoint(11)[1], shown->GetPoint(11)[1]);
  // Written again, it is the same file.
  EXPECT_EQ(ReadFile(Saved(read.Get(), folder / "again.circuit")), ReadFile(file));
}

TEST(AttributionPatchingFilter, WritesTheStrongestNodesWithoutEdges)
{
  const TemporaryDirectory folder;
  Attributed attributed;
  attributed->EdgesOff();
  attributed->SetTop(3);
  const Circuit circuit = ReadCircuit(Saved(attributed.Get(), folder / "x.circuit"));
  EXPECT_TRUE(circuit.edges.empty());
  ASSERT_EQ(circuit.nodes.size(), 3U);
  const std::vector<double> effects = Column(attributed.Table(1), "Effect");
  double least = INFINITY;
  for (const std::int32_t node : circuit.nodes)
  {
    least = std::min(least, std::abs(effects[node]));
  }
  EXPECT_EQ(std::count_if(effects.begin(), effects.end(),
              [&](double effect) { return std::abs(effect) >= least; }),
    3);
}

/// A circuit of a file does what the strongest ones of its size do.
TEST(AttributionPatchingFilter, MeasuresTheCircuitOfAFile)
{
  const TemporaryDirectory folder;
  Attributed attributed;
  for (const int circuit : { vtkAttributionPatching::NODES, vtkAttributionPatching::EDGES })
  {
    attributed->SetEdges(circuit == vtkAttributionPatching::EDGES);
    attributed->SetCircuit(circuit);
    attributed->SetTop(8);
    const std::vector<double> sizes = Column(attributed.Table(4), "Size");
    const auto row = std::find(sizes.begin(), sizes.end(), 8) - sizes.begin();
    ASSERT_LT(row, static_cast<std::ptrdiff_t>(sizes.size()));
    const double kept = Column(attributed.Table(4), "Faithfulness")[row];
    const double removed = Column(attributed.Table(4), "Without Circuit")[row];
    const std::vector<double> isIn = Values(attributed.Geometry(0)->GetPointData(), "In Circuit");
    const std::string file = Saved(attributed.Get(), folder / std::to_string(circuit));
    attributed->SetCircuitFile(file.c_str());
    attributed->SetCircuit(vtkAttributionPatching::FROM_FILE);
    attributed->SetTop(2);
    EXPECT_THAT(Column(attributed.Table(4), "Size"), ElementsAre(8));
    EXPECT_NEAR(Column(attributed.Table(4), "Faithfulness")[0], kept, 1e-12);
    EXPECT_NEAR(Column(attributed.Table(4), "Without Circuit")[0], removed, 1e-12);
    EXPECT_EQ(
      attributed.Geometry(0)->GetNumberOfLines(), circuit == vtkAttributionPatching::EDGES ? 8 : 0);
    attributed->EdgesOn();
    EXPECT_THAT(attributed.Field("Lines Left Out"), ElementsAre(0)) << "of the file";
    EXPECT_EQ(Values(attributed.Geometry(0)->GetPointData(), "In Circuit"), isIn);
  }
  attributed->SetCircuitFile(nullptr);
  EXPECT_THAT(
    attributed.Error(), HasSubstr("CircuitFile: expected the file of a circuit, found n"));
  attributed->SetCircuitFile((folder / "none").string().c_str());
  EXPECT_THAT(attributed.Error(), HasSubstr((folder / "none").string()));
  CircuitShape other;
  other.architecture = "gpt2";
  other.layers = 1;
  other.heads = 4;
  WriteCircuit(folder / "other", MakeCircuit(other, { 1 }, {}));
  attributed->SetCircuitFile((folder / "other").string().c_str());
  EXPECT_THAT(attributed.Error(),
    HasSubstr(
      "other: expected a circuit of gpt2 with 2 layers of 4 heads and MLPs after them, found "
      "one of gpt2 with 1 layers of 4 heads"));
}

TEST(AttributionPatchingFilter, ComparesCircuits)
{
  const TemporaryDirectory folder;
  Attributed attributed;
  attributed->SetTop(5);
  const std::string five = Saved(attributed.Get(), folder / "5.circuit");
  attributed->SetTop(9);
  const std::string nine = Saved(attributed.Get(), folder / "9.circuit");
  Observed<vtkCircuitReader> read;
  read->SetFileName(five.c_str());
  read->SetCompareWith(nine.c_str());
  const std::vector<std::string> in = Texts(Updated<vtkTable>(read.Get(), 2)->GetRowData(), "In");
  EXPECT_THAT(
    in, ElementsAre("both", "both", "both", "both", "both", "other", "other", "other", "other"));
  read->SetFileName(nine.c_str());
  read->SetCompareWith(five.c_str());
  auto* graph = Updated<vtkPolyData>(read.Get(), 0);
  EXPECT_THAT(Texts(graph->GetCellData(), "In"),
    ElementsAre("file", "file", "file", "file", "both", "both", "both", "both", "both"));
  const std::vector<std::string> nodes =
    Texts(Updated<vtkTable>(read.Get(), 1)->GetRowData(), "In");
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "both"),
    static_cast<std::ptrdiff_t>(ReadCircuit(five).nodes.size()));
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "other"), 0);
}

TEST(AttributionPatchingFilter, WritesNoOtherDataset)
{
  const TemporaryDirectory folder;
  Attributed attributed;
  const auto message = [&](vtkPolyData* graph)
  {
    Observed<vtkCircuitWriter> writer;
    writer->SetInputData(graph);
    writer->SetFileName((folder / "x.circuit").string().c_str());
    writer->Write();
    return writer.TakeError();
  };
  vtkNew<vtkPolyData> graph;
  EXPECT_THAT(message(graph), HasSubstr("expected the graph of a circuit, found an empty one."));
  graph->ShallowCopy(attributed.Geometry(3)); // vertices without lines are a circuit of nodes
  graph->GetPointData()->RemoveArray("In Circuit");
  EXPECT_THAT(
    message(graph), HasSubstr("expected the graph of Attribution Patching or Circuit Re"));
  graph->ShallowCopy(attributed.Geometry(0));
  vtkNew<vtkCellArray> lines;
  for (vtkIdType i = 0; i < graph->GetNumberOfLines(); ++i)
  {
    lines->InsertNextCell({ vtkIdType{ 0 }, i == 4 ? vtkIdType{ 99 } : 1 });
  }
  graph->SetLines(lines);
  EXPECT_THAT(
    message(graph), HasSubstr("expected lines of two points with an Input, found another"));
  for (const char* name : { "Effect", "Input", "In Circuit" }) // shorter than lines or points
  {
    graph->DeepCopy(attributed.Geometry(0));
    vtkAbstractArray* ofLines = graph->GetCellData()->GetAbstractArray(name);
    (ofLines != nullptr ? ofLines : graph->GetPointData()->GetAbstractArray(name))
      ->SetNumberOfTuples(3);
    EXPECT_THAT(message(graph), HasSubstr("expected the graph of Attribution Patching or Circuit"))
      << name;
  }
  const auto messageOf = [&](double layers)
  {
    graph->DeepCopy(attributed.Geometry(0));
    vtkNew<vtkDoubleArray> number;
    number->SetName("Layers");
    number->InsertNextValue(layers);
    graph->GetFieldData()->AddArray(number);
    return message(graph);
  };
  for (const double layers : { 1e300, 0., -1., std::nan(""), 100001. })
  {
    EXPECT_THAT(
      messageOf(layers), HasSubstr("expected the graph of Attribution Patching or Circuit"));
  }
  EXPECT_THAT(messageOf(3), HasSubstr("expected a graph with all points, 17, found 12."));
  EXPECT_TRUE(folder.Entries().empty());
}

TEST(AttributionPatchingFilter, IsEmptyWithoutPrompts)
{
  Attributed attributed;
  attributed->SetPatchFrom(nullptr);
  EXPECT_EQ(attributed.Geometry(0)->GetNumberOfPoints(), 0);
  EXPECT_EQ(attributed.Table(1)->GetNumberOfRows(), 0);
}

TEST(AttributionPatchingFilter, TellsWhatIsWrong)
{
  Attributed attributed;
  attributed->SetPatchFrom("1 2 3");
  EXPECT_THAT(attributed.Error(), HasSubstr("PatchFrom: expected as many tokens"));
  attributed->SetPatchFrom(TextOf(attributed.Other).c_str());
  attributed->SetPosition(9);
  EXPECT_THAT(
    attributed.Error(), HasSubstr("Position: expected -1 or one of the prompt, 0 to 8, found 9."));
  attributed->SetPosition(1); // before the first token that differs
  attributed->SetCircuit(vtkAttributionPatching::NODES);
  EXPECT_THAT(attributed.Error(),
    HasSubstr("Circuit: expected runs with different logit differences, found"));
  std::vector<std::int64_t> last = attributed.Prompt; // differs in the last token alone
  last.back() = (last.back() + 5) % 50;
  attributed->SetPatchFrom(TextOf(last).c_str());
  attributed->SetTarget("");
  attributed->SetAgainst("");
  attributed->SetPosition(-1);
  attributed->SetMeasure(vtkAttributionPatching::LOSS);
  EXPECT_THAT(attributed.Error(),
    AllOf(HasSubstr("Circuit: expected runs with different losses, found"),
      HasSubstr("change Prompt or PatchFrom, which must differ before their last tokens.")));
}

TEST(AttributionPatchingFilter, NamesTheModelsThatItRefuses)
{
  Attributed attributed;
  const std::filesystem::path oracle = ATLAS_ORACLE_DIR;
  attributed.Model->SetFileName(
    (oracle / "models" / "transformers" / "t5" / "config.json").c_str());
  EXPECT_THAT(attributed.Error(), HasSubstr("gradients: expected a model without an encoder"));
  // Queries of all heads are normalized together.
  attributed.Model->SetFileName((oracle / "v5" / "decoder" / "olmo2-a" / "config.json").c_str());
  EXPECT_THAT(attributed.Error(), HasSubstr("normalizations of the queries of all heads together"));
}

}
