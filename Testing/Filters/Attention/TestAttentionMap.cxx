#include "vtkAttentionMap.h"

#include "Core/FocusOracle.h"
#include "Core/PicturedRecording.h"
#include "Matchers.h"
#include "Recordings.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

class Map : public On<vtkAttentionMap>
{
public:
  using On::On;

  /// The strongest keys, as of the last update.
  vtkPolyData* Frames() { return OutputOf<vtkPolyData>(this->Get(), 1); }

  /// Values by query from 0, then key.
  std::vector<double> ByQuery(const char* quantity)
  {
    vtkImageData* image = this->Image();
    const int tokens = image->GetDimensions()[0];
    vtkDataArray* array = image->GetPointData()->GetArray(quantity);
    std::vector<double> values;
    for (int query = 0; array != nullptr && query < tokens; ++query)
    {
      for (int key = 0; key < tokens; ++key)
      {
        double point[3] = { static_cast<double>(key), static_cast<double>(-query), 0 };
        values.push_back(array->GetComponent(image->FindPoint(point), 0));
      }
    }
    return values;
  }
};

/// How a text begins: 40 characters, with spaces between tokens that have none.
TEST(AttentionMap, SaysHowTheTextBegins)
{
  const auto textOf = [](const Recording& recording, int sequence)
  {
    Map map(DataSetOf(recording));
    map->SetSequence(sequence);
    vtkFieldData* fields = map.Image()->GetFieldData();
    return fields->GetAbstractArray("Sequence Text") != nullptr ? Texts(fields, "Sequence Text")[0]
                                                                : "none";
  };
  Recording recording = SmallRecording();
  EXPECT_EQ(textOf(recording, 0), "a b c");
  EXPECT_EQ(textOf(recording, 1), "d e");
  EXPECT_EQ(textOf(recording, -1), "none");
  recording.tokens.text = { "[CLS]", "two\n", "[SEP]", std::string(39, 'x') + "\u00E9", "y" };
  EXPECT_EQ(textOf(recording, 0), "[CLS] two  [SEP]");
  EXPECT_EQ(textOf(recording, 1), std::string(39, 'x') + "\u00E9\u2026");
  recording.tokens.text[3] = std::string(50, 'x');
  EXPECT_EQ(textOf(recording, 1), std::string(40, 'x') + "\u2026");
  recording.tokens.text.clear();
  EXPECT_EQ(textOf(recording, 0), "none");
}

/// TestRecordedAttention of Core has the values.
TEST(AttentionMap, ShowsEachQuantity)
{
  Recording recording = SmallRecording();
  RecordedLayer& layer = recording.layers[1];
  layer.index = 1; // a rollout needs all layers before it
  layer.scoreCap = 0.2;
  layer.window = 2;
  layer.sinks = { 0.4F, -0.6F };
  Map map(DataSetOf(recording));
  map->SetLayer(1);
  for (int quantity = vtkAttentionMap::WEIGHTS; quantity <= vtkAttentionMap::ROLLOUT; ++quantity)
  {
    map->SetQuantity(quantity);
    for (const int head : { -1, 0, 1 })
    {
      for (const int sequence : { -1, 0, 1 })
      {
        map->SetHead(head);
        map->SetSequence(sequence);
        const char* name = AttentionQuantityNames.at(quantity);
        EXPECT_EQ(map.ByQuery(name),
          AttentionOf(recording, sequence, 1, head, static_cast<AttentionQuantity>(quantity)))
          << name;
      }
    }
  }
  EXPECT_THAT(map.Field("Head"), ElementsAre(1));
}

TEST(AttentionMap, NamesTokensByWhatIsKnownOfThem)
{
  atlas::Recording recording = SmallRecording();
  const auto labels = [&recording]()
  {
    Map map(DataSetOf(recording));
    map->SetSequence(1);
    return map.FieldTexts("Key Token");
  };
  EXPECT_THAT(labels(), ElementsAre("d", " e"));
  recording.tokens.text.clear();
  recording.tokens.id = { 9, 8, 7, 6, 5 };
  EXPECT_THAT(labels(), ElementsAre("6", "5"));
  recording.tokens.id.clear();
  EXPECT_THAT(labels(), ElementsAre("0", "1"));
}

