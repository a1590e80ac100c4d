#include "vtkAttentionLines.h"

#include "Embeddings.h"
#include "Matchers.h"

#include <vtkSMPTools.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// Layer, head, query and key.
using Link = std::tuple<int, int, std::int64_t, std::int64_t>;

class Lines : public On<vtkAttentionLines>
{
public:
  Lines(vtkDataObject* embedding, const Recording& recording)
    : On(embedding)
  {
    Connect(this->Get(), 1, DataSetOf(recording));
  }

  std::vector<Link> Links()
  {
    vtkPolyData* data = this->Geometry();
    std::vector<Link> links;
    const auto value = [data](const char* name, vtkIdType i)
    { return static_cast<std::int64_t>(data->GetCellData()->GetArray(name)->GetComponent(i, 0)); };
    for (vtkIdType i = 0; i < data->GetNumberOfCells(); ++i)
    {
      links.emplace_back(value("Layer", i), value("Head", i), value("Query", i), value("Key", i));
    }
    return links;
  }
};

/// The lines of the oracle that are drawn, from a weight of 0.05 on.
void ExpectOracle(const ViewsOracle& oracle, Lines& lines)
{
  const std::vector<Link> found = lines.Links();
  const std::vector<double> weights = lines.Cells("Weight");
  std::vector<Link> expected;
  std::vector<double> expectedWeights;
  for (const RecordedLayer& layer : oracle.Source.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      for (std::int64_t s = 0; s < oracle.Source.SequenceCount(); ++s)
      {
        const std::string name = "layer." + std::to_string(layer.index) + ".head." +
                                 std::to_string(h) + ".sequence." + std::to_string(s) + ".";
        const std::int64_t first = oracle.Source.sequenceOffsets[s];
        const std::vector<double> keys = oracle.Values(name + "top2_key");
        const std::vector<double> drawn = oracle.Values(name + "top2_drawn");
        const std::vector<double> top = oracle.Values(name + "top2_weight");
        for (std::size_t i = 0; i < keys.size(); ++i)
        {
          if (drawn[i] != 0)
          {
            expected.emplace_back(layer.index, static_cast<int>(h),
              first + static_cast<std::int64_t>(i / 2), first + static_cast<std::int64_t>(keys[i]));
            expectedWeights.push_back(top[i]);
          }
        }
      }
    }
  }
  EXPECT_GT(expected.size(), 100U);
  EXPECT_EQ(found, expected);
  ExpectClose("weights", weights, expectedWeights, 2e-6);
}

TEST(AttentionLines, AreThoseOfTheOriginalModels)
{
  for (const char* name : { "gpt2", "bert", "vit" })
  {
    const ViewsOracle oracle(name);
    Lines lines(Embedding(oracle.Source).Data(), oracle.Source);
    lines->SetMinimumWeight(0.05);
    ExpectOracle(oracle, lines);
  }
}

/// From the point of the query to that of the key, with the arrays of both.
TEST(AttentionLines, JoinTheirPoints)
{
  const Recording recording = SmallRecording();
  const auto embedding = Embedding(recording).Data();
  Lines lines(embedding, recording);
  vtkPolyData* data = lines.Geometry();
  ASSERT_EQ(data->GetNumberOfCells(), data->GetNumberOfLines());
  ASSERT_GT(data->GetNumberOfCells(), 0);
  EXPECT_EQ(Names(data->GetPointData()), Names(embedding->GetPointData()));
  EXPECT_EQ(Names(data->GetCellData()),
    (std::set<std::string>{ "Weight", "Layer", "Head", "Query", "Key" }));
  for (vtkIdType i = 0; i < data->GetNumberOfCells(); ++i)
  {
    vtkIdType count = 0;
    const vtkIdType* ends = nullptr;
    data->GetCellPoints(i, count, ends);
    ASSERT_EQ(count, 2);
    const char* const rows[] = { "Query", "Key" };
    for (int end : { 0, 1 })
    {
      const auto value = [&](const char* array)
      { return data->GetPointData()->GetArray(array)->GetComponent(ends[end], 0); };
      const auto ofLine = [&](const char* array)
      { return data->GetCellData()->GetArray(array)->GetComponent(i, 0); };
      EXPECT_EQ(value("Kind"), end);
      EXPECT_EQ(value("Token Index"), ofLine(rows[end]));
      EXPECT_EQ(value("Layer"), ofLine("Layer"));
      EXPECT_EQ(value("Head"), ofLine("Head"));
      EXPECT_NEAR(data->GetPoint(ends[end])[0], ofLine("Head") + ofLine(rows[end]) / 100, 1e-6);
      EXPECT_NEAR(data->GetPoint(ends[end])[1], end - ofLine("Layer"), 1e-6);
    }
  }
}

TEST(AttentionLines, OfSelectedTokens)
{
  const Recording recording = SmallRecording();
  Lines lines(Embedding(recording).Data(), recording);
  lines->SetMinimumWeight(0);
  EXPECT_THAT(lines.Links(), SizeIs(4 * (1 + 2 + 2 + 1 + 2)));
  lines->AddSelectedToken(0);
  EXPECT_THAT(lines.Links(),
    ElementsAre(Link(0, 0, 0, 0), Link(0, 1, 0, 0), Link(2, 0, 0, 0), Link(2, 1, 0, 0)));
  lines->AddSelectedToken(3);
  EXPECT_THAT(lines.Links(), SizeIs(8));
  lines->ClearSelectedTokens();
  lines->AddSelectedToken(5);
  EXPECT_THAT(lines.Error(), HasSubstr("SelectedTokens: expected tokens from 0 to 4, found 5"));
}

