#include "vtkHeadScores.h"

#include "Core/Oracle.h"
#include "HeadCopying.h"
#include "HeadPatterns.h"
#include "Recordings.h"
#include "Transformers.h"
#include "vtkTransformerReader.h"

#include <vtkImageData.h>
#include <vtkIntArray.h>
#include <vtkPointData.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;
using testing::ElementsAre;

namespace
{

class Scores : public Observed<vtkHeadScores>
{
public:
  explicit Scores(vtkDataObject* recording) { Connect(this->Get(), 0, recording); }
  explicit Scores(const Recording& recording)
    : Scores(DataSetOf(recording))
  {
  }

  vtkTable* Table() { return Updated<vtkTable>(this->Get()); }

  std::vector<double> Column(const char* name) { return Values(this->Table()->GetRowData(), name); }

  vtkImageData* Image()
  {
    this->Get()->UpdateInformation();
    this->Get()->Update(1);
    return vtkImageData::SafeDownCast(this->Get()->GetOutputDataObject(1));
  }
};

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
  Scores scores(recording);
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
  Scores scores(recording);
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
  Scores scores(recording);
  ExpectClose("Induction", scores.Column("Induction"),
    Expected(recording, {}, [](const PatternSums& sums)
      { return sums.Score(HeadPattern::Induction, PatternMeasure::Mul); }),
    1e-6);
}

TEST(HeadScores, ImageHasLayersDownwardAndHeadsRightward)
{
  Scores scores(RepeatedRecording());
  vtkImageData* image = scores.Image();
  EXPECT_THAT(
    std::vector<int>(image->GetExtent(), image->GetExtent() + 6), ElementsAre(0, 1, 0, 2, 0, 0));
  EXPECT_THAT(
    std::vector<double>(image->GetOrigin(), image->GetOrigin() + 3), ElementsAre(0, -2, 0));
  vtkPointData* data = image->GetPointData();
  EXPECT_STREQ(data->GetScalars()->GetName(), "Induction");
  EXPECT_THAT(Values(data, "Layer"), ElementsAre(3, 3, 2, 2, 1, 1)); // from the bottom
  EXPECT_THAT(Values(data, "Head"), ElementsAre(0, 1, 0, 1, 0, 1));
  const std::vector<double> column = scores.Column("Sink");
  EXPECT_THAT(Values(scores.Image()->GetPointData(), "Sink"),
    ElementsAre(column[4], column[5], column[2], column[3], column[0], column[1]));
  auto* titles = vtkPolyData::SafeDownCast(scores->GetOutputDataObject(2));
  EXPECT_EQ(titles->GetNumberOfPoints(), 5);
  EXPECT_EQ(Texts(titles->GetPointData(), "Token").at(0), "Layer 1");
  EXPECT_EQ(Texts(titles->GetPointData(), "Token").at(2), "Head 1");
}

TEST(HeadScores, BeginWithAScoreThatShowsSomething)
{
  Recording recording = SmallRecording(); // 3 + 2 tokens
  recording.tokens.id = { 1, 2, 3, 4, 5 };
  Scores scores(recording);
  EXPECT_THAT(scores.Column("Induction"), Each(0));
  EXPECT_STREQ(scores.Image()->GetPointData()->GetScalars()->GetName(), "Previous Token");
}

TEST(HeadScores, WithoutTokensThereAreNoRepetitions)
{
  Scores scores(LongRecording(5));
  EXPECT_THAT(
    Names(scores.Table()->GetRowData()), ElementsAre("Head", "Layer", "Previous Token", "Sink"));
  EXPECT_STREQ(scores.Image()->GetPointData()->GetScalars()->GetName(), "Previous Token");
}

vtkSmartPointer<vtkMultiBlockDataSet> ModelOf(const std::string& name)
{
  vtkNew<vtkTransformerReader> reader;
  reader->SetFileName((TransformerOracle::Folder(name) / "config.json").c_str());
  reader->Update();
  return vtkMultiBlockDataSet::SafeDownCast(reader->GetOutputDataObject(0));
}

TEST(HeadScores, CopyingNeedsTheModel)
{
  const TransformerOracle oracle("gpt2");
  const Transformer model = Transformer::Read(oracle.Path());
  const Recording recording = RecordTransformer(model, oracle.Input(), {});
  Scores scores(recording);
  EXPECT_EQ(scores.Table()->GetColumnByName("Copying"), nullptr);
  Connect(scores.Get(), 1, ModelOf("gpt2"));
  const std::vector<HeadPlace> heads = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 0 }, { 1, 1 },
    { 1, 2 }, { 1, 3 } };
  EXPECT_EQ(scores.Column("Copying"), MeasureCopying(recording, model, heads, 1));
}

TEST(HeadScores, OneTokenHasScores)
{
  Recording recording = LongRecording(1);
  recording.tokens.id = { 5 };
  Scores scores(recording);
  EXPECT_THAT(scores.Column("Sink"), testing::Each(0));
  EXPECT_THAT(scores.Column("Induction"), testing::Each(0));
}

}
