#include "vtkAttentionMatrix.h"

#include "Matchers.h"
#include "MatrixPanels.h"
#include "Recording/PooledAttention.h"
#include "Recordings.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

class Matrix : public On<vtkAttentionMatrix>
{
public:
  using On::On;

  /// The value of an array at column x and row y from the top.
  double At(const char* name, int x, int y)
  {
    vtkImageData* image = this->Image();
    int ijk[3] = { x, image->GetDimensions()[1] - 1 - y, 0 };
    return image->GetPointData()->GetArray(name)->GetComponent(image->ComputePointId(ijk), 0);
  }

  /// The values of each head by query, then key, as the arrays of the points tell.
  std::map<std::pair<int, int>, std::map<std::pair<int, int>, double>> ByHead(const char* name)
  {
    std::map<std::pair<int, int>, std::map<std::pair<int, int>, double>> heads;
    vtkPointData* data = this->Image()->GetPointData();
    const std::vector<double> values = Values(data, name);
    const std::vector<double> layer = Values(data, "Layer");
    const std::vector<double> head = Values(data, "Head");
    const std::vector<double> query = Values(data, "Query");
    const std::vector<double> key = Values(data, "Key");
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      if (!std::isnan(values[i]))
      {
        heads[{ static_cast<int>(layer[i]), static_cast<int>(head[i]) }]
             [{ static_cast<int>(query[i]), static_cast<int>(key[i]) }] = values[i];
      }
    }
    return heads;
  }

  /// Titles with their places, x then y.
  std::map<std::string, std::pair<double, double>> Titles()
  {
    vtkPolyData* data = this->Geometry(1);
    std::map<std::string, std::pair<double, double>> titles;
    vtkIdType i = 0;
    for (const std::string& text : Texts(data->GetPointData(), "Token"))
    {
      titles[text] = { data->GetPoint(i)[0], data->GetPoint(i)[1] };
      ++i;
    }
    return titles;
  }
};

/// A head as EvaluateAttention gives it.
std::map<std::pair<int, int>, double> Expected(const Recording& recording, std::int64_t sequence,
  std::int64_t layer, std::int64_t head, AttentionQuantity quantity)
{
  const auto length = static_cast<int>(AttentionLength(recording, sequence));
  const std::vector<double> values = AttentionOf(recording, sequence, layer, head, quantity);
  std::map<std::pair<int, int>, double> expected;
  for (int i = 0; i < length * length; ++i)
  {
    expected[{ i / length, i % length }] = values[i];
  }
  return expected;
}

TEST(AttentionMatrix, ShowsTheMapsOfAllHeads)
{
  const Recording recording = SmallRecording(); // layers 0 and 2, two heads, 3 + 2 tokens
  Matrix matrix(DataSetOf(recording));
  for (const int quantity : { 0, 1, 2, 3, 4 })
  {
    matrix->SetQuantity(quantity);
    for (const int sequence : { -1, 0, 1 })
    {
      matrix->SetSequence(sequence);
      const auto found = matrix.ByHead(AttentionQuantityNames.at(quantity));
      EXPECT_EQ(found.size(), 4U);
      for (const auto& [place, values] : found)
      {
        EXPECT_EQ(values, Expected(recording, sequence, place.first, place.second,
                            static_cast<AttentionQuantity>(quantity)));
      }
    }
  }
}

TEST(AttentionMatrix, LayersRunDownwardAndHeadsRightward)
{
  Matrix matrix(DataSetOf(SmallRecording()));
  vtkImageData* image = matrix.Image();
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, 6, 0, 6, 0, 0)); // 3 + 1 + 3 points
  EXPECT_THAT(OriginOf(image), ElementsAre(0, -6, 0));
  EXPECT_STREQ(image->GetPointData()->GetScalars()->GetName(), "Weights");
  for (const auto& [x, y, layer, head, query, key] : { std::tuple(0, 0, 0, 0, 0, 0),
         { 1, 2, 0, 0, 2, 1 }, { 5, 0, 0, 1, 0, 1 }, { 0, 4, 2, 0, 0, 0 }, { 6, 6, 2, 1, 2, 2 },
         { 3, 0, -1, -1, -1, -1 }, { 0, 3, -1, -1, -1, -1 } })
  {
    EXPECT_EQ(matrix.At("Layer", x, y), layer);
    EXPECT_EQ(matrix.At("Head", x, y), head);
    EXPECT_EQ(matrix.At("Query", x, y), query);
    EXPECT_EQ(matrix.At("Key", x, y), key);
    EXPECT_EQ(std::isnan(matrix.At("Weights", x, y)), layer < 0);
  }
  EXPECT_THAT(Values(image->GetFieldData(), "Panel Size"), ElementsAre(3));
  EXPECT_THAT(Values(image->GetFieldData(), "Column Step"), ElementsAre(4));
  EXPECT_THAT(Values(image->GetFieldData(), "Row Step"), ElementsAre(4));
  EXPECT_THAT(Values(image->GetFieldData(), "Tokens"), ElementsAre(3));
  const auto titles = matrix.Titles();
  EXPECT_EQ(titles.size(), 4U);
  EXPECT_EQ(titles.at("Head 1").first, 3.5);
  EXPECT_GT(titles.at("Head 1").second, 0.5);
  EXPECT_LT(titles.at("Layer 2").first, -1);
  EXPECT_EQ(titles.at("Layer 2").second, -5.5);
}

