#include "vtkAttentionMap.h"

#include "Core/FocusOracle.h"
#include "Core/Oracle.h"
#include "RecordedAttention.h"
#include "Recordings.h"
#include "vtkRecordingReader.h"

#include <vtkCellData.h>
#include <vtkCompositeDataSet.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class Map : public Observed<vtkAttentionMap>
{
public:
  explicit Map(vtkDataObject* recording) { Connect(this->Get(), 0, recording); }
  Map() = default;

  vtkImageData* Image() { return Updated<vtkImageData>(this->Get()); }

  /// The strongest keys, as of the last update.
  vtkPolyData* Frames() { return vtkPolyData::SafeDownCast(this->Get()->GetOutputDataObject(1)); }

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

/// A quantity of layer 2, sequence 0 of the small recording, by its formula in double.
std::vector<double> Expected(int head, bool content, bool bias)
{
  const Recording recording = SmallRecording();
  const RecordedLayer& layer = recording.layers[1];
  const RecordedHead& recorded = layer.heads[head];
  std::vector<double> values;
  for (std::int64_t query = 0; query < 3; ++query)
  {
    for (std::int64_t key = 0; key < 3; ++key)
    {
      double product = 0;
      for (int c = 0; c < 4; ++c)
      {
        product += static_cast<double>(recorded.query.Row(query)[c]) *
                   static_cast<double>(recorded.key.Row(key)[c]);
      }
      const double slope = recording.alibiSlopes[head];
      values.push_back(
        (content ? layer.scoreScale * product : 0) + (bias ? slope * static_cast<double>(key) : 0));
    }
  }
  return values;
}

TEST(AttentionMap, ShowsEachQuantity)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetLayer(2);
  for (const int head : { 0, 1 })
  {
    map->SetHead(head);
    map->SetQuantity(vtkAttentionMap::CONTENT);
    ExpectClose("content", map.ByQuery("Content"), Expected(head, true, false), 1e-6);
    map->SetQuantity(vtkAttentionMap::BIAS);
    ExpectClose("bias", map.ByQuery("Bias"), Expected(head, false, true), 1e-6);
    map->SetQuantity(vtkAttentionMap::SCORES);
    const std::vector<double> scores = Expected(head, true, true);
    ExpectClose("scores", map.ByQuery("Scores"), scores, 1e-6);
    map->SetQuantity(vtkAttentionMap::WEIGHTS);
    const double sum1 = std::exp(scores[3]) + std::exp(scores[4]);
    const double sum2 = std::exp(scores[6]) + std::exp(scores[7]) + std::exp(scores[8]);
    ExpectClose("weights", map.ByQuery("Weights"),
      { 1, 0, 0, std::exp(scores[3]) / sum1, std::exp(scores[4]) / sum1, 0,
        std::exp(scores[6]) / sum2, std::exp(scores[7]) / sum2, std::exp(scores[8]) / sum2 },
      1e-6);
  }
}

/// What the layer says of its scores and of the softmax reaches the map.
TEST(AttentionMap, ShowsCapsWindowsAndSinks)
{
  Recording recording = SmallRecording();
  const double cap = 0.2;
  recording.layers[1].scoreCap = cap;
  recording.layers[1].window = 2;
  recording.layers[1].sinks = { 0.4F, -0.6F };
  Map map(DataSetOf(recording));
  map->SetLayer(2);
  for (const int head : { 0, 1 })
  {
    map->SetHead(head);
    std::vector<double> scores = Expected(head, true, false);
    const std::vector<double> bias = Expected(head, false, true);
    for (std::size_t i = 0; i < scores.size(); ++i)
    {
      scores[i] = cap * std::tanh(scores[i] / cap) + bias[i];
    }
    map->SetQuantity(vtkAttentionMap::SCORES);
    ExpectClose("scores", map.ByQuery("Scores"), scores, 1e-6);
    map->SetQuantity(vtkAttentionMap::WEIGHTS);
    const double sink = std::exp(static_cast<double>(recording.layers[1].sinks[head]));
    const double sum0 = sink + std::exp(scores[0]);
    const double sum1 = sink + std::exp(scores[3]) + std::exp(scores[4]);
    const double sum2 = sink + std::exp(scores[7]) + std::exp(scores[8]);
    ExpectClose("weights", map.ByQuery("Weights"),
      { std::exp(scores[0]) / sum0, 0, 0, std::exp(scores[3]) / sum1, std::exp(scores[4]) / sum1, 0,
        0, std::exp(scores[7]) / sum2, std::exp(scores[8]) / sum2 },
      1e-6);
  }
}

TEST(AttentionMap, ShowsMeansOverHeads)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetLayer(2);
  map->SetHead(-1);
  map->SetQuantity(vtkAttentionMap::SCORES);
  std::vector<double> mean = Expected(0, true, true);
  const std::vector<double> other = Expected(1, true, true);
  for (std::size_t i = 0; i < mean.size(); ++i)
  {
    mean[i] = (mean[i] + other[i]) / 2;
  }
  ExpectClose("scores", map.ByQuery("Scores"), mean, 1e-6);
  EXPECT_THAT(Values(map.Image()->GetFieldData(), "Head"), ElementsAre(-1));
}