TEST(AttentionMap, IsAnImageOfTheSequence)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetSequence(1);
  vtkImageData* image = map.Image();
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(OriginOf(image), ElementsAre(0, -1, 0));
  EXPECT_THAT(Names(image->GetPointData()), ElementsAre("Weights"));
  for (const char* name : { "Key Token", "Query Token" })
  {
    EXPECT_THAT(Texts(image->GetFieldData(), name), ElementsAre("d", " e"));
  }
  EXPECT_THAT(Values(image->GetFieldData(), "Sequence"), ElementsAre(1));

  map->SetSequence(-1); // means belong to no tokens
  EXPECT_EQ(map.FieldTexts("Query Token").at(2), "2");
  map->SetSequence(0); // of another length
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 9);
}

/// A long sequence: several blocks of queries.
TEST(AttentionMap, IsTheSameInParts)
{
  const Recording recording = LongRecording(150, { 0 }, 1, 8, 0.3);
  Map map(DataSetOf(recording));
  ExpectClose("weights", map.ByQuery("Weights"), AttentionOf(recording, 0, 0, 0), 1e-6);
  Map part(DataSetOf(recording));
  ExpectIsPartOf(part.Part(10, 100, 20, 90), map.Image());
}

/// The strongest keys that an independent program found (Testing/Oracle/focus).
TEST(AttentionMap, FramesTheKeysOfTheOracle)
{
  const FocusOracle oracle("bloom");
  const std::vector<std::int64_t> top = oracle.Integers("focus.top"); // [2, 2, 4, 16]
  const std::vector<double> scores = oracle.Values("breakdown.sorted.score");
  Map map(DataSetOf(oracle.GetRecording()));
  map->SetLayer(1);
  map->SetSequence(1);
  map->SetHead(2);
  const std::size_t head = (2 + 1) * 4 + 2;
  for (const bool ofScores : { false, true })
  {
    map->SetQuantity(ofScores ? vtkAttentionMap::SCORES : vtkAttentionMap::WEIGHTS);
    map->Update();
    vtkPolyData* frames = map.Frames();
    ASSERT_EQ(frames->GetNumberOfLines(), 16);
    const std::vector<double> keys = Values(frames->GetCellData(), "Key");
    const std::vector<double> kinds = Values(frames->GetCellData(), "Kind");
    const std::vector<double> values = Values(frames->GetCellData(), ofScores ? "Score" : "Weight");
    for (std::size_t i = 0; i < 16; ++i)
    {
      const std::int64_t key = top[head * 16 + i];
      EXPECT_EQ(keys[i], key);
      EXPECT_EQ(kinds[i], key == static_cast<std::int64_t>(i) ? 1 : key == 0 ? 2 : 0);
      if (ofScores)
      {
        EXPECT_NEAR(values[i], scores[(head * 16 + i) * 16], 1e-4);
      }
      const auto bounds = BoundsOf(frames, static_cast<vtkIdType>(i));
      EXPECT_EQ(bounds[0], keys[i] - 0.5);
      EXPECT_EQ(bounds[3], 0.5 - static_cast<double>(i));
    }
    EXPECT_EQ(Values(frames->GetCellData(), "Token Index")[3], 19);
  }
}

/// The frames are of all queries, whatever part of the image others asked for before.
TEST(AttentionMap, FramesAllQueriesBesideAPartOfTheImage)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetLayer(2);
  ASSERT_EQ(map.Part(0, 1, 2, 2)->GetNumberOfPoints(), 2);
  map->Update(1);
  EXPECT_THAT(Values(map.Frames()->GetCellData(), "Query"), ElementsAre(0, 1, 2));
  EXPECT_EQ(Values(map.Frames()->GetCellData(), "Key")[0], 0);
}

/// Numbers that a recording should not hold are no strongest ones.
TEST(AttentionMap, FramesNoNan)
{
  Recording recording = SmallRecording();
  recording.layers[1].heads[0].key.Row(0)[0] = std::numeric_limits<float>::quiet_NaN();
  Map map(DataSetOf(recording));
  map->SetLayer(2);
  map->SetQuantity(vtkAttentionMap::SCORES);
  map.Image();
  EXPECT_THAT(Values(map.Frames()->GetCellData(), "Query"), ElementsAre(1, 2));
  EXPECT_GT(Values(map.Frames()->GetCellData(), "Key")[0], 0);
}