TEST(AttentionMatrix, ShowsOneLayer)
{
  Matrix matrix(DataSetOf(SmallRecording()));
  matrix->SetLayer(2);
  EXPECT_EQ(matrix.Image()->GetDimensions()[1], 3);
  const auto found = matrix.ByHead("Weights");
  EXPECT_EQ(found.size(), 2U);
  EXPECT_EQ(found.count({ 2, 1 }), 1U);
}

TEST(AttentionMatrix, PoolsLongSequences)
{
  const Recording recording = LongRecording(130);
  for (const int pooling : { vtkAttentionMatrix::MAXIMUM, vtkAttentionMatrix::MEAN })
  {
    Matrix matrix(DataSetOf(recording));
    matrix->SetPooling(pooling);
    matrix->SetMaximumSize(10);
    std::vector<float> expected(100);
    PoolAttention(recording, 0, AttentionQuantity::Weights, { { 2, 1 } },
      { 10, static_cast<AttentionPooling>(pooling) }, expected.data(), 1);
    const auto found = matrix.ByHead("Weights");
    ASSERT_EQ(found.size(), 6U);
    for (const auto& [place, value] : found.at({ 2, 1 }))
    {
      EXPECT_EQ(place.first % 13, 0); // the first token of a bin
      EXPECT_EQ(value, static_cast<double>(expected[place.first / 13 * 10 + place.second / 13]));
    }
  }
  Matrix matrix(DataSetOf(recording));
  EXPECT_THAT(matrix.Field("Panel Size"), ElementsAre(64));
  matrix->SetMaximumSize(200);
  EXPECT_EQ(matrix.ByHead("Weights").at({ 3, 0 }),
    Expected(recording, 0, 3, 0, AttentionQuantity::Weights));
}

TEST(AttentionMatrix, RolloutHasOnePanelPerLayer)
{
  const Recording recording = LongRecording(5);
  Matrix matrix(DataSetOf(recording));
  matrix->SetQuantity(vtkAttentionMatrix::ROLLOUT);
  EXPECT_EQ(matrix.Image()->GetDimensions()[0], 5);
  const auto found = matrix.ByHead("Rollout");
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(found.at({ 3, -1 }), Expected(recording, 0, 3, -1, AttentionQuantity::Rollout));
  EXPECT_EQ(matrix.Titles().count("Head 0"), 0U);
}

vtkSmartPointer<vtkTable> ScoreTable(const std::vector<std::tuple<int, int, double>>& rows)
{
  std::vector<int> layers;
  std::vector<int> heads;
  std::vector<double> scores;
  for (const auto& [layer, head, score] : rows)
  {
    layers.push_back(layer);
    heads.push_back(head);
    scores.push_back(score);
  }
  auto table = vtkSmartPointer<vtkTable>::New();
  AddArray<vtkIntArray>(table->GetRowData(), "Layer", layers);
  AddArray<vtkIntArray>(table->GetRowData(), "Head", heads);
  AddArray<vtkDoubleArray>(table->GetRowData(), "Induction", scores);
  return table;
}

TEST(AttentionMatrix, SortsTheHeadsOfEachLayer)
{
  Matrix matrix(DataSetOf(SmallRecording()));
  Connect(matrix.Get(), 1, ScoreTable({ { 0, 0, 0.1 }, { 0, 1, 0.2 }, { 2, 0, 0.4 } }));
  matrix.Image();
  EXPECT_EQ(matrix.At("Head", 0, 0), 0); // no column is chosen
  const auto before = matrix.ByHead("Weights");
  matrix->SetSortBy("Induction");
  EXPECT_EQ(matrix.At("Head", 0, 0), 1);
  EXPECT_EQ(matrix.At("Head", 4, 0), 0);
  EXPECT_EQ(matrix.At("Head", 0, 4), 0); // head 1 of layer 2 has no score
  EXPECT_EQ(matrix.At("Head", 4, 4), 1);
  EXPECT_EQ(matrix.ByHead("Weights"), before);
  EXPECT_EQ(matrix.Titles().at("Head 1"), std::pair(3.5, -4 + 1.25)); // of the last row
}

TEST(AttentionMatrix, ScoresThatAreNoNumbersAreLast)
{
  Matrix matrix(DataSetOf(SmallRecording()));
  Connect(matrix.Get(), 1, ScoreTable({ { 0, 0, std::nan("") }, { 0, 1, -5 } }));
  matrix->SetSortBy("Induction");
  EXPECT_EQ(matrix.At("Head", 0, 0), 1);
}

