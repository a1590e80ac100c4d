#include "vtkHeadEmbedding.h"

#include "Core/EmbeddingOracle.h"
#include "Drawing/ClassPalette.h"
#include "Matchers.h"
#include "Recordings.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr double Tolerance = 1e-6;

/// `sequences` of 10 tokens in 2 layers of 3 heads of dimension 8.
Recording RandomRecording(int sequences, unsigned int seed = 1)
{
  std::mt19937 generator(seed);
  Recording recording;
  recording.layerCount = 2;
  for (int i = 0; i < 10 * sequences; ++i)
  {
    recording.tokens.sequence.push_back(i / 10);
    recording.tokens.position.push_back(i % 10);
    recording.tokens.id.push_back(static_cast<std::int64_t>(generator() % 30));
    recording.tokens.text.push_back("t" + std::to_string(recording.tokens.id.back()));
  }
  for (int s = 0; s <= sequences; ++s)
  {
    recording.sequenceOffsets.push_back(10 * s);
  }
  for (const std::int32_t index : { 0, 1 })
  {
    recording.layers.push_back({ index, 0.35, {} });
    for (int h = 0; h < 3; ++h)
    {
      RecordedHead head;
      head.query = RandomRows(10 * sequences, 8, generator);
      head.key = RandomRows(10 * sequences, 8, generator);
      recording.layers.back().heads.push_back(head);
    }
  }
  return recording;
}

class Embedding : public On<vtkHeadEmbedding>
{
public:
  /// By t-SNE, the method with the most options.
  explicit Embedding(const Recording& recording)
  {
    this->Get()->SetMethod(vtkHeadEmbedding::TSNE);
    this->Take(DataSetOf(recording));
  }

  void Take(vtkDataObject* data) { Connect(this->Get(), 0, data); }

  std::vector<double> Coordinates()
  {
    vtkPoints* points = this->Geometry()->GetPoints();
    std::vector<double> coordinates;
    for (vtkIdType i = 0; points != nullptr && i < points->GetNumberOfPoints(); ++i)
    {
      coordinates.insert(coordinates.end(), points->GetPoint(i), points->GetPoint(i) + 3);
    }
    return coordinates;
  }
};