/// Of means, the frames are around the largest mean of each row, and belong to no tokens.
TEST(AttentionMap, FramesTheStrongestOfMeans)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetLayer(2);
  map->SetHead(-1);
  map->SetSequence(-1);
  const std::vector<double> weights = map.ByQuery("Weights");
  vtkCellData* arrays = map.Frames()->GetCellData();
  const std::vector<double> keys = Values(arrays, "Key");
  const auto tokens = static_cast<std::ptrdiff_t>(keys.size());
  ASSERT_EQ(weights.size(), keys.size() * keys.size());
  for (std::ptrdiff_t i = 0; i < tokens; ++i)
  {
    const auto row = weights.begin() + i * tokens;
    EXPECT_EQ(keys[i], std::max_element(row, row + tokens) - row);
    EXPECT_EQ(Values(arrays, "Weight")[i], row[static_cast<std::ptrdiff_t>(keys[i])]);
  }
  EXPECT_EQ(arrays->GetArray("Token Index"), nullptr);
}

TEST(AttentionMap, NamesTheLayersWhoseBlocksAreThere)
{
  const auto data = DataSetOf(SmallRecording());
  ASSERT_STREQ(data->GetMetaData(1U)->Get(vtkCompositeDataSet::NAME()), "layer 0");
  data->RemoveBlock(1);
  Map map(data);
  map->SetLayer(0);
  EXPECT_THAT(map.Error(), HasSubstr("layer 0 is not in the recording, which has layers 2"));
  map->SetLayer(2);
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 9);
}

/// The largest weight of queries and keys from the first to before the second.
double LargestWeight(
  const Recording& recording, std::pair<int, int> queries, std::pair<int, int> keys)
{
  const std::int64_t length = recording.SequenceLength(0);
  const std::vector<double> values = AttentionOf(recording, 0, 1, 1);
  double largest = 0;
  for (int i = queries.first; i < queries.second; ++i)
  {
    const auto row = values.begin() + i * length;
    largest = std::max(largest, *std::max_element(row + keys.first, row + keys.second));
  }
  return largest;
}

/// The value at a place of an image.
double At(vtkImageData* image, double x, double y)
{
  double point[3] = { x, y, 0 };
  const vtkIdType id = image->FindPoint(point);
  return id < 0 ? -1 : image->GetPointData()->GetScalars()->GetComponent(id, 0);
}

TEST(AttentionMap, ShowsAWindowAtItsPlace)
{
  const Recording recording = LongRecording(30);
  Map map(DataSetOf(recording));
  map->SetLayer(1);
  map->SetHead(1);
  map->SetQueryWindow(20, 27);
  map->SetKeyWindow(12, 17);
  vtkImageData* image = map.Image();
  ASSERT_THAT(SizeOf(image), ElementsAre(5, 7));
  for (int query = 20; query < 27; ++query)
  {
    for (int key = 12; key < 17; ++key)
    {
      EXPECT_DOUBLE_EQ(
        At(image, key, -query), LargestWeight(recording, { query, query + 1 }, { key, key + 1 }));
    }
  }
  EXPECT_THAT(Texts(image->GetFieldData(), "Key Token"), ElementsAre("12", "13", "14", "15", "16"));
  for (const double key : Values(map.Frames()->GetCellData(), "Key"))
  {
    EXPECT_TRUE(key >= 12 && key < 17) << key;
  }
  map->SetKeyWindow(25, 1000); // what is not there is left out
  EXPECT_EQ(map.Image()->GetDimensions()[0], 5);
}

