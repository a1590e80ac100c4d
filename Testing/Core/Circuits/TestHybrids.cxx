// Models of which some layers have no attention: what analyses of the residual stream and changes
// of a run make of these.

#include "Base/Error.h"
#include "Circuits/HeadComposition.h"
#include "Circuits/HeadSpectra.h"
#include "Circuits/LogitAttribution.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Run/ActivationPatching.h"
#include "Run/MixerOutputs.h"
#include "Run/RecordTransformer.h"
#include "Weights/ProcessedWeights.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// bamba-a: a state space in layers 0 and 2; lfm2-d: a convolution there; qwen3_5_text-a: delta
/// rules in layers 0 and 1.
class Hybrids : public testing::TestWithParam<const char*>
{
protected:
  std::filesystem::path Folder = AnyOracle(std::string("v5/decoder/") + GetParam());
  OracleFile Expected{ this->Folder / "expected.safetensors" };
  Transformer Model = Transformer::Read(this->Folder);

  TransformerInput Input(const std::string& prefix = "0.") const
  {
    TransformerInput input;
    input.tokens = { this->Expected.Integers(prefix + "input_ids") };
    return input;
  }

  /// A layer with attention.
  std::int64_t Attention() const { return this->Model.GetConfig().HasAttention(1) ? 1 : 2; }

  /// Both sequences.
  Recording Record() const
  {
    RecordOptions options;
    options.residual = true;
    options.headOutputs = true;
    TransformerInput input = this->Input();
    input.tokens.push_back(this->Input("1.").tokens.front());
    return RecordTransformer(this->Model, input, options);
  }
};

INSTANTIATE_TEST_SUITE_P(, Hybrids, testing::Values("bamba-a", "lfm2-d", "qwen3_5_text-a"),
  [](const auto& test) { return std::string(test.param).substr(0, 4); });

TEST_P(Hybrids, ComponentsAddUpToTheLogitsOfTheOriginal)
{
  const Recording recording = this->Record();
  const ProcessedWeights stored(this->Model, WeightSteps::Stored);
  const ResidualWeights weights(stored);
  std::vector<LogitTarget> targets;
  std::vector<double> expected;
  for (const std::string prefix : { "0.", "1." })
  {
    const std::int64_t length = this->Expected.ShapeOf(prefix + "logits")[0];
    const std::int64_t vocabulary = this->Expected.ShapeOf(prefix + "logits")[1];
    const std::vector<float> logits = this->Expected.Floats(prefix + "logits");
    const std::int64_t first = prefix == "0." ? 0 : recording.sequenceOffsets[1];
    for (const std::int64_t position : { std::int64_t{ 0 }, length / 2, length - 1 })
    {
      targets.push_back({ first + position, 5 });
      expected.push_back(static_cast<double>(logits[position * vocabulary + 5]));
    }
  }
  LastMlps mlps;
  const LogitTerms terms = AttributeLogits(recording, weights, targets, mlps);
  for (std::size_t i = 0; i < targets.size(); ++i)
  {
    EXPECT_NEAR(terms.sums[i], expected[i], 2e-4);
  }
  std::string names;
  for (const NamedComponent& component : terms.components)
  {
    names.append(component.name).append(" ");
  }
  const std::string heads =
    "head {}.0 head {}.1 head {}.2 head {}.3 bias {} mlp {} "; // of the layer with attention
  const bool isFirst = std::string(GetParam()) == "qwen3_5_text-a";
  std::string layer = heads;
  for (std::size_t at = layer.find("{}"); at != std::string::npos; at = layer.find("{}"))
  {
    layer.replace(at, 2, isFirst ? "2" : "1");
  }
  EXPECT_EQ(names, isFirst ? "embed mixer 0 mlp 0 mixer 1 mlp 1 " + layer + "b_U "
                           : "embed mixer 0 mlp 0 " + layer + "mixer 2 mlp 2 b_U ");
}