TEST(HeadEmbedding, HasAPointPerQueryAndKey)
{
  Embedding embedding(SmallRecording()); // layers 0 and 2, two heads, 3 + 2 tokens
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  vtkPolyData* points = embedding.Geometry();
  EXPECT_EQ(points->GetNumberOfPoints(), 2 * 2 * 10);
  EXPECT_EQ(points->GetNumberOfVerts(), 40);
  EXPECT_THAT(Names(points->GetPointData()),
    ElementsAre("Head", "Kind", "Layer", "Norm", "Position", "Relative Position", "Sequence",
      "Token", "Token Count", "Token Index", "TokenColor", "TokenId"));
  EXPECT_EQ(
    points->GetPointData()->GetPedigreeIds(), points->GetPointData()->GetArray("Token Index"));
  const auto first = [&](const char* name)
  {
    const std::vector<double> values = embedding.Points(name);
    return std::vector<double>(values.begin(), values.begin() + 10);
  };
  EXPECT_THAT(first("Kind"), ElementsAre(0, 0, 0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(first("Token Index"), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3, 4));
  EXPECT_THAT(first("Sequence"), ElementsAre(0, 0, 0, 1, 1, 0, 0, 0, 1, 1));
  EXPECT_THAT(first("Position"), ElementsAre(0, 1, 2, 0, 1, 0, 1, 2, 0, 1));
  EXPECT_THAT(first("Relative Position"), ElementsAre(0, 0.5, 1, 0, 1, 0, 0.5, 1, 0, 1));
  EXPECT_THAT(first("TokenId"), ElementsAre(11, 12, 13, 21, 22, 11, 12, 13, 21, 22));
  EXPECT_THAT(first("Token Count"), Each(1));
  EXPECT_EQ(Texts(points->GetPointData(), "Token").at(9), " e");
  for (int i = 0; i < 40; ++i)
  {
    const std::size_t point = i;
    EXPECT_EQ(embedding.Points("Layer")[point], i < 20 ? 0 : 2);
    EXPECT_EQ(embedding.Points("Head")[point], i / 10 % 2);
  }
  EXPECT_THAT(embedding.Column("Layer", 1), ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(embedding.Column("Head", 1), ElementsAre(0, 1, 0, 1));
}

TEST(HeadEmbedding, ColorsKindsWithThePositionAsLightness)
{
  Embedding embedding(SmallRecording());
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  const std::vector<double> colors = embedding.Points("TokenColor");
  const std::vector<double> positions = embedding.Points("Relative Position");
  for (std::size_t i = 0; i < positions.size(); ++i)
  {
    const Rgb full = ClassColor(i % 10 < 5 ? 0 : 1); // of queries, of keys
    const double intensity = 0.25 + 0.75 * positions[i];
    for (std::size_t c = 0; c < 3; ++c)
    {
      EXPECT_NEAR(colors[3 * i + c], 255 - intensity * (255 - full.at(c)), 0.5 + 1e-3) << i;
    }
  }
  EXPECT_THAT(embedding.FieldTexts("TokenColor Legend"),
    ElementsAre(AllOf(HasSubstr(" query, first token\n"), testing::EndsWith(" key, last token"))));
}

TEST(HeadEmbedding, HasSegmentsAndPatchColorsOfTheRecording)
{
  Recording recording = SmallRecording();
  recording.tokens.segment = { 0, 0, 1, 0, 1 };
  std::mt19937 generator(3);
  recording.tokens.color = RandomRows(5, 3, generator);
  Embedding embedding(recording);
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  embedding->SetLayer(0);
  embedding->SetHead(0);
  EXPECT_THAT(embedding.Points("Segment"), ElementsAre(0, 0, 1, 0, 1, 0, 0, 1, 0, 1));
  const std::vector<double> colors = embedding.Points("Patch Color");
  ASSERT_EQ(colors.size(), 30U);
  for (std::size_t i = 0; i < 30; ++i)
  {
    EXPECT_EQ(colors[i], recording.tokens.color.values.get()[i % 15]);
  }
}

TEST(HeadEmbedding, OneHeadIsAtTheOriginOfTheGrid)
{
  Embedding embedding(SmallRecording());
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  embedding->SetLayer(2);
  embedding->SetHead(1);
  const std::vector<double> places = embedding.Coordinates();
  EXPECT_NEAR(*std::min_element(places.begin(), places.end()), 0, 1e-6);
  EXPECT_NEAR(*std::max_element(places.begin(), places.end()), 1, 1e-6);
}

TEST(HeadEmbedding, RangesAreThoseOfTheInput)
{
  const auto range = [](const int* ends) { return std::vector<int>{ ends[0], ends[1] }; };
  vtkNew<vtkHeadEmbedding> alone;
  EXPECT_THAT(range(alone->GetLayerRange()), ElementsAre(-1, 0));
  Embedding embedding(SmallRecording());
  EXPECT_THAT(range(embedding->GetSequenceRange()), ElementsAre(-1, 1));
  EXPECT_THAT(range(embedding->GetLayerRange()), ElementsAre(-1, 2));
  EXPECT_THAT(range(embedding->GetHeadRange()), ElementsAre(-1, 1));
}

TEST(HeadEmbedding, ChoosesHeadsAndTokens)
{
  Embedding embedding(SmallRecording());
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  embedding->SetLayer(2);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 20);
  EXPECT_THAT(embedding.Points("Layer"), Each(2));
  embedding->SetHead(1);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 10);
  EXPECT_THAT(embedding.Points("Head"), Each(1));
  embedding->SetLayer(-1);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 20);
  EXPECT_THAT(embedding.Column("Layer", 1), ElementsAre(0, 2));
  embedding->SetSequence(1);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 8);
  EXPECT_THAT(embedding.Points("Sequence"), Each(1));
  embedding->SetSequence(-1);
  embedding->SetSample(3);
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 12);
}

TEST(HeadEmbedding, CountsTokensOfTheWholeRecording)
{
  Recording recording = SmallRecording();
  recording.tokens.id = { 7, 8, 7, 7, 9 };
  Embedding embedding(recording);
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  embedding->SetSequence(1);
  embedding->SetLayer(0);
  embedding->SetHead(0);
  EXPECT_THAT(embedding.Points("Token Count"), ElementsAre(3, 1, 3, 1));
}

