#include "Base/Index.h"
#include "Matchers.h"
#include "Run/Interventions.h"
#include "Run/PromptMeans.h"
#include "Transformers.h"

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr const char* Prompt = "1 2 3 4 5";
constexpr const char* Other = "5 9 3 2 7";

void RecordEverything(Pipeline& pipeline)
{
  for (const char* name : { "QueriesAndKeys", "Values", "HeadOutputs", "Residual", "Logits" })
  {
    pipeline.Recorder->SetRecordArrayStatus(name, 1);
  }
}

/// What Core records with the same interventions (TestInterventions compares it with independent
/// runs).
Recording FromCore(const std::string& sites, Replacement by)
{
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  TransformerInput input;
  input.tokens = { { 1, 2, 3, 4, 5 } };
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  for (const ActivationSite& site : ParseSites(sites, "sites"))
  {
    options.interventions.list.push_back({ site, by });
  }
  options.interventions.source.tokens = { { 5, 9, 3, 2, 7 } };
  return RecordTransformer(model, input, options);
}

void ExpectSame(Recording found, const Recording& expected, const std::string& words)
{
  EXPECT_EQ(found.interventions, words);
  found.interventions = expected.interventions;
  found.tokens.text.clear();
  ExpectEqual(found, expected);
}

TEST(RecorderInterventions, AblatesHeads)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  RecordEverything(pipeline);
  pipeline.Recorder->SetTokenIds(Prompt);
  EXPECT_FALSE(pipeline.Update()->GetFieldData()->HasArray("Interventions"));
  pipeline.Recorder->SetAblate("0.1 1.0");
  EXPECT_EQ(pipeline.Recorder->GetAblateTo(), vtkTransformerRecorder::ZERO);
  ExpectSame(pipeline.Record(), FromCore("0.1 1.0", Replacement::Zero), "0.1, 1.0 to zero");
  pipeline.Recorder->SetAblateTo(vtkTransformerRecorder::MEAN_OVER_POSITIONS);
  ExpectSame(pipeline.Record(), FromCore("0.1 1.0", Replacement::MeanOverPositions),
    "0.1, 1.0 to the mean over positions");
  EXPECT_TRUE(pipeline.Update()->GetFieldData()->HasArray("Interventions"));
}

TEST(RecorderInterventions, AblateToTheMeanOverOtherPrompts)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  RecordEverything(pipeline);
  pipeline.Recorder->SetTokenIds("1 2 3 4 5\n5 9 3 2 7 1");
  pipeline.Recorder->SetAblate("0.1");
  pipeline.Recorder->SetAblateTo(vtkTransformerRecorder::MEAN_OVER_PROMPTS);
  const Recording found = pipeline.Record();
  EXPECT_EQ(found.interventions, "0.1 to the mean over other prompts");
  // With one other prompt, the mean is the one over its positions.
  const Transformer model = Transformer::Read(TransformerOracle::Folder("gpt2"));
  const std::int64_t size = model.GetConfig().headDimension;
  RecordOptions options;
  options.interventions.list = { { { ActivationKind::HeadOutput, 0, 1 },
    Replacement::MeanOverPrompts } };
  TransformerInput input;
  input.tokens = { { 1, 2, 3, 4, 5 }, { 5, 9, 3, 2, 7, 1 } };
  const std::vector<double> sums = SumOverPrompts(model, input, options);
  for (std::int64_t c = 0; c < size; ++c)
  {
    options.interventions.means.push_back(static_cast<float>(sums[size + c] / 6));
  }
  for (std::int64_t c = 0; c < size; ++c)
  {
    options.interventions.means.push_back(static_cast<float>(sums[c] / 5));
  }
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  ExpectSame(found, RecordTransformer(model, input, options), found.interventions);

  pipeline.Recorder->SetTokenIds(Prompt);
  EXPECT_THAT(pipeline.Recorder.Error(),
    HasSubstr("mean over other prompts: expected two prompts or more, found one"));
}

TEST(RecorderInterventions, PatchFromAnotherPrompt)
{
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  RecordEverything(pipeline);
  pipeline.Recorder->SetTokenIds(Prompt);
  pipeline.Recorder->SetPatchFrom(Other);
  pipeline.Recorder->SetPatchSites("0.1@4 r1@2 m1");
  ExpectSame(pipeline.Record(), FromCore("0.1@4 r1@2 m1", Replacement::Source),
    "0.1@4, r1@2, m1 from another input: 5 9 3 2 7");
}

}