TEST_P(Hybrids, HeadsArePatchedWhereThereAreAny)
{
  TransformerInput prompt = this->Input("1.");
  TransformerInput source = prompt;
  source.tokens.front()[3] = prompt.tokens.front()[3] == 7 ? 8 : 7;
  PatchingOptions options;
  const PatchingMap heads = MapPatching(this->Model, prompt, source, options);
  const std::vector<ActivationSite> sites =
    PatchingSites(this->Model.GetConfig(), prompt.tokens.front().size(), options);
  ASSERT_EQ(heads.difference.size(), sites.size());
  for (std::size_t i = 0; i < sites.size(); ++i)
  {
    EXPECT_EQ(
      std::isnan(heads.difference[i]), !this->Model.GetConfig().HasAttention(sites[i].layer));
  }
  // The residual stream before layer 0 is that of the source at the only place where they differ.
  options.kind = ActivationKind::Residual;
  const PatchingMap streams = MapPatching(this->Model, prompt, source, options);
  EXPECT_NEAR(streams.difference[3], streams.source, 1e-5);
  EXPECT_NEAR(streams.difference[4], streams.prompt, 1e-5);
}

TEST_P(Hybrids, RefuseWhatNeedsAttentionInAllLayers)
{
  RecordOptions options;
  options.interventions.list.push_back(
    { { ActivationKind::AttentionOutput, 0 }, Replacement::Zero });
  EXPECT_THAT(
    MessageOf<OptionError>([&] { RecordTransformer(this->Model, this->Input(), options); }),
    HasSubstr("intervention at a0: layer 0 of "));
  EXPECT_THAT(MessageOf<ModelError>([&] { FindHeadComposition(this->Model, {}); }),
    HasSubstr("expected a model without layers that have no attention"));
  EXPECT_THAT(MessageOf<ModelError>([&] { ProcessedTensors(this->Model); }), HasSubstr("expected"));
  EXPECT_THAT(MessageOf<ModelError>([&] { MixerOutputs(this->Model, this->Attention(), {}); }),
    HasSubstr("expected a layer without attention"));
}

/// Without its MLP, a layer adds what its state space does, times the scale that Granite 4 has.
TEST(Hybrid, OutputsAreWhatIsAdded)
{
  const std::filesystem::path folder = AnyOracle("v5/decoder/bamba-a");
  const Transformer stored = Transformer::Read(folder);
  TransformerConfig config = stored.GetConfig();
  config.residualScale = 0.7;
  const Transformer model(config, WeightFiles(stored.GetFiles().GetTensors(), "model.safetensors"));
  ASSERT_FALSE(config.HasAttention(0));
  TransformerInput input;
  input.tokens = { OracleFile(folder / "expected.safetensors").Integers("0.input_ids") };
  RecordOptions options;
  options.residual = true;
  options.interventions.list.push_back({ { ActivationKind::MlpOutput, 0 }, Replacement::Zero });
  const Recording run = RecordTransformer(model, input, options);
  const SharedMatrix outputs = MixerOutputs(model, 0, run.residual[0], 1);
  const float* first = outputs.values.get();
  ASSERT_GT(*std::max_element(first, first + outputs.Count()), 1e-3);
  for (std::uint64_t i = 0; i < outputs.Count(); ++i)
  {
    EXPECT_NEAR(run.residual[0].values.get()[i] + outputs.values.get()[i],
      run.residual[1].values.get()[i], 1e-5);
  }
}

TEST(Hybrid, SpectraAreOfTheLayersWithHeads)
{
  const Transformer model = Transformer::Read(AnyOracle("v5/decoder/lfm2-d"));
  HeadSpectraOptions options;
  options.steps = WeightSteps::Stored;
  options.overVocabulary = false;
  const std::vector<HeadSpectrum> all = FindHeadSpectra(model, options);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all.front().place.layer, 1);
  options.layer = 0;
  EXPECT_THAT(MessageOf<ModelError>([&] { FindHeadSpectra(model, options); }),
    HasSubstr("layer 0 of lfm2 has no attention"));
}

}
