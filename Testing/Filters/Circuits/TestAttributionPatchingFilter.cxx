#include "vtkAttributionPatching.h"

#include "Core/OracleFile.h"
#include "Matchers.h"
#include "Run/RecordTransformer.h"
#include "Tables.h"
#include "Transformers.h"

#include <cmath>
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
    EXPECT_EQ(Column(curve, "Size").back(), circuit == vtkAttributionPatching::NODES ? 11 : 110);
    EXPECT_NEAR(kept.front(), 0, 1e-9);
    EXPECT_NEAR(kept.back(), 1, 1e-9);
    EXPECT_NEAR(removed.front(), 1, 1e-9);
    EXPECT_NEAR(removed.back(), 0, 1e-9);
  }
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
}

TEST(AttributionPatchingFilter, NamesTheModelsThatItRefuses)
{
  Attributed attributed;
  const std::filesystem::path oracle = ATLAS_ORACLE_DIR;
  attributed.Model->SetFileName(
    (oracle / "models" / "transformers" / "t5" / "config.json").c_str());
  EXPECT_THAT(attributed.Error(), HasSubstr("gradients: expected a model without an encoder"));
  attributed.Model->SetFileName((oracle / "gradients" / "gemma2" / "config.json").c_str());
  attributed->SetCircuit(vtkAttributionPatching::EDGES);
  EXPECT_THAT(attributed.Error(),
    HasSubstr("Circuit: expected, for circuits of edges, a model without normalizations of what"));
}

}