/// Sequences of 3 and 2 tokens: the third row is that of the first sequence alone.
TEST(AttentionMap, ShowsMeansOverSequences)
{
  Map map(DataSetOf(SmallRecording()));
  const std::vector<double> first = map.ByQuery("Weights");
  map->SetSequence(1);
  const std::vector<double> second = map.ByQuery("Weights");
  map->SetSequence(-1);
  ExpectClose("weights", map.ByQuery("Weights"),
    { 1, 0, 0, (first[3] + second[2]) / 2, (first[4] + second[3]) / 2, 0, first[6], first[7],
      first[8] },
    1e-6);
  const std::vector<std::string> tokens = Texts(map.Image()->GetFieldData(), "Query Token");
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_EQ(tokens[2], "2");
}

TEST(AttentionMap, WeighsByTheNormsOfValues)
{
  Recording recording = SmallRecording();
  Map map(DataSetOf(recording));
  map->SetLayer(2);
  map->SetHead(1);
  std::vector<double> expected = map.ByQuery("Weights");
  const float* norms = recording.layers[1].heads[1].valueNorm.Row(0);
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    expected[i] *= static_cast<double>(norms[i % 3]);
  }
  map->SetQuantity(vtkAttentionMap::NORM_WEIGHTED);
  ExpectClose("norm-weighted", map.ByQuery("NormWeighted"), expected, 1e-6);

  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.valueNorm = {};
    }
  }
  Map without(DataSetOf(recording));
  without->SetLayer(2);
  without->SetQuantity(vtkAttentionMap::NORM_WEIGHTED);
  EXPECT_EQ(without.Image()->GetNumberOfPoints(), 0);
  EXPECT_THAT(without.TakeErrors(), ElementsAre(HasSubstr("the recording has no value norms")));
}

TEST(AttentionMap, RollsLayersOut)
{
  Recording recording = SmallRecording();
  recording.layers[1].index = 1;
  Map map(DataSetOf(recording));
  map->SetHead(-1);
  const std::vector<double> first = map.ByQuery("Weights");
  map->SetLayer(1);
  const std::vector<double> second = map.ByQuery("Weights");
  std::vector<double> expected(9);
  for (std::size_t i = 0; i < 3; ++i)
  {
    for (std::size_t j = 0; j < 3; ++j)
    {
      for (std::size_t k = 0; k < 3; ++k)
      {
        expected[3 * i + j] +=
          (second[3 * i + k] + (i == k ? 1 : 0)) / 2 * (first[3 * k + j] + (k == j ? 1 : 0)) / 2;
      }
    }
  }
  map->SetQuantity(vtkAttentionMap::ROLLOUT);
  for (const int head : { -1, 0, 1 })
  {
    map->SetHead(head);
    ExpectClose("rollout", map.ByQuery("Rollout"), expected, 1e-6);
  }

  Map gap(DataSetOf(SmallRecording()));
  gap->SetLayer(2);
  gap->SetQuantity(vtkAttentionMap::ROLLOUT);
  EXPECT_EQ(gap.Image()->GetNumberOfPoints(), 0);
  EXPECT_THAT(gap.TakeErrors(), ElementsAre(HasSubstr("layer 1 is not in the recording")));
}