/// Principal components and correlations of another program.
TEST(HeadEmbedding, IsThatOfTheOracle)
{
  for (const char* name : { "gpt2", "bert", "vit" })
  {
    const EmbeddingOracle oracle(name);
    Embedding embedding(oracle.MakeRecording());
    embedding->SetMethod(vtkHeadEmbedding::PCA);
    embedding->SetDimensions(3);
    embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
    embedding->SetKeyScaling(vtkHeadEmbedding::SCALING_NONE);
    std::vector<double> scores;
    std::vector<double> norms;
    std::vector<double> scales;
    std::vector<double> correlations;
    std::vector<double> ranks;
    for (std::int64_t head = 0; head < 8; ++head)
    {
      const std::string prefix = oracle.Prefix(head / 4, head % 4);
      const auto append = [&](const std::string& quantity, std::vector<double>& values)
      {
        const std::vector<double> found = oracle.Values(prefix + quantity);
        values.insert(values.end(), found.begin(), found.end());
      };
      append("pca.scores", scores);
      append("norm", norms);
      append("spearman.cosine.mean", ranks);
      const auto best = oracle.Values(prefix + "corr.dot_translated.distance.best");
      scales.push_back(best[0]);
      correlations.push_back(best[1]);
    }
    ExpectClose("points", embedding.Coordinates(), scores, Tolerance);
    ExpectClose("norms", embedding.Points("Norm"), norms, Tolerance);
    embedding->SetKeyScaling(vtkHeadEmbedding::OPTIMIZED);
    ExpectClose("scales", embedding.Column("Key Scale", 1), scales, Tolerance);
    ExpectClose("correlations", embedding.Column("Correlation", 1), correlations, Tolerance);
    ExpectClose("ranks", embedding.Column("Rank Correlation", 1), ranks, Tolerance);
    embedding->SetKeyScaling(vtkHeadEmbedding::NORMS);
    EXPECT_NEAR(embedding.Column("Key Scale", 1)[5],
      oracle.Value(oracle.Prefix(1, 1) + "norm_scale"), Tolerance);
  }
}

TEST(HeadEmbedding, OfImagesHasPlacesOfPatches)
{
  Recording recording = EmbeddingOracle("vit").MakeRecording();
  recording.tokens.row.assign(34, 1);
  recording.tokens.column.assign(34, 2);
  recording.tokens.row[0] = recording.tokens.column[0] = -1;
  Embedding embedding(recording);
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  vtkDataSetAttributes* data = embedding.Geometry()->GetPointData();
  EXPECT_FALSE(data->HasArray("TokenId"));
  EXPECT_FALSE(data->HasArray("Token Count"));
  EXPECT_EQ(embedding.Points("Row")[0], -1);
  EXPECT_EQ(embedding.Points("Column")[1], 2);
  EXPECT_EQ(Texts(data, "Token").at(0), "class token");
  EXPECT_EQ(Texts(data, "Token").at(1), "1, 2");
}

TEST(HeadEmbedding, ArrangesHeadsInAGrid)
{
  Embedding embedding(RandomRecording(2));
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  for (const int dimensions : { 2, 3 })
  {
    embedding->SetDimensions(dimensions);
    const std::vector<double> found = embedding.Coordinates();
    for (std::size_t head = 0; head < 6; ++head)
    {
      const double corner[3] = { 1.2 * static_cast<double>(head % 3), head < 3 ? 0 : -1.2, 0 };
      for (std::size_t axis = 0; axis < 3; ++axis)
      {
        std::vector<double> values;
        for (std::size_t i = 40 * head; i < 40 * (head + 1); ++i)
        {
          values.push_back(found[3 * i + axis]);
        }
        const auto [least, largest] = std::minmax_element(values.begin(), values.end());
        const bool isFlat = axis == 2 && dimensions == 2;
        EXPECT_NEAR(*least, corner[axis], Tolerance);
        EXPECT_NEAR(*largest, corner[axis] + (isFlat ? 0 : 1), Tolerance);
      }
    }
  }
}