TEST(AttentionMatrix, PartsMakeUpTheWhole)
{
  const Recording recording = LongRecording(20);
  Matrix whole(DataSetOf(recording));
  Matrix part(DataSetOf(recording));
  ExpectIsPartOf(part.Part(15, 30, 3, 50), whole.Image());
}

TEST(AttentionMatrix, FollowsItsInput)
{
  Matrix matrix(DataSetOf(SmallRecording()));
  EXPECT_EQ(matrix.ByHead("Weights").size(), 4U);
  Recording recording = SmallRecording();
  recording.layers[1].scoreScale *= 2;
  const auto before = matrix.ByHead("Weights");
  Connect(matrix.Get(), 0, DataSetOf(recording));
  const auto after = matrix.ByHead("Weights");
  EXPECT_EQ(after.at({ 0, 1 }), before.at({ 0, 1 }));
  EXPECT_NE(after.at({ 2, 1 }), before.at({ 2, 1 }));
}

TEST(AttentionMatrix, ASequenceOfOneTokenHasOnePoint)
{
  Matrix matrix(DataSetOf(LongRecording(1)));
  const auto found = matrix.ByHead("Weights");
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found.at({ 1, 0 }).at({ 0, 0 }), 1);
}

/// Queries 9 to 15 in cells of 2 from 8 on, keys 3 to 5 one by one.
TEST(AttentionMatrix, ShowsAWindowOfAllHeads)
{
  const Recording recording = LongRecording(30);
  Matrix matrix(DataSetOf(recording));
  matrix->SetMaximumSize(4);
  matrix->SetQueryWindow(9, 16);
  matrix->SetKeyWindow(3, 6);
  const auto heads = matrix.ByHead("Weights");
  ASSERT_EQ(heads.size(), 6U);
  for (const auto& [head, values] : heads)
  {
    const auto all = Expected(recording, 0, head.first, head.second, AttentionQuantity::Weights);
    ASSERT_EQ(values.size(), 12U);
    for (const auto& [pair, value] : values)
    {
      EXPECT_EQ(pair.first % 2, 0);
      const double expected = std::max(all.at(pair), all.at({ pair.first + 1, pair.second }));
      EXPECT_NEAR(value, expected, 1e-6);
    }
  }
  EXPECT_THAT(matrix.Field("Panel Height"), ElementsAre(4));
  EXPECT_EQ(matrix.At("Query", 0, 0), 8);
  EXPECT_EQ(matrix.At("Key", 0, 0), 3);
}

/// Of rows and columns, also of a window and of two texts; gaps have none.
TEST(AttentionMatrix, SmallPanelsHaveTheTextsOfTokens)
{
  Matrix matrix(DataSetOf(SmallRecording())); // a, b, c in 2 x 2 panels
  const auto texts = [&](const char* name) { return Texts(matrix.Image()->GetFieldData(), name); };
  const auto hasTexts = [](Matrix& shown)
  {
    vtkFieldData* fields = shown.Image()->GetFieldData();
    EXPECT_EQ(fields->HasArray("Key Token"), fields->HasArray("Query Token"));
    return fields->HasArray("Key Token") != 0;
  };
  EXPECT_THAT(texts("Key Token"), ElementsAre("a", " b", " c", "", "a", " b", " c"));
  EXPECT_THAT(texts("Query Token"), ElementsAre("a", " b", " c", "", "a", " b", " c"));
  const double beside = matrix.Titles().at("Layer 2").first;
  EXPECT_LT(beside, -0.5 - 0.3 - 2 * 0.4 - 2 * 0.72); // a label, and the title of the axis
  matrix->SetQueryWindow(1, 3);
  matrix->SetKeyWindow(2, 3);
  EXPECT_THAT(texts("Key Token"), ElementsAre(" c", "", " c"));
  EXPECT_THAT(texts("Query Token"), ElementsAre(" b", " c", "", " b", " c"));
  matrix->SetMaximumSize(1); // a point stands for two queries
  EXPECT_FALSE(hasTexts(matrix));
  matrix->SetQueryWindow(0, 0);
  matrix->SetKeyWindow(0, 0);
  EXPECT_FALSE(hasTexts(matrix));
  matrix->SetMaximumSize(64);
  matrix->SetSequence(-1);
  EXPECT_FALSE(hasTexts(matrix));
  EXPECT_GT(matrix.Titles().at("Layer 2").first, beside);

  Recording recording = SmallRecording();
  recording.tokens.text.clear();
  Matrix plain(DataSetOf(recording));
  EXPECT_FALSE(hasTexts(plain));
  recording = LongRecording(130); // two heads: 260 columns and gaps
  recording.tokens.text.assign(130, "a");
  Matrix large(DataSetOf(recording));
  large->SetMaximumSize(200);
  EXPECT_FALSE(hasTexts(large));
  large->SetKeyWindow(0, 60);
  large->SetQueryWindow(0, 60);
  EXPECT_EQ(large.FieldTexts("Key Token").size(), 2 * 60U + 3U);
}

}
