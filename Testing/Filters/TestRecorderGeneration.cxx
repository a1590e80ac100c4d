#include "GenerateTokens.h"
#include "Transformers.h"

#include <vtkCallbackCommand.h>
#include <vtkDataObject.h>
#include <vtkInformation.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

using SDDP = vtkStreamingDemandDrivenPipeline;

std::vector<double> TimesOf(Pipeline& pipeline)
{
  pipeline.Recorder->UpdateInformation();
  vtkInformation* info = pipeline.Recorder->GetOutputInformation(0);
  const double* times = info->Get(SDDP::TIME_STEPS());
  return { times, times + info->Length(SDDP::TIME_STEPS()) };
}

Recording RecordAt(Pipeline& pipeline, double time)
{
  pipeline.Recorder->UpdateTimeStep(time);
  pipeline.Model.TakeWarnings();
  return AttentionAtlas::ToRecording(pipeline.Recorder->GetOutput());
}

/// What Core adds to the sequences (TestGenerateTokens compares it with whole runs).
std::vector<std::vector<std::int64_t>> FromCore(
  const std::vector<std::vector<std::int64_t>>& tokens, std::int64_t count)
{
  TransformerInput input;
  input.tokens = tokens;
  GenerationOptions options;
  options.count = count;
  return GenerateTokens(Transformer::Read(TransformerOracle::Folder("gpt2")), input, options)
    .value();
}

TEST(RecorderGeneration, ATimeStepShowsSoManyTokens)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  pipeline.Recorder->SetTokenIds("1 2 3\n7");
  EXPECT_TRUE(TimesOf(pipeline).empty());
  pipeline.Recorder->SetGenerateTokens(3);
  EXPECT_THAT(TimesOf(pipeline), ElementsAre(0, 1, 2, 3));
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
  EXPECT_EQ(
    pipeline.Recorder->GetOutput()->GetInformation()->Get(vtkDataObject::DATA_TIME_STEP()), 2);
  EXPECT_EQ(RecordAt(pipeline, 9).tokens.id, all);

  pipeline.Recorder->SetGenerateTokens(0);
  EXPECT_TRUE(TimesOf(pipeline).empty());
  EXPECT_THAT(pipeline.Record().tokens.id, ElementsAre(1, 2, 3, 7));
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
  vtkNew<vtkCallbackCommand> command;
  command->SetCallback(
    [](vtkObject* caller, unsigned long, void*, void*)
    {
      auto* algorithm = vtkAlgorithm::SafeDownCast(caller);
      if (algorithm->GetProgress() > 0 && algorithm->GetProgress() < 1) // not VTK's own events
      {
        algorithm->SetAbortExecute(1);
      }
    });
  const unsigned long observer = pipeline.Recorder->AddObserver(vtkCommand::ProgressEvent, command);
  EXPECT_EQ(pipeline.Update()->GetNumberOfBlocks(), 0U);
  pipeline.Recorder->RemoveObserver(observer);
  EXPECT_EQ(pipeline.Record().tokens.Count(), 11); // though nothing has changed
}

TEST(RecorderGeneration, RefusesWhatCannotGoOn)
{
  Pipeline gpt2(TransformerOracle::Folder("gpt2"));
  gpt2.Recorder->SetTokenIds("1 2 3");
  gpt2.Recorder->SetGenerateTokens(2);
  gpt2.Recorder->SetAblate("1.0");
  EXPECT_EQ(gpt2.Update()->GetNumberOfBlocks(), 0U);
  EXPECT_THAT(gpt2.Recorder.TakeErrors(), ElementsAre(HasSubstr("or interventions")));
  gpt2.Recorder->SetAblate(nullptr);
  gpt2.Recorder->SetGenerateTokens(100000);
  EXPECT_EQ(gpt2.Update()->GetNumberOfBlocks(), 0U);
  EXPECT_THAT(gpt2.Recorder.TakeErrors(), ElementsAre(HasSubstr("would have 100003 tokens")));

  Pipeline bert(TransformerOracle::Folder("bert"));
  bert.Recorder->SetTokenIds("1 2 3");
  bert.Recorder->SetGenerateTokens(2);
  EXPECT_EQ(bert.Update()->GetNumberOfBlocks(), 0U);
  EXPECT_THAT(bert.Recorder.TakeErrors(), ElementsAre(HasSubstr("architecture bert")));

  Pipeline vit(TransformerOracle::Folder("vit"));
  vit.Recorder->AddImage((TransformerOracle::Folder("vit") / "expected.safetensors").c_str());
  vit.Recorder->SetGenerateTokens(2);
  EXPECT_EQ(vit.Update()->GetNumberOfBlocks(), 0U);
  EXPECT_THAT(vit.Recorder.TakeErrors(), ElementsAre(HasSubstr("architecture vit")));
}

}
