#include "Base/Index.h"
#include "Circuits/Circuit.h"
#include "Matchers.h"
#include "Run/Interventions.h"
#include "Run/PromptMeans.h"
#include "TemporaryDirectory.h"
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

TEST(RecorderInterventions, RunACircuitAlone)
{
  const TemporaryDirectory folder;
  const std::string file = (folder / "x.circuit").string();
  CircuitShape shape(Transformer::Read(TransformerOracle::Folder("gpt2")).GetConfig());
  ASSERT_EQ(shape.layers, 2);
  ASSERT_EQ(shape.heads, 4);
  const auto layer = static_cast<std::int32_t>(shape.NodesBefore(1));
  WriteCircuit(
    file, MakeCircuit(shape, { 0, 1, 4, layer + 4 }, { { 2, layer, EdgeInput::Key, 1 } }));
  Pipeline pipeline(TransformerOracle::Folder("gpt2"));
  RecordEverything(pipeline);
  pipeline.Recorder->SetTokenIds(Prompt);
  pipeline.Recorder->SetCircuitFile(file.c_str());
  const std::string outside = "0.2, m0, 1.1, 1.2, 1.3";
  ExpectSame(pipeline.Record(), FromCore(outside, Replacement::Zero), outside + " to zero");
  pipeline.Recorder->SetPatchFrom(Other);
  ExpectSame(pipeline.Record(), FromCore(outside, Replacement::Source),
    outside + " from another input: 5 9 3 2 7");
  pipeline.Recorder->SetAblate("0.0");
  pipeline.Recorder->SetPatchSites("r1@2");
  EXPECT_EQ(pipeline.Record().interventions,
    "0.0 to zero; r1@2, " + outside + " from another input: 5 9 3 2 7");
  WriteCircuit(file, MakeCircuit(shape, { layer }, {}));
  pipeline.Recorder->SetAblate(nullptr);
  pipeline.Recorder->SetPatchSites(nullptr);
  pipeline.Recorder->Modified();
  const std::string others = "r0, 0.0, 0.1, 0.2, 0.3, m0, 1.1, 1.2, 1.3, m1";
  ExpectSame(pipeline.Record(), FromCore(others, Replacement::Source),
    others + " from another input: 5 9 3 2 7");
  shape.heads = 5;
  WriteCircuit(file, MakeCircuit(shape, {}, {}));
  pipeline.Recorder->Modified();
  EXPECT_THAT(pipeline.Recorder.Error(),
    HasSubstr("x.circuit: expected a circuit of gpt2 with 2 layers of 4 heads and MLPs after them, "
              "found one of gpt2 with 2 layers of 5 heads"));
  pipeline.Recorder->SetCircuitFile("/no/such.circuit");
  EXPECT_THAT(pipeline.Recorder.Error(), HasSubstr("/no/such.circuit"));
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