/// A point that is selected in one head selects its token in all.
TEST(AttentionLines, OfASelection)
{
  const Recording recording = SmallRecording();
  Lines lines(Embedding(recording).Data(), recording);
  lines->SetMinimumWeight(0);
  Connect(lines.Get(), 2, SelectionOf({ 8 })); // the key of token 3 in the first head
  EXPECT_THAT(lines.Links(),
    ElementsAre(Link(0, 0, 3, 3), Link(0, 1, 3, 3), Link(2, 0, 3, 3), Link(2, 1, 3, 3)));
  lines->AddSelectedToken(0);
  EXPECT_THAT(lines.Links(), SizeIs(8));
  lines->ClearSelectedTokens();
  Connect(lines.Get(), 2, SelectionOf({})); // something is chosen, but not here
  EXPECT_THAT(lines.Links(), IsEmpty());
}

/// A key that is not shown has no line, and no other takes its place.
TEST(AttentionLines, NeedBothEnds)
{
  const Recording recording = SmallRecording();
  Lines whole(Embedding(recording).Data(), recording);
  whole->SetTop(1);
  std::vector<Link> expected;
  for (const Link& link : whole.Links())
  {
    if (std::get<0>(link) == 2 && std::get<1>(link) == 1 && std::get<3>(link) == 1)
    {
      expected.push_back(link);
    }
  }
  Embedding part(recording);
  part.Clear();
  part.Add(2, 1, 1, 1, 0, 0); // a key before its queries
  for (int token = 4; token >= 0; --token)
  {
    part.Add(2, 1, 0, token, token, 1);
  }
  Lines lines(part.Data(), recording);
  lines->SetTop(1);
  EXPECT_EQ(lines.Links(), expected);
  EXPECT_THAT(expected, Not(IsEmpty()));
}

/// Several blocks of queries: by sorting all weights, and on one thread as on four.
TEST(AttentionLines, OfLongSequences)
{
  const Recording recording = LongRecording(200, { 0 }, 1, 8, 3);
  const std::int64_t tokens = recording.tokens.Count();
  const std::vector<double> weights = AttentionOf(recording, 0, 0, 0);
  std::vector<Link> expected;
  for (std::int64_t query = 0; query < tokens; ++query)
  {
    const auto row = weights.begin() + query * tokens;
    std::vector<std::int64_t> keys(tokens);
    std::iota(keys.begin(), keys.end(), 0);
    std::stable_sort(
      keys.begin(), keys.end(), [row](std::int64_t a, std::int64_t b) { return row[a] > row[b]; });
    for (int k = 0; k < 3; ++k)
    {
      if (row[keys[k]] >= 0.1)
      {
        expected.emplace_back(0, 0, query, keys[k]);
      }
    }
  }
  Lines lines(Embedding(recording).Data(), recording);
  lines->SetTop(3);
  EXPECT_EQ(lines.Links(), expected);
  Lines alone(Embedding(recording).Data(), recording);
  alone->SetTop(3);
  vtkSMPTools::LocalScope(vtkSMPTools::Config{ 1 }, [&] { alone.Geometry(); });
  ExpectSameArrays(alone.Geometry()->GetCellData(), lines.Geometry()->GetCellData());
}

/// What is estimated before anything is computed: a line for each query and key at most.
TEST(AttentionLines, NeedMemoryForTheirLines)
{
  const Recording recording = LongRecording(200, { 0 }, 1, 8, 3);
  Lines lines(Embedding(recording).Data(), recording);
  {
    const Variable limit("ATLAS_MEMORY_LIMIT_KIB", "100");
    lines.Geometry();
  }
  EXPECT_THAT(lines.TakeErrors(), ElementsAre(HasSubstr("up to 400 lines would take ")));
  lines->Modified();
  EXPECT_GT(lines.Geometry()->GetNumberOfCells(), 0);
}

TEST(AttentionLines, NamesWhatIsWrong)
{
  const Recording recording = SmallRecording();
  const auto data = Embedding(recording).Data();
  Lines lines(data, recording);
  lines->SetTop(0);
  EXPECT_THAT(lines.Error(), HasSubstr("Top: expected at least 1, found 0"));
  lines->SetTop(2);
  lines->SetMinimumWeight(-1);
  EXPECT_THAT(lines.Error(), HasSubstr("MinimumWeight: expected a weight from 0 to 1, found -1"));
  lines->SetMinimumWeight(0.1);
  Connect(lines.Get(), 1, DataSetOf(LongRecording(200, { 0 }, 1, 8, 3)));
  EXPECT_THAT(lines.Error(), HasSubstr("Recording: expected the recording of the embedding"));
  Connect(lines.Get(), 1, DataSetOf(recording));
  data->GetPointData()->GetArray("Token Index")->SetComponent(3, 0, 5);
  EXPECT_THAT(lines.Error(), HasSubstr("expected rows of the recording's 5 tokens, found 5"));
  data->GetPointData()->GetArray("Token Index")->SetComponent(3, 0, 3);
  data->GetPointData()->GetArray("Layer")->SetComponent(3, 0, 1);
  data->Modified();
  lines->Modified();
  EXPECT_THAT(lines.Error(), HasSubstr("layer 1 is not in the recording, which has layers 0 2"));
  data->GetPointData()->RemoveArray("Kind");
  lines->Modified();
  EXPECT_THAT(lines.Error(), HasSubstr("expected an array 'Kind' with one number per point"));
}

}
