#include "Core/ModelsOracle.h"
#include "Matchers.h"
#include "Run/GenerateTokens.h"
#include "Transformers.h"
#include "vtkAttentionMap.h"
#include "vtkLogitAttribution.h"
#include "vtkLogitLens.h"

#include <vtkImageDataGeometryFilter.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

Recording RecordAt(Pipeline& pipeline, double time)
{
  pipeline.Recorder->UpdateTimeStep(time);
  return AttentionAtlas::ToRecording(OutputOf<vtkMultiBlockDataSet>(pipeline.Recorder.Get()));
}

/// What Core adds to the sequences (TestGenerateTokens compares it with whole runs).
std::vector<std::vector<std::int64_t>> FromCore(
  const std::vector<std::vector<std::int64_t>>& tokens, std::int64_t count)
{
  TransformerInput input;
  input.tokens = tokens;
  GenerationOptions options;
  options.count = count;
  return GenerateTokens(Transformer::Read(TransformerOracle::Folder("gpt2")), input, options);
}

TEST(RecorderGeneration, ATimeStepShowsSoManyTokens)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  pipeline.Recorder->SetTokenIds("1 2 3\n7");
  EXPECT_TRUE(TimesOf(pipeline.Recorder.Get()).empty());
  pipeline.Recorder->SetGenerateTokens(3);
  EXPECT_THAT(TimesOf(pipeline.Recorder.Get()), ElementsAre(0, 1, 2, 3));
  const double* range =
    pipeline.Recorder->GetOutputInformation(0)->Get(vtkStreamingDemandDrivenPipeline::TIME_RANGE());
  EXPECT_EQ(range[0], 0);
  EXPECT_EQ(range[1], 3);
  const auto added = FromCore({ { 1, 2, 3 }, { 7 } }, 3);
  std::vector<std::int64_t> all = { 1, 2, 3 };
  all.insert(all.end(), added[0].begin(), added[0].end());
  all.push_back(7);
  all.insert(all.end(), added[1].begin(), added[1].end());

  EXPECT_EQ(pipeline.Record().tokens.id, all); // no time was asked for
  EXPECT_THAT(RecordAt(pipeline, 0).tokens.id, ElementsAre(1, 2, 3, 7));
  const Recording step = RecordAt(pipeline, 2.7); // between steps, the one before
  EXPECT_THAT(
    step.tokens.id, ElementsAre(1, 2, 3, added[0][0], added[0][1], 7, added[1][0], added[1][1]));
  EXPECT_EQ(step.layers[0].heads[0].query.rows, 8);
  EXPECT_EQ(OutputOf<vtkMultiBlockDataSet>(pipeline.Recorder.Get())
              ->GetInformation()
              ->Get(vtkDataObject::DATA_TIME_STEP()),
    2);
  EXPECT_EQ(RecordAt(pipeline, 9).tokens.id, all);

  pipeline.Recorder->SetGenerateTokens(0);
  EXPECT_TRUE(TimesOf(pipeline.Recorder.Get()).empty());
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(1, 2, 3, 7));
}

/// LongRope: up to 16 tokens keys have other angles than in longer texts.
TEST(RecorderGeneration, KeysAreThoseOfTheirTimeStep)
{
  const std::filesystem::path folder = ModelsOracle("transformers/phi3-longrope");
  Pipeline pipeline(folder);
  pipeline.Recorder->SetTokenIds("1 2 3 4 5 6 7 8 9 10 11 12\n3 4 5 6 7 8 9 10 11 12 13 14 15 16");
  pipeline.Recorder->SetGenerateTokens(8);
  for (const double step : { 0, 2, 3, 4, 5, 8 }) // both short, one long, both long
  {
    const Recording shown = RecordAt(pipeline, step);
    std::string ids;
    for (std::int64_t s = 0; s < shown.SequenceCount(); ++s)
    {
      for (std::int64_t i = shown.sequenceOffsets[s];
        i < shown.sequenceOffsets[static_cast<std::size_t>(s) + 1]; ++i)
      {
        ids += std::to_string(shown.tokens.id[i]) + " ";
      }
      ids += "\n";
    }
    Pipeline alone(folder);
    alone.Recorder->SetTokenIds(ids.c_str());
    const Recording expected = alone.Record();
    ASSERT_EQ(shown.tokens.id, expected.tokens.id);
    for (std::size_t l = 0; l < expected.layers.size(); ++l)
    {
      const SharedMatrix& key = expected.layers[l].heads[0].key;
      const std::vector<float> values = Rows(key, 0, key.rows);
      ExpectClose("keys", Rows(shown.layers[l].heads[0].key, 0, key.rows),
        std::vector<double>(values.begin(), values.end()), 1e-6);
    }
  }
}

