#include "Core/OracleFile.h"
#include "Matchers.h"
#include "vtkAttentionTokenLayout.h"
#include "vtkAttentionTokens.h"
#include "vtkSharedTokens.h"

#include "Transformers.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr int LayerCount = 2;
constexpr int HeadCount = 4;
constexpr int TokenCount = 17; ///< of each sequence of the oracle

/// The small GPT-2 of the oracle, its recording, and its attention tokens.
class OfGpt2 : public testing::Test
{
protected:
  TransformerOracle Oracle{ "gpt2" };
  OracleFile Expected{ "analysis/gpt2.tokens.safetensors" };
  Pipeline Source{ this->Oracle.Path() };
  On<vtkAttentionTokens> Tokens;

  void SetUp() override
  {
    const std::vector<std::int64_t> ids = this->Expected.Integers("input_ids");
    std::string lines;
    for (std::size_t i = 0; i < ids.size(); ++i)
    {
      lines += std::to_string(ids[i]) + ((i + 1) % TokenCount == 0 ? "\n" : " ");
    }
    this->Source.Recorder->SetTokenIds(lines.c_str());
    this->Source.Update();
    this->Tokens->SetInputConnection(0, this->Source.Recorder->GetOutputPort());
    this->Tokens->SetModelConnection(this->Source.Model->GetOutputPort());
    this->Tokens->SetLayer(-1);
  }

  /// A number of the table of tokens in a row.
  std::function<double(const char*)> At(vtkIdType row, int port = 0)
  {
    vtkTable* table = OutputOf<vtkTable>(this->Tokens.Get(), port);
    return [table, row](const char* name) { return table->GetValueByName(row, name).ToDouble(); };
  }

  /// Where the oracle has the vector of a row, without that of the sequence.
  std::size_t Place(vtkIdType row)
  {
    const auto at = this->At(row);
    return static_cast<std::size_t>(
      (at("Layer") * 2 * HeadCount + at("Head")) * TokenCount + at("Position"));
  }

  std::vector<double> Expect(const std::string& name) const
  {
    return this->Expected.Values("tokens.plain." + name);
  }
};

TEST(AttentionTokens, Defaults)
{
  Observed<vtkAttentionTokens> tokens;
  EXPECT_THAT(tokens->GetVectors(), ElementsAre(vtkAttentionTokens::QUERY, vtkAttentionTokens::KEY,
                                      vtkAttentionTokens::VALUE, vtkAttentionTokens::QUERY_KEY));
  tokens->Update();
  EXPECT_EQ(OutputOf<vtkTable>(tokens.Get())->GetNumberOfRows(), 0);
}