TEST(HeadEmbedding, ShowsHowTrueALayoutIs)
{
  Embedding embedding(RandomRecording(20));
  embedding->SetPerplexity(20);
  EXPECT_THAT(embedding.Column("KL Divergence", 1), Each(AllOf(testing::Gt(0), testing::Lt(4))));
  EXPECT_THAT(embedding.Column("Iterations", 1), Each(750));
  EXPECT_THAT(embedding.Column("Neighbors Kept", 1), Each(AllOf(testing::Gt(0.1), testing::Le(1))));
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  EXPECT_THAT(
    embedding.Column("Variance Explained", 1), Each(AllOf(testing::Gt(0.2), testing::Lt(1))));
  vtkTable* table = OutputOf<vtkTable>(embedding.Get(), 1);
  EXPECT_EQ(table->GetColumnByName("KL Divergence"), nullptr);
}

/// A layout that started from another differs from one that did not: it is a mark that nothing was
/// computed again.
TEST(HeadEmbedding, ComputesOnlyWhatChanged)
{
  Embedding embedding(RandomRecording(6));
  embedding->SetPerplexity(10);
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  const std::vector<double> before = embedding.Coordinates();
  EXPECT_THAT(embedding.Column("Iterations", 1), Each(750));
  embedding->SetPerplexity(12);
  const std::vector<double> started = embedding.Coordinates();
  EXPECT_THAT(embedding.Column("Iterations", 1), Each(250));
  EXPECT_NE(started, before);

  embedding->SetArrangement(vtkHeadEmbedding::GRID);
  embedding.Geometry();
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  EXPECT_EQ(embedding.Coordinates(), started);
  embedding->SetLayer(1);
  embedding->SetHead(0);
  const auto second = started.begin() + 3 * 3 * 120;
  EXPECT_THAT(embedding.Coordinates(), ElementsAreArray(second, second + 3 * 120));
  EXPECT_THAT(embedding.Column("Iterations", 1), ElementsAre(250));

  embedding->SetLayer(-1);
  embedding->SetHead(-1);
  const std::vector<double> scales = embedding.Column("Key Scale", 1);
  embedding->SetKeyScaling(vtkHeadEmbedding::FIXED);
  embedding->SetKeyScale(3);
  EXPECT_EQ(embedding.Coordinates(), started); // the cosine does not change
  EXPECT_THAT(embedding.Column("Key Scale", 1), Each(3));
  embedding->SetKeyScaling(vtkHeadEmbedding::OPTIMIZED);
  EXPECT_EQ(embedding.Column("Key Scale", 1), scales);
  embedding->SetPerplexity(10);
  EXPECT_EQ(embedding.Coordinates(), before); // still known

  embedding->SetSeed(1);
  EXPECT_THAT(embedding.Column("Iterations", 1), Each(750));
}

/// How far points moved, in units of the extent of the layout.
double Moved(const std::vector<double>& from, const std::vector<double>& to)
{
  double sum = 0;
  for (std::size_t i = 0; i < from.size(); ++i)
  {
    sum += std::abs(from[i] - to[i]);
  }
  const auto [least, largest] = std::minmax_element(from.begin(), from.end());
  return sum / static_cast<double>(from.size()) / (*largest - *least);
}

TEST(HeadEmbedding, StaysAlignedFromStepToStep)
{
  const auto at = [](Recording recording, double time)
  {
    for (RecordedLayer& layer : recording.layers)
    {
      for (RecordedHead& head : layer.heads)
      {
        for (std::size_t i = 0; i < head.query.Count(); ++i)
        {
          head.query.values.get()[i] +=
            static_cast<float>(0.01 * time * std::sin(7. * static_cast<double>(i)));
        }
      }
    }
    const auto data = DataSetOf(recording);
    data->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), time);
    return data;
  };
  Embedding embedding(RandomRecording(6));
  embedding->SetPerplexity(10);
  embedding->SetLayer(0);
  embedding->SetHead(0);
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  embedding.Take(at(RandomRecording(6), 0));
  const std::vector<double> first = embedding.Coordinates();
  embedding.Take(at(RandomRecording(6), 1));
  const std::vector<double> second = embedding.Coordinates();
  EXPECT_THAT(embedding.Column("Iterations", 1), ElementsAre(250));
  EXPECT_LT(Moved(first, second), 0.05);
  embedding.Take(at(RandomRecording(6), 0));
  EXPECT_EQ(embedding.Coordinates(), first);
  // Another recording of the same time is not another step.
  embedding.Take(at(RandomRecording(6, 2), 0));
  EXPECT_THAT(embedding.Column("Iterations", 1), ElementsAre(750));
}