TEST(RecorderGeneration, FollowsTheSeed)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  pipeline.Recorder->SetTokenIds("1 2 3");
  pipeline.Recorder->SetGenerateTokens(10);
  const auto greedy = pipeline.Record().tokens.id;
  pipeline.Recorder->SetTemperature(5);
  const auto first = pipeline.Record().tokens.id;
  pipeline.Recorder->SetSeed(1);
  const auto second = pipeline.Record().tokens.id;
  pipeline.Recorder->SetSeed(0);
  EXPECT_EQ(pipeline.Record().tokens.id, first);
  pipeline.Recorder->SetTopK(1);
  EXPECT_EQ(pipeline.Record().tokens.id, greedy);
  EXPECT_NE(first, second);
  EXPECT_NE(first, greedy);
}

TEST(RecorderGeneration, CanBeCanceled)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  pipeline.Recorder->SetTokenIds("1 2 3");
  pipeline.Recorder->SetGenerateTokens(8);
  {
    const Canceler canceler(pipeline.Recorder.Get());
    EXPECT_EQ(pipeline.Update()->GetNumberOfBlocks(), 0U);
  }
  EXPECT_EQ(pipeline.Record().tokens.Count(), 11); // though nothing has changed
}

TEST(RecorderGeneration, RefusesWhatCannotGoOn)
{
  Pipeline gpt2(TransformerOracle::Folder("gpt2"));
  gpt2.Recorder->SetTokenIds("1 2 3");
  gpt2.Recorder->SetGenerateTokens(100000);
  EXPECT_THAT(gpt2.Recorder.Error(), HasSubstr("would have 100003 tokens"));

  Pipeline bert(TransformerOracle::Folder("bert"));
  bert.Recorder->SetTokenIds("1 2 3");
  bert.Recorder->SetGenerateTokens(2);
  EXPECT_THAT(bert.Recorder.Error(), HasSubstr("architecture bert"));

  Pipeline vit(TransformerOracle::Folder("vit"));
  vit.Recorder->AddImage((TransformerOracle::Folder("vit") / "expected.safetensors").c_str());
  vit.Recorder->SetGenerateTokens(2);
  EXPECT_THAT(vit.Recorder.Error(), HasSubstr("architecture vit"));
}

/// Counts how often a filter executes.
class Executions
{
public:
  explicit Executions(vtkAlgorithm* filter)
  {
    filter->AddObserver(vtkCommand::StartEvent, this, &Executions::Add);
  }
  int Take() { return std::exchange(this->Count, 0); }

private:
  int Count = 0;

  void Add(vtkObject*, unsigned long, void*) { ++this->Count; }
};

/// A recording of 3 tokens, to which 4 are added over time.
void AddTokens(Pipeline& pipeline)
{
  pipeline.Recorder->SetTokenIds("1 2 3");
  pipeline.Recorder->SetGenerateTokens(4);
  pipeline.Recorder->SetRecordArrayStatus("HeadOutputs", 1);
  pipeline.Recorder->SetRecordArrayStatus("Residual", 1);
}

int Columns(vtkAlgorithm* filter, int port)
{
  return OutputOf<vtkImageData>(filter, port)->GetDimensions()[0];
}

/// At steps before the last the image is smaller than announced. The filter then executes once per
/// change, and its image is the one that a new filter makes. `columns`: of the image at step 0.
template<class Filter, class Prepare>
void ExecutesOncePerChange(int port, int columns, const Prepare& prepare)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  AddTokens(pipeline);
  Observed<Filter> filter;
  filter->SetInputConnection(pipeline.Recorder->GetOutputPort());
  prepare(pipeline, filter.Get());
  vtkNew<vtkImageDataGeometryFilter> consumer; // asks for the whole announced image
  consumer->SetInputConnection(filter->GetOutputPort(port));
  Executions executions(filter.Get());
  const auto width = [&] { return Columns(filter.Get(), port); };
  for (const int step : { 1, 4, 2, 2, 0, 3 })
  {
    SCOPED_TRACE(step);
    consumer->UpdateTimeStep(step);
    auto* image = OutputOf<vtkImageData>(filter.Get(), port);
    const int length = width();
    EXPECT_EQ(length, columns + step);
    executions.Take();
    Observed<Filter> fresh;
    fresh->SetInputConnection(pipeline.Recorder->GetOutputPort());
    prepare(pipeline, fresh.Get());
    fresh->UpdateTimeStep(step);
    auto* expected = OutputOf<vtkImageData>(fresh.Get(), port);
    ASSERT_EQ(image->GetNumberOfPoints(), expected->GetNumberOfPoints());
    const char* name = expected->GetPointData()->GetScalars()->GetName();
    EXPECT_EQ(Values(image->GetPointData(), name), Values(expected->GetPointData(), name));
    for (int again = 0; again < 3; ++again)
    {
      consumer->UpdateTimeStep(step);
      filter->Update();
      EXPECT_EQ(executions.Take(), 0);
    }
    EXPECT_EQ(width(), length);
    filter->Modified();
    consumer->UpdateTimeStep(step);
    EXPECT_EQ(executions.Take(), 1);
    EXPECT_EQ(width(), length);
  }
  // A longer text at the same step.
  consumer->UpdateTimeStep(0);
  executions.Take();
  const int before = width();
  pipeline.Recorder->SetTokenIds("1 2 3 4 5");
  consumer->UpdateTimeStep(0);
  EXPECT_EQ(executions.Take(), 1);
  EXPECT_EQ(width(), before + 2);
}