TEST(AttentionMap, NamesTokensByWhatIsKnownOfThem)
{
  atlas::Recording recording = SmallRecording();
  const auto labels = [&recording]()
  {
    Map map(DataSetOf(recording));
    map->SetSequence(1);
    return Texts(map.Image()->GetFieldData(), "Key Token");
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
  EXPECT_THAT(
    std::vector<int>(image->GetExtent(), image->GetExtent() + 6), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(
    std::vector<double>(image->GetOrigin(), image->GetOrigin() + 3), ElementsAre(0, -1, 0));
  EXPECT_THAT(Names(image->GetPointData()), ElementsAre("Weights"));
  for (const char* name : { "Key Token", "Query Token" })
  {
    EXPECT_THAT(Texts(image->GetFieldData(), name), ElementsAre("d", " e"));
  }
  EXPECT_THAT(Values(image->GetFieldData(), "Sequence"), ElementsAre(1));

  map->SetSequence(0); // of another length
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 9);
}

/// A long sequence: several blocks of queries.
TEST(AttentionMap, IsTheSameInParts)
{
  constexpr int tokens = 150;
  const Recording recording = LongRecording(tokens, { 0 }, 1, 8, 0.3);
  std::vector<float> expected(tokens * tokens);
  EvaluateAttention(recording, 0, 0, 0, AttentionQuantity::Weights, 0, tokens, expected.data());

  Map map(DataSetOf(recording));
  const std::vector<double> whole = map.ByQuery("Weights");
  ExpectClose("weights", whole, std::vector<double>(expected.begin(), expected.end()), 1e-6);

  Map part(DataSetOf(recording));
  const int extent[6] = { 10, 100, 20, 90, 0, 0 };
  part->UpdateInformation();
  part->UpdateExtent(extent);
  vtkImageData* image = OutputOf<vtkImageData>(part.Get());
  EXPECT_THAT(std::vector<int>(image->GetExtent(), image->GetExtent() + 6),
    ElementsAre(10, 100, 20, 90, 0, 0));
  vtkDataArray* values = image->GetPointData()->GetArray("Weights");
  for (int y = 20; y <= 90; ++y)
  {
    for (int x = 10; x <= 100; ++x)
    {
      const int ijk[3] = { x, y, 0 };
      const std::size_t query = tokens - 1 - y;
      EXPECT_EQ(values->GetComponent(image->ComputePointId(const_cast<int*>(ijk)), 0),
        whole[query * tokens + static_cast<std::size_t>(x)]);
    }
  }
}

TEST(AttentionMap, ShowsWhatIsStored)
{
  for (const char* name : { "prompt0", "prompt1", "prompt2" })
  {
    const auto path =
      std::filesystem::path(ATLAS_ORACLE_DIR) / "gpt2" / (std::string(name) + ".safetensors");
    const SafetensorsFile file(path);
    Observed<vtkRecordingReader> reader;
    reader->SetFileName(path.c_str());
    Map map;
    map->SetInputConnection(reader->GetOutputPort());
    for (const int layer : { 0, 5, 11 })
    {
      const int head = (7 * layer) % 12;
      map->SetLayer(layer);
      map->SetHead(head);
      map->SetQuantity(vtkAttentionMap::WEIGHTS);
      const std::vector<double> weights = map.ByQuery("Weights");
      map->SetQuantity(vtkAttentionMap::SCORES);
      const std::vector<double> scores = map.ByQuery("Scores");
      const std::vector<double> all = file.GetTensors().at("attention").ToDouble();
      const std::size_t size = weights.size();
      const auto begin = all.begin() + (layer * 12 + head) * static_cast<long>(size);
      EXPECT_EQ(weights, std::vector<double>(begin, begin + static_cast<long>(size)));
      const auto tokens = static_cast<std::size_t>(std::lround(std::sqrt(size)));
      std::vector<double> softmax(size);
      for (std::size_t query = 0; query < tokens; ++query)
      {
        double sum = 0;
        for (std::size_t key = 0; key <= query; ++key)
        {
          softmax[query * tokens + key] = std::exp(scores[query * tokens + key]);
          sum += softmax[query * tokens + key];
        }
        for (std::size_t key = 0; key <= query; ++key)
        {
          softmax[query * tokens + key] /= sum;
        }
      }
      ExpectClose("softmax of scores", weights, softmax, 1e-4);
    }
  }
}

TEST(AttentionMap, IsEmptyWithoutRecording)
{
  Map map(vtkSmartPointer<vtkMultiBlockDataSet>::New());
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 0);
}

TEST(AttentionMap, CanBeCancelled)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetLayer(2);
  map->SetAbortExecute(1);
  EXPECT_EQ(map.Image()->GetPointData()->GetNumberOfArrays(), 0);
  EXPECT_EQ(map.Image()->GetPointData()->GetNumberOfArrays(), 1);
}

TEST(AttentionMap, NamesTheRangeOfItsNumbers)
{
  Map map(DataSetOf(SmallRecording()));
  map->SetSequence(2);
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 0);
  EXPECT_THAT(map.TakeErrors(), ElementsAre(HasSubstr("expected a sequence from 0 to 1, found 2")));
  map->SetSequence(0);
  map->SetLayer(1);
  map.Image();
  EXPECT_THAT(map.TakeErrors(),
    ElementsAre(HasSubstr("layer 1 is not in the recording, which has layers 0 2")));
  map->SetLayer(2);
  map->SetHead(-2);
  map.Image();
  EXPECT_THAT(map.TakeErrors(), ElementsAre(HasSubstr("expected a head from 0 to 1, found -2")));
  map->SetHead(1);
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 9);
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
      double bounds[6];
      frames->GetCellBounds(static_cast<vtkIdType>(i), bounds);
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
  map->UpdateInformation();
  const int part[6] = { 0, 1, 2, 2, 0, 0 };
  map->UpdateExtent(part);
  ASSERT_EQ(OutputOf<vtkImageData>(map.Get())->GetNumberOfPoints(), 2);
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
  map.Image();
  EXPECT_THAT(map.TakeErrors(),
    ElementsAre(HasSubstr("layer 0 is not in the recording, which has layers 2")));
  map->SetLayer(2);
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 9);
}

TEST(AttentionMap, RefusesOtherData)
{
  const auto data = DataSetOf(SmallRecording());
  data->GetFieldData()->RemoveArray("Format");
  Map map(data);
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 0);
  EXPECT_THAT(map.TakeErrors(), ElementsAre(HasSubstr("expected the field array 'Format'")));
}

TEST(AttentionMap, TellsOneErrorOfABadFile)
{
  Observed<vtkRecordingReader> reader;
  reader->SetFileName("/no such file.npy");
  Map map;
  map->SetInputConnection(reader->GetOutputPort());
  EXPECT_EQ(map.Image()->GetNumberOfPoints(), 0);
  EXPECT_THAT(reader.TakeErrors(), ElementsAre(HasSubstr("cannot open file")));
}

}