/// The largest logit of each vector of the first sequence, by the oracle.
TEST_F(OfGpt2, TableHasARowPerVector)
{
  vtkTable* table = this->Tokens.Table(0);
  constexpr int cells = TokenCount * (TokenCount + 1) / 2;
  ASSERT_EQ(table->GetNumberOfRows(), LayerCount * HeadCount * (3 * TokenCount + cells));
  const std::map<std::string, std::string> names = { { "Query", "q" }, { "Key", "k" },
    { "Value", "v" } };
  const std::vector<std::string> vectors = Texts(table->GetRowData(), "Vector");
  const std::vector<std::string> texts = Texts(table->GetRowData(), "Token");
  int compared = 0;
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    const auto number = this->At(row);
    const std::string& vector = vectors[row];
    EXPECT_EQ(number("Sequence"), 0);
    EXPECT_EQ(number("Rank"), 1);
    EXPECT_EQ(number("Token Index"), number("Position"));
    EXPECT_EQ(texts[row], std::to_string(std::lround(number("TokenId"))));
    if (vector == "QueryKey")
    {
      EXPECT_LE(number("Key Position"), number("Position"));
      continue;
    }
    EXPECT_EQ(number("Key Position"), -1);
    const std::size_t place = 10 * this->Place(row);
    const std::string& name = names.at(vector);
    const std::vector<double> values = this->Expect(name + ".values");
    EXPECT_NEAR(number("Logit"), values[place], 1e-4);
    if (values[place] - values[place + 1] > 1e-4)
    {
      EXPECT_EQ(number("TokenId"), this->Expect(name + ".ids")[place]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST_F(OfGpt2, TopGivesMoreRows)
{
  this->Tokens->ClearVectors();
  this->Tokens->AddVector(vtkAttentionTokens::OUTPUT);
  this->Tokens->SetTop(10);
  this->Tokens->SetLayer(1);
  this->Tokens->SetHead(2);
  this->Tokens->SetSequence(1);
  vtkTable* table = this->Tokens.Table(0);
  ASSERT_EQ(table->GetNumberOfRows(), TokenCount * 10);
  const std::vector<double> values = this->Expect("z.values");
  const std::size_t first = ((1 * 2 + 1) * HeadCount + 2) * TokenCount * 10;
  for (int row = 0; row < TokenCount * 10; ++row)
  {
    const auto number = this->At(row);
    EXPECT_NEAR(number("Logit"), values[first + static_cast<std::size_t>(row)], 1e-4);
    EXPECT_EQ(number("Rank"), row % 10 + 1);
    EXPECT_EQ(number("Token Index"), TokenCount + row / 10);
  }
}

TEST_F(OfGpt2, FrequenciesAndUniqueAreExpected)
{
  this->Tokens->SetSequence(-1);
  vtkTable* table = this->Tokens.Table(2);
  const std::vector<std::string> vectors = Texts(table->GetRowData(), "Vector");
  std::vector<double> counts(8 * 211);
  std::vector<double> positions(counts.size());
  std::vector<double> ranks(counts.size());
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    const auto number = this->At(row, 2);
    if (vectors[row] == "Key")
    {
      const auto place = static_cast<std::size_t>(
        (number("Layer") * HeadCount + number("Head")) * 211 + number("TokenId"));
      counts[place] = number("Count");
      positions[place] = number("Positions");
      ranks[place] = number("Rank");
    }
  }
  EXPECT_EQ(counts, this->Expect("k.count"));
  EXPECT_EQ(positions, this->Expect("k.count_positions"));
  EXPECT_EQ(ranks, this->Expect("k.rank"));

  table = this->Tokens.Table(3);
  const std::vector<std::string> kinds = Texts(table->GetRowData(), "Vector");
  std::vector<double> ofHeads;
  std::vector<double> ofLayers;
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    if (kinds[row] == "QueryKey")
    {
      const auto number = this->At(row, 3);
      (number("Head") == -1 ? ofLayers : ofHeads).push_back(number("Unique"));
    }
  }
  EXPECT_EQ(ofHeads, this->Expect("qk.unique"));
  EXPECT_EQ(ofLayers, this->Expect("qk.unique_layer"));
  EXPECT_THAT(Texts(table->GetFieldData(), "Reading"), ElementsAre("Plain"));
  EXPECT_THAT(Texts(table->GetFieldData(), "Processing"), ElementsAre("TransformerLens"));
}

/// The cells of all heads: tokens by the oracle, weights by what the model's own code recorded.
TEST_F(OfGpt2, CellsShowDiscoveryAndAttention)
{
  vtkPolyData* cells = this->Tokens.Geometry(1);
  vtkCellData* data = cells->GetCellData();
  const std::vector<double> discovery = this->Expect("qk.discovery");
  const auto array = [&](const char* name) { return Values(data, name); };
  const std::vector<double> border = array("Border");
  const std::vector<double> layer = array("Layer");
  const std::vector<double> head = array("Head");
  const std::vector<double> query = array("Query");
  const std::vector<double> key = array("Key");
  const std::vector<double> weight = array("Weight");
  const std::vector<double> found = array("Discovery");
  const std::vector<double> color = array("TokenColor");
  int seen = 0;
  for (std::size_t i = 0; i < border.size(); ++i)
  {
    const double place =
      ((layer[i] * 2 * HeadCount + head[i]) * TokenCount + query[i]) * TokenCount;
    EXPECT_EQ(found[i], discovery[static_cast<std::size_t>(place + key[i])]);
    const auto bounds = BoundsOf(cells, static_cast<vtkIdType>(i));
    const double step = TokenCount + TokenCount / 8.;
    const double x = head[i] * step + key[i];
    const double y = -layer[i] * step - query[i];
    EXPECT_TRUE(bounds[0] >= x - 0.5001 && bounds[1] <= x + 0.5001);
    EXPECT_TRUE(bounds[2] >= y - 0.5001 && bounds[3] <= y + 0.5001);
    if (border[i] == 0)
    {
      ++seen;
      const double side = weight[i] < 0.02 ? 1 : 1 - 0.7 * weight[i];
      EXPECT_NEAR(bounds[1] - bounds[0], side, 1e-5);
    }
    else
    {
      EXPECT_EQ(color[3 * i] + color[3 * i + 1] + color[3 * i + 2], 3 * 255);
    }
  }
  EXPECT_EQ(seen, LayerCount * HeadCount * TokenCount * (TokenCount + 1) / 2);
  // The first token of a row attends to itself alone.
  EXPECT_EQ(weight[0], 1);
}

TEST_F(OfGpt2, LabelsAreTheFourAxesOfOneHead)
{
  EXPECT_THAT(Texts(this->Tokens.Geometry(4)->GetPointData(), "Token"),
    ElementsAre("0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"));
  this->Tokens->SetLayer(0);
  this->Tokens->SetHead(1);
  vtkPolyData* labels = this->Tokens.Geometry(4);
  ASSERT_EQ(labels->GetNumberOfPoints(), 4 * TokenCount);
  const std::vector<std::string> axes = Texts(labels->GetPointData(), "Axis");
  const std::vector<std::string> texts = Texts(labels->GetPointData(), "Token");
  const std::vector<std::int64_t> ids = this->Expected.Integers("input_ids");
  for (std::size_t i = 0; i < TokenCount; ++i)
  {
    EXPECT_EQ(axes[3 * TokenCount + i], "Input");
    EXPECT_EQ(texts[3 * TokenCount + i], std::to_string(ids[i]));
    EXPECT_EQ(axes[i], "Query");
  }
}

TEST_F(OfGpt2, WithoutCellsTheFirstVectorFillsItsRow)
{
  this->Tokens->ClearVectors();
  this->Tokens->AddVector(vtkAttentionTokens::VALUE);
  this->Tokens->SetLayer(0);
  this->Tokens->SetHead(0);
  vtkCellData* data = this->Tokens.Geometry(1)->GetCellData();
  const std::vector<double> query = Values(data, "Query");
  const std::vector<double> id = Values(data, "TokenId");
  std::map<double, double> ofRow;
  for (std::size_t i = 0; i < id.size(); ++i)
  {
    EXPECT_EQ(ofRow.emplace(query[i], id[i]).first->second, id[i]);
  }
}

TEST_F(OfGpt2, SharedTokensAreExpected)
{
  this->Tokens->SetSequence(-1);
  Observed<vtkSharedTokens> shared;
  shared->SetInputConnection(this->Tokens->GetOutputPort(0));
  vtkImageData* image = Updated<vtkImageData>(shared.Get());
  ASSERT_THAT(Values(image->GetPointData(), "Shared Tokens"), SizeIs(64));
  const std::vector<double> expected = this->Expect("qk.shared");
  for (int i = 0; i < 8; ++i)
  {
    for (int j = 0; j < 8; ++j)
    {
      std::array<double, 3> point = { static_cast<double>(j), static_cast<double>(-i), 0 };
      const vtkIdType id = image->FindPoint(point.data());
      EXPECT_EQ(image->GetPointData()->GetScalars()->GetComponent(id, 0), expected[8 * i + j]);
    }
  }
  for (const char* axis : { "Query Token", "Key Token" })
  {
    EXPECT_THAT(Texts(image->GetFieldData(), axis),
      ElementsAre("0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"));
  }
  auto* pairs = OutputOf<vtkTable>(shared.Get(), 1);
  ASSERT_EQ(pairs->GetNumberOfRows(), 28);
  double last = 1e9;
  for (vtkIdType row = 0; row < 28; ++row)
  {
    const double count = pairs->GetValueByName(row, "Shared Tokens").ToDouble();
    EXPECT_LE(count, last);
    last = count;
    const std::string words = pairs->GetValueByName(row, "Tokens").ToString();
    EXPECT_EQ(count, words.empty() ? 0 : std::count(words.begin(), words.end(), ',') + 1);
  }
}

TEST_F(OfGpt2, EmbeddingHasAPointPerHeadAndToken)
{
  Observed<vtkAttentionTokenLayout> embedding;
  embedding->SetInputConnection(0, this->Tokens->GetOutputPort(0));
  embedding->SetModelConnection(this->Source.Model->GetOutputPort());
  embedding->SetVector(vtkAttentionTokens::QUERY_KEY);
  embedding->SetIterations(50);
  vtkPolyData* points = Updated<vtkPolyData>(embedding.Get());
  double unique = 0;
  vtkTable* table = this->Tokens.Table(3);
  const std::vector<std::string> kinds = Texts(table->GetRowData(), "Vector");
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    const auto number = this->At(row, 3);
    unique += number("Head") >= 0 && kinds[row] == "QueryKey" ? number("Unique") : 0;
  }
  EXPECT_EQ(points->GetNumberOfPoints(), unique);
  for (vtkIdType i = 0; i < points->GetNumberOfPoints(); ++i)
  {
    EXPECT_TRUE(std::isfinite(points->GetPoint(i)[0]) && std::isfinite(points->GetPoint(i)[1]));
  }
}

TEST_F(OfGpt2, CancelLeavesNothing)
{
  this->Tokens->AddObserver(
    vtkCommand::ProgressEvent, this->Tokens.Get(), &vtkAttentionTokens::AbortExecuteOn);
  this->Tokens->Update();
  EXPECT_EQ(OutputOf<vtkTable>(this->Tokens.Get())->GetNumberOfRows(), 0);
}

/// The reader's own processing gives values without their biases, and so the same tokens.
TEST_F(OfGpt2, ProcessedModelsHaveTheSameTokens)
{
  this->Source.Model->SetProcessing(vtkTransformerReader::TRANSFORMER_LENS);
  const Recording recording = this->Source.Record();
  EXPECT_EQ(recording.processing, WeightProcessing::Processed);
  vtkTable* table = this->Tokens.Table(0);
  const std::vector<std::string> vectors = Texts(table->GetRowData(), "Vector");
  const std::vector<double> values = this->Expect("v.values");
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    if (vectors[row] == "Value")
    {
      EXPECT_NEAR(this->At(row)("Logit"), values[10 * this->Place(row)], 1e-4);
    }
  }
}

}