TEST(RecorderGeneration, AttentionMapExecutesOncePerChange)
{
  ExecutesOncePerChange<vtkAttentionMap>(0, 3, [](Pipeline&, vtkAttentionMap*) {});
}

TEST(RecorderGeneration, LogitLensExecutesOncePerChange)
{
  ExecutesOncePerChange<vtkLogitLens>(0, 3, [](Pipeline& pipeline, vtkLogitLens* lens)
    { lens->SetInputConnection(1, pipeline.Model->GetOutputPort()); });
}

TEST(RecorderGeneration, AnImageIsBackAfterAStepThatFails)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  AddTokens(pipeline);
  Observed<vtkLogitAttribution> filter;
  filter->SetInputConnection(pipeline.Recorder->GetOutputPort());
  filter->SetInputConnection(1, pipeline.Model->GetOutputPort());
  filter->SetPosition(5); // which the first steps lack
  vtkNew<vtkImageDataGeometryFilter> consumer;
  consumer->SetInputConnection(filter->GetOutputPort(1));
  const auto points = [&] { return OutputOf<vtkImageData>(filter.Get(), 1)->GetNumberOfPoints(); };
  consumer->UpdateTimeStep(4);
  const vtkIdType terms = points();
  EXPECT_GT(terms, 1);
  consumer->UpdateTimeStep(4);
  consumer->UpdateTimeStep(0);
  EXPECT_EQ(filter.TakeErrors().size(), 1U);
  EXPECT_EQ(points(), 0);
  for (int again = 0; again < 2; ++again)
  {
    consumer->UpdateTimeStep(4);
    EXPECT_EQ(points(), terms);
  }
}

TEST(RecorderGeneration, AnImageIsWholeAfterAnotherOutputAskedForATime)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  AddTokens(pipeline);
  Observed<vtkLogitLens> filter;
  filter->SetInputConnection(pipeline.Recorder->GetOutputPort());
  filter->SetInputConnection(1, pipeline.Model->GetOutputPort());
  vtkNew<vtkImageDataGeometryFilter> consumer;
  consumer->SetInputConnection(filter->GetOutputPort(0));
  consumer->UpdateTimeStep(0);
  consumer->UpdateTimeStep(0);
  EXPECT_EQ(Columns(filter.Get(), 0), 3);
  auto* pipelineOfFilter = vtkStreamingDemandDrivenPipeline::SafeDownCast(filter->GetExecutive());
  pipelineOfFilter->UpdateInformation();
  filter->GetOutputInformation(1)->Set(vtkStreamingDemandDrivenPipeline::UPDATE_TIME_STEP(), 4.0);
  filter->Update(1);
  EXPECT_EQ(Columns(filter.Get(), 0), 7);
  consumer->UpdateTimeStep(4);
  EXPECT_EQ(Columns(filter.Get(), 0), 7);
  consumer->UpdateTimeStep(0);
  EXPECT_EQ(Columns(filter.Get(), 0), 3);
}

TEST(RecorderGeneration, NoMoreIsAskedForThanIsAnnounced)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  AddTokens(pipeline);
  Observed<vtkAttentionMap> filter;
  filter->SetInputConnection(pipeline.Recorder->GetOutputPort());
  filter->UpdateTimeStep(0);
  filter->UpdateTimeStep(0);
  pipeline.Recorder->SetGenerateTokens(0);
  for (int again = 0; again < 3; ++again)
  {
    EXPECT_EQ(filter->GetExecutive()->Update(0), 1);
    EXPECT_EQ(Columns(filter.Get(), 0), 3);
  }
  pipeline.Recorder->SetGenerateTokens(4);
  filter->UpdateTimeStep(4);
  EXPECT_EQ(Columns(filter.Get(), 0), 7);
}

TEST(RecorderGeneration, LogitAttributionExecutesOncePerChange)
{
  ExecutesOncePerChange<vtkLogitAttribution>(1, 2,
    [](Pipeline& pipeline, vtkLogitAttribution* attribution)
    { attribution->SetInputConnection(1, pipeline.Model->GetOutputPort()); });
}

}