/// 30 tokens as 8 cells of 4, of which the last has 2; then a window in which each pair has a
/// point.
TEST(AttentionMap, PoolsWhatIsTooLarge)
{
  const Recording recording = LongRecording(30);
  Map map(DataSetOf(recording));
  map->SetLayer(1);
  map->SetHead(1);
  map->SetMaximumSize(29);
  map->SetResolution(8);
  vtkImageData* image = map.Image();
  ASSERT_THAT(SizeOf(image), ElementsAre(8, 8));
  EXPECT_THAT(Values(image->GetFieldData(), "Cell Size"), ElementsAre(4, 4));
  EXPECT_THAT(Texts(image->GetFieldData(), "Query Token"),
    ElementsAre("0", "4", "8", "12", "16", "20", "24", "28"));
  for (int query = 0; query < 30; query += 4)
  {
    for (int key = 0; key < 30; key += 4)
    {
      const double expected = LargestWeight(
        recording, { query, std::min(query + 4, 30) }, { key, std::min(key + 4, 30) });
      EXPECT_NEAR(At(image, key + 1.5, -query - 1.5), expected, 1e-6) << query << ", " << key;
    }
  }
  EXPECT_EQ(map.Frames()->GetNumberOfCells(), 0);
  map->SetQueryWindow(9, 16);
  map->SetKeyWindow(3, 6);
  image = map.Image();
  EXPECT_THAT(Values(image->GetFieldData(), "Cell Size"), ElementsAre(1, 1));
  EXPECT_EQ(image->GetDimensions()[1], 7);
  EXPECT_NEAR(At(image, 5, -9), LargestWeight(recording, { 9, 10 }, { 5, 6 }), 1e-6);
  EXPECT_NEAR(At(image, 3, -15), LargestWeight(recording, { 15, 16 }, { 3, 4 }), 1e-6);
  map->SetPooling(vtkAttentionMap::MEAN);
  map->SetQueryWindow(0, 0);
  map->SetKeyWindow(0, 0);
  map->SetResolution(1); // a row adds up to 1: 30 rows, 900 pairs
  EXPECT_NEAR(map.Points("Weights").at(0), 1. / 30, 1e-6);
}

/// Bands beside the queries and above the keys of pictures, a token wide, half a token away: in the
/// first text tokens 1 to 6 and 8 to 9.
TEST(AttentionMap, MarksWhichTokensArePixels)
{
  Map map(DataSetOf(PicturedRecording()));
  map.Image();
  auto* bands = map.Geometry(2);
  vtkCellData* cells = bands->GetCellData();
  EXPECT_THAT(Values(cells, "Picture"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Values(cells, "Side"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Values(cells, "First Token"), ElementsAre(1, 8, 1, 8));
  EXPECT_THAT(Values(cells, "Last Token"), ElementsAre(6, 9, 6, 9));
  EXPECT_THAT(BoundsOf(bands, 0), ElementsAre(-2, -1, -6.5, -0.5, 0, 0));
  EXPECT_THAT(BoundsOf(bands, 1), ElementsAre(-2, -1, -9.5, -7.5, 0, 0));
  EXPECT_THAT(BoundsOf(bands, 2), ElementsAre(0.5, 6.5, 1, 2, 0, 0));
  EXPECT_THAT(BoundsOf(bands, 3), ElementsAre(7.5, 9.5, 1, 2, 0, 0));
  EXPECT_THAT(Texts(bands->GetFieldData(), "MarkColor Legend"),
    ElementsAre(AllOf(HasSubstr("picture 0\n"), HasSubstr("picture 1"))));
  map->SetSequence(1); // a video: two groups of frames, one after the other
  EXPECT_THAT(map.Cells("First Token", 2), ElementsAre(1, 3, 1, 3));
  map->SetSequence(0);
  map->SetAttentionKind(vtkAttentionMap::ENCODER); // of images alone
  EXPECT_EQ(map.Geometry(2)->GetNumberOfCells(), 0);
  Map words(DataSetOf(SmallRecording()));
  EXPECT_EQ(words.Geometry(2)->GetNumberOfCells(), 0);
}

/// Scores are there for all keys, but the strongest one is in the window of the query.
TEST(AttentionMap, TheStrongestKeyIsInTheWindowOfPatches)
{
  Recording recording = WindowedImages({ { 2, 4 } });
  RecordedHead& head = recording.layers[0].heads[0];
  head.weights.clear();
  head.query = SharedMatrix::Zero(8, 1);
  head.key = SharedMatrix::Zero(8, 1);
  for (std::int64_t i = 0; i < 8; ++i)
  {
    *head.query.Row(i) = 1;
    *head.key.Row(i) = static_cast<float>(i); // the score of each query
  }
  Map map(DataSetOf(recording));
  for (const int quantity : { vtkAttentionMap::WEIGHTS, vtkAttentionMap::SCORES })
  {
    map->SetQuantity(quantity);
    map.Image();
    EXPECT_THAT(Values(map.Frames()->GetCellData(), "Key"), ElementsAre(5, 5, 7, 7, 5, 5, 7, 7));
  }
}

}