TEST(HeadEmbedding, ShowsIterationsAsTime)
{
  Embedding embedding(RandomRecording(6));
  embedding->SetPerplexity(10);
  embedding->SetIterations(25);
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  const std::vector<double> last = embedding.Coordinates();
  embedding->SetIterationsAsTime(true);
  EXPECT_THAT(TimesOf(embedding.Get()), ElementsAre(0, 10, 20, 25));
  embedding->UpdateTimeStep(0);
  const auto extent = [&]()
  {
    double bounds[6];
    OutputOf<vtkPolyData>(embedding.Get())->GetBounds(bounds);
    return bounds[1] - bounds[0];
  };
  EXPECT_LT(extent(), 0.01); // the start
  embedding->UpdateTimeStep(25);
  EXPECT_EQ(embedding->GetOutput(0)->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP()), 25);
  EXPECT_EQ(embedding.Coordinates(), last);
}

TEST(HeadEmbedding, HasThePublishedSettings)
{
  Embedding embedding(RandomRecording(20));
  embedding->SetPreset(vtkHeadEmbedding::ATTENTION_VIZ);
  embedding->SetPerplexity(1e6); // not used
  EXPECT_THAT(embedding.Column("Iterations", 1), Each(300));
  EXPECT_THAT(embedding.Column("Key Scale", 1), Each(1));
}

TEST(HeadEmbedding, KeepsTheLayoutReachedWhenCancelled)
{
  Embedding embedding(RandomRecording(60));
  embedding->SetLayer(0);
  embedding->SetHead(0);
  embedding->SetIterations(100000);
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  std::string text;
  const Reports canceler(embedding.Get(),
    [&]
    {
      if (embedding->GetProgress() > 0.001 && embedding->GetProgressText() != nullptr)
      {
        text = embedding->GetProgressText();
        embedding->SetAbortExecute(1);
      }
    });
  const std::vector<double> reached = embedding.Coordinates();
  EXPECT_EQ(reached.size(), 3 * 1200);
  EXPECT_THAT(
    text, testing::MatchesRegex("0 of 1 heads, KL divergence [0-9]+\\.[0-9]+(, about .+ left)?"));
  const double iterations = embedding.Column("Iterations", 1).front();
  EXPECT_GT(iterations, 0);
  EXPECT_LT(iterations, 100000);
  embedding->SetArrangement(vtkHeadEmbedding::GRID);
  embedding.Geometry();
  embedding->SetArrangement(vtkHeadEmbedding::OVERLAID);
  EXPECT_EQ(embedding.Coordinates(), reached);
}

TEST(HeadEmbedding, NamesBadNumbers)
{
  Recording recording = RandomRecording(2);
  recording.layers[1].heads[2].query.Row(7)[0] = std::numeric_limits<float>::quiet_NaN();
  Embedding embedding(recording);
  embedding->SetMethod(vtkHeadEmbedding::PCA);
  EXPECT_THAT(
    embedding.Error(), HasSubstr("layer 1, head 2, queries of token 7: expected finite numbers"));

  recording = RandomRecording(2);
  recording.layers[0].heads[1].query = SharedMatrix::Zero(20, 8);
  embedding.Take(DataSetOf(recording));
  embedding->SetHead(1);
  embedding->SetLayer(0);
  EXPECT_THAT(
    embedding.Error(), HasSubstr("layer 0, head 1, queries: expected at least two that differ"));
  embedding->SetHead(-1); // the others are shown, with a warning
  const int warnings = vtkObject::GetGlobalWarningDisplay();
  vtkObject::GlobalWarningDisplayOff();
  EXPECT_EQ(embedding.Geometry()->GetNumberOfPoints(), 2 * 40);
  vtkObject::SetGlobalWarningDisplay(warnings);
  EXPECT_THAT(embedding.Column("Head", 1), ElementsAre(0, 2));
}

}
