#include "vtkHeadScores.h"

#include "Analysis/HeadCopying.h"
#include "Analysis/HeadPatterns.h"
#include "Matchers.h"
#include "Tables.h"
#include "Transformers.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

using Scores = On<vtkHeadScores>;

/// Layers 1, 2 and 3 with two heads, on a block of 6 tokens, twice.
Recording RepeatedRecording()
{
  Recording recording = LongRecording(12);
  for (std::int64_t i = 0; i < 12; ++i)
  {
    recording.tokens.id.push_back(100 + i % 6);
  }
  return recording;
}

/// The scores of all heads by MeasurePatterns, which is tested against the oracle.
template<class Value>
std::vector<double> Expected(
  const Recording& recording, const PatternOptions& options, const Value& valueOf)
{
  std::vector<double> values;
  std::vector<float> work;
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::int64_t head = 0; head < 2; ++head)
    {
      PatternSums sums;
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        sums.Add(MeasurePatterns(recording, RepeatedTokens(recording, s), s, layer.index, head, 0,
          recording.SequenceLength(s), options, work));
      }
      values.push_back(valueOf(sums));
    }
  }
  return values;
}

TEST(HeadScores, HasARowPerHead)
{
  const Recording recording = RepeatedRecording();
  Scores scores(DataSetOf(recording));
  EXPECT_THAT(
    Names(scores.Table()->GetRowData()), ElementsAre("Duplicate Token", "Head", "Induction",
                                           "Layer", "Prefix Matching", "Previous Token", "Sink"));
  EXPECT_THAT(scores.Column("Layer"), ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_THAT(scores.Column("Head"), ElementsAre(0, 1, 0, 1, 0, 1));
  for (const int measure : { vtkHeadScores::MUL, vtkHeadScores::ABS, vtkHeadScores::STRIPE })
  {
    scores->SetMeasure(measure);
    for (const PatternOptions& options :
      { PatternOptions{ false, false }, { true, false }, { false, true } })
    {
      scores->SetExcludeFirst(options.excludeFirst);
      scores->SetExcludeCurrent(options.excludeCurrent);
      for (const auto& [name, pattern] : { std::pair("Previous Token", HeadPattern::PreviousToken),
             { "Duplicate Token", HeadPattern::DuplicateToken },
             { "Induction", HeadPattern::Induction } })
      {
        ExpectClose(name, scores.Column(name),
          Expected(recording, options, [&, wanted = pattern](const PatternSums& sums)
            { return sums.Score(wanted, static_cast<PatternMeasure>(measure)); }),
          1e-6);
      }
      ExpectClose("Prefix Matching", scores.Column("Prefix Matching"),
        Expected(recording, {}, [](const PatternSums& sums) { return sums.PrefixMatching(); }),
        1e-6);
      ExpectClose("Sink", scores.Column("Sink"),
        Expected(recording, {}, [](const PatternSums& sums) { return sums.Sink(); }), 1e-6);
    }
  }
}

TEST(HeadScores, ShowsLayersWithoutHeadsInTheirPlace)
{
  Recording recording = RepeatedRecording();
  recording.layersWithoutHeads = { 0, 4 };
  recording.layerCount = 5;
  Scores scores(DataSetOf(recording));
  EXPECT_THAT(scores.Column("Layer"), ElementsAre(1, 1, 2, 2, 3, 3));
  vtkImageData* image = scores.Image(1);
  EXPECT_THAT(SizeOf(image), ElementsAre(2, 5));
  vtkDataArray* sinks = image->GetPointData()->GetArray("Sink");
  vtkDataArray* layers = image->GetPointData()->GetArray("Layer");
  for (vtkIdType i = 0; i < 10; ++i)
  {
    const double layer = layers->GetTuple1(i);
    EXPECT_EQ(std::isnan(sinks->GetTuple1(i)), layer == 0 || layer == 4) << i;
  }
}

/// A head that attends to nothing but the previous token, and one to the token after the same
/// before, by hand.
TEST(HeadScores, KnowsHeadsMadeByHand)
{
  Recording recording = RepeatedRecording();
  recording.layers.resize(1);
  SharedMatrix previous = SharedMatrix::Zero(12, 12);
  SharedMatrix induction = SharedMatrix::Zero(12, 12);
  for (std::int64_t i = 0; i < 12; ++i)
  {
    previous.Row(i)[std::max<std::int64_t>(i - 1, 0)] = 1;
    induction.Row(i)[i < 6 ? 0 : i - 5] = 1;
  }
  recording.layers[0].heads[0].weights = { previous };
  recording.layers[0].heads[1].weights = { induction };
  Scores scores(DataSetOf(recording));
  scores->SetMeasure(vtkHeadScores::STRIPE);
  EXPECT_THAT(scores.Column("Previous Token"), ElementsAre(1, testing::DoubleEq(1. / 11)));
  EXPECT_THAT(scores.Column("Induction"), ElementsAre(0, 1));
  EXPECT_THAT(scores.Column("Prefix Matching"), ElementsAre(0, 1));
  EXPECT_THAT(scores.Column("Sink"), ElementsAre(1. / 11, 5. / 11));
  scores->SetMeasure(vtkHeadScores::MUL);
  EXPECT_THAT(scores.Column("Previous Token"), ElementsAre(1, testing::DoubleEq(1. / 11)));
  EXPECT_THAT(scores.Column("Induction"), ElementsAre(0, 0.5));
  scores->SetExcludeFirst(true);
  EXPECT_THAT(scores.Column("Previous Token"), ElementsAre(1, 0));
  EXPECT_THAT(scores.Column("Induction"), ElementsAre(0, 1));
}

TEST(HeadScores, SumsOverSequences)
{
  Recording recording = SmallRecording(); // layers 0 and 2, two heads, 3 + 2 tokens
  recording.tokens.id = { 1, 1, 2, 3, 3 };
  Scores scores(DataSetOf(recording));
  ExpectClose("Induction", scores.Column("Induction"),
    Expected(recording, {}, [](const PatternSums& sums)
      { return sums.Score(HeadPattern::Induction, PatternMeasure::Mul); }),
    1e-6);
}

TEST(HeadScores, ImageHasLayersDownwardAndHeadsRightward)
{
  Scores scores(DataSetOf(RepeatedRecording()));
  vtkImageData* image = scores.Image(1);
  EXPECT_THAT(ExtentOf(image), ElementsAre(0, 1, 0, 2, 0, 0));
  EXPECT_THAT(OriginOf(image), ElementsAre(0, -2, 0));
  vtkPointData* data = image->GetPointData();
  EXPECT_STREQ(data->GetScalars()->GetName(), "Induction");
  EXPECT_THAT(Values(data, "Layer"), ElementsAre(3, 3, 2, 2, 1, 1)); // from the bottom
  EXPECT_THAT(Values(data, "Head"), ElementsAre(0, 1, 0, 1, 0, 1));
  const std::vector<double> column = scores.Column("Sink");
  EXPECT_THAT(scores.Points("Sink", 1),
    ElementsAre(column[4], column[5], column[2], column[3], column[0], column[1]));
  auto* titles = OutputOf<vtkPolyData>(scores.Get(), 2);
  EXPECT_EQ(titles->GetNumberOfPoints(), 5);
  EXPECT_EQ(Texts(titles->GetPointData(), "Token").at(0), "Layer 1");
  EXPECT_EQ(Texts(titles->GetPointData(), "Token").at(2), "Head 1");
}

TEST(HeadScores, BeginWithAScoreThatShowsSomething)
{
  Recording recording = SmallRecording(); // 3 + 2 tokens
  recording.tokens.id = { 1, 2, 3, 4, 5 };
  Scores scores(DataSetOf(recording));
  EXPECT_THAT(scores.Column("Induction"), Each(0));
  EXPECT_STREQ(scores.Image(1)->GetPointData()->GetScalars()->GetName(), "Previous Token");
}

TEST(HeadScores, WithoutTokensThereAreNoRepetitions)
{
  Scores scores(DataSetOf(LongRecording(5)));
  EXPECT_THAT(
    Names(scores.Table()->GetRowData()), ElementsAre("Head", "Layer", "Previous Token", "Sink"));
  EXPECT_STREQ(scores.Image(1)->GetPointData()->GetScalars()->GetName(), "Previous Token");
}

TEST(HeadScores, CopyingNeedsTheModel)
{
  const TransformerOracle oracle("gpt2");
  const Transformer model = Transformer::Read(oracle.Path());
  const Recording recording = RecordTransformer(model, oracle.Input(), {});
  Scores scores(DataSetOf(recording));
  EXPECT_EQ(scores.Table()->GetColumnByName("Copying"), nullptr);
  OracleModel stored("gpt2");
  scores->SetInputConnection(1, stored.Port());
  const std::vector<HeadPlace> heads = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 0 }, { 1, 1 },
    { 1, 2 }, { 1, 3 } };
  EXPECT_EQ(scores.Column("Copying"), MeasureCopying(recording, model, heads, 1));
}

TEST(HeadScores, OneTokenHasScores)
{
  Recording recording = LongRecording(1);
  recording.tokens.id = { 5 };
  Scores scores(DataSetOf(recording));
  EXPECT_THAT(scores.Column("Sink"), Each(0));
  EXPECT_THAT(scores.Column("Induction"), Each(0));
}

}
