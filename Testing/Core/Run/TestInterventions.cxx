#include "Run/Interventions.h"

#include "Base/Index.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "ReferenceTransformer.h"
#include "Reports.h"
#include "Run/PromptMeans.h"
#include "SameRecording.h"
#include "TinyTransformer.h"
#include "WholeRuns.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using Matrix = ReferenceTransformer::Matrix;

namespace
{

using InterventionsOfTiny = OnTiny;
using PatchingOfTiny = OnTiny;
using RecordTransformerOfTiny = OnTiny;
using SumOverPromptsOfTiny = OnTiny;

constexpr const char* Models[] = { "gpt2", "attn-only", "attn-only-shortformer" };

RecordOptions Everything(const Interventions& interventions, const Transformer& model)
{
  RecordOptions options = AllQuantities(1);
  options.logits = model.HasLogits();
  options.interventions = interventions;
  return options;
}

Interventions Made(
  const std::string& sites, Replacement by, const std::vector<std::int64_t>& source = {})
{
  Interventions interventions;
  for (const ActivationSite& site : ParseSites(sites, "sites"))
  {
    interventions.list.push_back({ site, by });
  }
  interventions.source.tokens = { source };
  return interventions;
}

std::string SitesOf(const std::string& text)
{
  std::string found;
  for (const ActivationSite& site : ParseSites(text, "PatchSites"))
  {
    found += ToText(site) + " ";
  }
  return found;
}

/// A copy of a model in which W_O of a head is 0.
class WithoutHead
{
public:
  WithoutHead(const Transformer& model, std::int64_t layer, std::int64_t head)
    : Weights(atlas::test::CopyTensors(model.GetFiles().GetTensors()))
  {
    const LinearTensors& output = model.GetWeights().layers[layer].output;
    std::string name;
    for (const auto& [key, view] : model.GetFiles().GetTensors())
    {
      name = view.data == output.weight.data ? key : name;
    }
    Tensor& tensor = this->Weights.at(name);
    std::vector<double> values = tensor.View().ToDouble();
    const std::int64_t size = model.GetConfig().WithSizesOf(layer).headDimension;
    for (std::int64_t i = head * size; i < (head + 1) * size; ++i)
    {
      for (std::int64_t o = 0; o < output.outputs; ++o)
      {
        const bool isTransposed = output.layout == WeightLayout::OutputInput;
        values[isTransposed ? o * output.inputs + i : i * output.outputs + o] = 0;
      }
    }
    tensor = Tensor::FromDouble(DType::F32, tensor.shape, values);
    this->Config = model.GetConfig();
  }

  Transformer Make() const
  {
    return { this->Config, WeightFiles(ViewsOf(this->Weights), "edited") };
  }

private:
  Tensors Weights;
  TransformerConfig Config;
};

Recording Recorded(
  const Transformer& model, const TransformerInput& input, const Interventions& interventions)
{
  return RecordTransformer(model, input, Everything(interventions, model));
}

/// Forgets what cannot be the same with W_O = 0: the norms of value W_O, and the note.
Recording WithoutNorms(Recording recording)
{
  recording.interventions.clear();
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.valueNorm = {};
    }
  }
  return recording;
}

/// The first two sequences, cut to the same length.
std::vector<std::vector<std::int64_t>> Pair(const TransformerInput& input)
{
  std::vector<std::vector<std::int64_t>> pair = { input.tokens[0], input.tokens[1] };
  const std::size_t length = std::min(pair[0].size(), pair[1].size());
  pair[0].resize(length);
  pair[1].resize(length);
  return pair;
}

/// The logits of a sequence, within 1e-5 of the largest.
void ExpectNear(const Recording& found, std::size_t s, const Matrix& expected)
{
  const Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>> logits(
    found.logits.Row(found.sequenceOffsets[s]), expected.rows(), expected.cols());
  EXPECT_LE((logits.cast<double>() - expected).cwiseAbs().maxCoeff(),
    1e-5 * std::max(1.0, expected.cwiseAbs().maxCoeff()))
    << found.interventions;
}

void ExpectLogits(
  const Transformer& model, const TransformerInput& input, const Interventions& interventions)
{
  const Recording found = Recorded(model, input, interventions);
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const Matrix expected = ReferenceLogits(model, input.tokens[s], interventions);
    const Matrix plain = ReferenceTransformer(model).Logits(input.tokens[s]);
    EXPECT_GT((expected - plain).cwiseAbs().maxCoeff(), 1e-3) << "nothing was changed";
    ExpectNear(found, s, expected);
  }
}

TEST(ParseSites, ReadsHeadsResidualsAndSublayers)
{
  EXPECT_EQ(SitesOf(""), "");
  EXPECT_EQ(SitesOf(" 2.5, 3.11\n2.5@3 r0@4 r2 a1@0 m1 "), "2.5 3.11 2.5@3 r0@4 r2 a1@0 m1 ");
}

TEST(ParseSites, NamesTheWordThatIsNone)
{
  for (const char* word : { "2", "2.", ".5", "2.5@", "2.5@-1", "-1.0", "x2", "r", "r2.5", "2.5x",
         "2.5@3@4", "99999999999999999999.0", "2:5" })
  {
    EXPECT_THAT(
      MessageOf<OptionError>([&] { ParseSites(std::string("0.0 ") + word, "PatchSites"); }),
      AllOf(HasSubstr("PatchSites: expected heads such as 2.5"),
        HasSubstr("found '" + std::string(word) + "'")));
  }
  EXPECT_EQ(ParseHeadSites("1.2", "Ablate").size(), 1U);
  EXPECT_THAT(MessageOf<OptionError>([] { ParseHeadSites("1.2 r2", "Ablate"); }),
    AllOf(HasSubstr("Ablate: expected heads such as 2.5"), HasSubstr("found 'r2'")));
}

TEST(Interventions, AreToldInWords)
{
  Interventions interventions = Made("0.1 1.2", Replacement::Zero);
  interventions.list.push_back({ ParseSites("r1@3", "")[0], Replacement::Source });
  EXPECT_EQ(ToText(interventions), "0.1, 1.2 to zero; r1@3 from another input");
  interventions.list[1].by = Replacement::MeanOverPrompts;
  interventions.list[2].by = Replacement::MeanOverPositions;
  EXPECT_EQ(ToText(interventions),
    "0.1 to zero; r1@3 to the mean over positions; 1.2 to the mean over other prompts");
  EXPECT_EQ(ToText(Interventions()), "");
}

TEST_F(InterventionsOfTiny, MustBeInTheModelAndTheSequences)
{
  const TransformerInput input = TinyInput({ 5, 5 });
  const auto message = [&](const std::string& sites, const std::vector<std::int64_t>& source)
  {
    return MessageOf<OptionError>(
      [&]
      {
        RecordTransformer(
          this->Model, input, Everything(Made(sites, Replacement::Source, source), this->Model));
      });
  };
  const std::vector<std::int64_t> same = { 1, 2, 3, 4, 5 };
  const std::vector<std::tuple<const char*, std::vector<std::int64_t>, const char*>> rows = {
    { "2.0", same, "at 2.0: expected a layer from 0 to 1, found 2" },
    { "r2", same, "at r2: expected a layer from 0 to 1, found 2" },
    { "1.3", same, "at 1.3: expected a head from 0 to 2, found 3" },
    { "1.2@5", same, "at 1.2@5: expected a position of sequence 0 from 0 to 4, found 5" },
    { "1.2", { 1, 2 }, "expected as many tokens as sequence 0, 5, found 2" },
    { "1.2", { 1, 2, 3, 4, 13 }, "13" }, { "1.2", {}, "empty" }
  };
  for (const auto& [sites, source, expected] : rows)
  {
    EXPECT_THAT(message(sites, source), HasSubstr(expected));
  }
  const std::vector<ActivationSite> last = ParseSites("1.2@4", "");
  Interventions cut;
  cut.list = { { last.front(), Replacement::Zero } };
  EXPECT_NO_THROW(CheckInterventions(this->Model.GetConfig(), { 5, 5 }, cut));
  EXPECT_THAT(
    MessageOf<OptionError>([&] { CheckInterventions(this->Model.GetConfig(), { 5, 3 }, cut); }),
    HasSubstr("at 1.2@4: expected a position of sequence 1 from 0 to 2, found 4"));
  EXPECT_THAT(MessageOf<OptionError>([] { RequireSameLength({ "a", "b" }, { "c" }); }),
    HasSubstr("as many tokens as the prompt, 2 ('a' 'b'), found 1 ('c')"));
  const TransformerOracle oracle("attn-only");
  const Transformer attention = Transformer::Read(oracle.Path());
  EXPECT_THAT(MessageOf<OptionError>(
                [&] { Recorded(attention, oracle.Input(), Made("m0", Replacement::Zero)); }),
    HasSubstr("at m0: the model has no MLPs"));
}

TEST(Ablation, ToZeroIsTheRunWithoutTheHeadsOutputWeights)
{
  for (const char* name :
    { "gpt2", "bloom", "llama", "bert", "vit", "attn-only", "attn-only-shortformer" })
  {
    SCOPED_TRACE(name);
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    const std::int64_t layer = model.GetConfig().layers - 1;
    for (const std::int64_t l : { std::int64_t{ 0 }, layer })
    {
      const WithoutHead edited(model, l, 1);
      const Transformer other = edited.Make();
      const Recording found =
        Recorded(model, oracle.Input(), Made(std::to_string(l) + ".1", Replacement::Zero));
      EXPECT_NE(found.interventions, "");
      atlas::test::ExpectEqual(
        WithoutNorms(found), WithoutNorms(Recorded(other, oracle.Input(), {})));
    }
  }
}

/// Layers of these differ in the sizes of their heads or MLPs, and share keys and values.
TEST(Ablation, OfLayersOfDifferentSizesIsTheRunWithoutTheHeadsOutputWeights)
{
  for (const std::string name : { "gemma3n_text-a", "gemma4_text-a", "gemma4_text-c" })
  {
    SCOPED_TRACE(name);
    const std::filesystem::path folder = AnyOracle("v5/decoder/" + name);
    const Transformer model = Transformer::Read(folder);
    const OracleFile oracle(folder / "expected.safetensors");
    TransformerInput input;
    input.tokens = { oracle.Integers("0.input_ids") };
    RecordOptions options;
    options.logits = true;
    const Recording whole = RecordTransformer(model, input, options);
    for (std::int64_t l = 0; l < model.GetConfig().layers; ++l)
    {
      const WithoutHead edited(model, l, 1);
      const Transformer other = edited.Make();
      options.interventions = Made(std::to_string(l) + ".1", Replacement::Zero);
      const Recording found = RecordTransformer(model, input, options);
      options.interventions = {};
      const Recording expected = RecordTransformer(other, input, options);
      ASSERT_EQ(found.logits.Count(), expected.logits.Count());
      double difference = 0;
      double change = 0;
      for (std::size_t i = 0; i < found.logits.Count(); ++i)
      {
        const auto logit = static_cast<double>(found.logits.values.get()[i]);
        const double without = static_cast<double>(expected.logits.values.get()[i]) - logit;
        difference = std::max(difference, std::abs(without));
        change =
          std::max(change, std::abs(static_cast<double>(whole.logits.values.get()[i]) - logit));
      }
      EXPECT_LT(difference, 1e-4) << "layer " << l;
      EXPECT_GT(change, 1e-2) << "layer " << l;
    }
    EXPECT_THAT(MessageOf<ModelError>(
                  [&]
                  {
                    options.interventions = Made("0.1", Replacement::Source, input.tokens[0]);
                    RecordTransformer(model, input, options);
                  }),
      HasSubstr(
        "replacing activations by those of other inputs: expected a model without layers of "
        "different sizes"));
  }
}

TEST(Ablation, OfOneOfSeveralStreamsIsRefused)
{
  const std::filesystem::path folder = AnyOracle("v5/decoder/gemma3n_text-a");
  const Transformer model = Transformer::Read(folder);
  TransformerInput input;
  input.tokens = { OracleFile(folder / "expected.safetensors").Integers("0.input_ids") };
  RecordOptions options;
  options.interventions = Made("r1", Replacement::Zero);
  EXPECT_THAT(MessageOf<OptionError>([&] { RecordTransformer(model, input, options); }),
    HasSubstr("at r1: the model has 2 residual streams"));
}

TEST(Ablation, EqualsAReference)
{
  for (const char* name : Models)
  {
    SCOPED_TRACE(name);
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    const TransformerInput input = oracle.Input();
    ExpectLogits(model, input, Made("0.0", Replacement::MeanOverPositions));
    ExpectLogits(model, input, Made("0.1 1.0", Replacement::MeanOverPositions));
    ExpectLogits(model, input, Made("0.0 0.1 1.1", Replacement::Zero));
    ExpectLogits(model, input, Made("1.0@1", Replacement::MeanOverPositions));
  }
}

TEST(Ablation, ToTheMeanOfOtherPromptsEqualsAReference)
{
  for (const char* name : Models)
  {
    SCOPED_TRACE(name);
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    TransformerInput input = oracle.Input();
    input.tokens.push_back({ 3, 1, 2 });
    const std::size_t count = input.tokens.size();
    for (const char* sites : { "1.1", "0.0 1.0", "0.1@1 a1", "r1 1.0@0" })
    {
      Interventions interventions = Made(sites, Replacement::MeanOverPrompts);
      interventions.list.push_back({ ParseSites("0.1", "")[0], Replacement::Zero });
      RecordOptions options = Everything(interventions, model);
      interventions.means = MeansOverOthers(
        SumOverPrompts(model, input, options), SequenceLengths(model.GetConfig(), input));
      const Recording found = Recorded(model, input, interventions);
      for (std::size_t s = 0; s < count; ++s)
      {
        std::vector<std::vector<std::int64_t>> others = input.tokens;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(s));
        const Matrix expected = ReferenceLogits(model, input.tokens[s], interventions, others);
        ExpectNear(found, s, expected);
      }
    }
  }
}

TEST(MeansOverOthers, AreThoseOfAllTokensOfTheOthers)
{
  // Two columns; sums of prompts of 1, 2 and 3 tokens.
  const std::vector<double> sums = { 1, 10, 4, 20, 9, 60 };
  EXPECT_THAT(MeansOverOthers(sums, { 1, 2, 3 }),
    testing::ElementsAre(13 / 5.F, 80 / 5.F, 10 / 4.F, 70 / 4.F, 5 / 3.F, 30 / 3.F));
  EXPECT_THAT(MeanOverAll(sums, { 1, 2, 3 }), testing::ElementsAre(14 / 6.F, 90 / 6.F));
  EXPECT_THAT(MessageOf<OptionError>([] { MeansOverOthers({ 1, 2 }, { 3 }); }),
    HasSubstr("the mean over other prompts: expected two prompts or more, found one"));
}

TEST_F(SumOverPromptsOfTiny, IsTheSameInRangesAndOnThreads)
{
  const TransformerInput input = TinyInput({ 70, 3, 320, 320, 320, 70 });
  RecordOptions options = Everything(Made("0.1 r1 m1", Replacement::MeanOverPrompts), this->Model);
  const std::vector<double> whole = SumOverPrompts(this->Model, input, options);
  const std::int64_t columns = MeanColumns(this->Model.GetConfig(), options.interventions);
  ASSERT_EQ(whole.size(), 6 * ToIndex(columns));
  options.threads = 4;
  EXPECT_EQ(SumOverPrompts(this->Model, input, options), whole);
  std::vector<double> together(whole.size());
  for (const SequenceRange range :
    { SequenceRange{ 0, 1 }, SequenceRange{ 1, 3 }, SequenceRange{ 3, 3 }, SequenceRange{ 3, 6 } })
  {
    options.sequences = range;
    const std::vector<double> part = SumOverPrompts(this->Model, input, options);
    for (std::size_t i = 0; i < part.size(); ++i)
    {
      together[i] += part[i];
    }
  }
  EXPECT_EQ(together, whole);
  std::vector<double> reports;
  options.sequences.reset();
  options.progress = KeepReports(reports, 3);
  EXPECT_THROW(SumOverPrompts(this->Model, input, options), Canceled);
  EXPECT_EQ(reports.size(), 3U);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_LE(reports.back(), 1);
}

TEST_F(RecordTransformerOfTiny, RefusesToReplaceByMeansThatAreNotGiven)
{
  const std::int64_t size = this->Model.GetConfig().headDimension;
  EXPECT_THAT(
    MessageOf<OptionError>([&]
      { Recorded(this->Model, TinyInput({ 5, 4 }), Made("0.1", Replacement::MeanOverPrompts)); }),
    HasSubstr("expected " + std::to_string(2 * size) + " means over prompts, found 0"));
}

TEST(Patching, EqualsAReference)
{
  for (const char* name : Models)
  {
    SCOPED_TRACE(name);
    const TransformerOracle oracle(name);
    const Transformer model = Transformer::Read(oracle.Path());
    const std::vector<std::vector<std::int64_t>> pair = Pair(oracle.Input());
    TransformerInput input;
    input.tokens = { pair[0] };
    const std::string last = "@" + std::to_string(pair[0].size() - 1);
    std::vector<std::string> sites = { "0.0", "1.1", "0.1" + last, "r0@1", "r1" + last, "a0" + last,
      "a1", "r1@0 1.0" };
    if (model.GetConfig().mlpDimension > 0)
    {
      sites.insert(sites.end(), { "m0" + last, "m1", "0.0 m0@1 r1@1" });
    }
    for (const std::string& text : sites)
    {
      ExpectLogits(model, input, Made(text, Replacement::Source, pair[1]));
    }
  }
}

TEST_F(PatchingOfTiny, OfTheWholeFirstResidualIsTheOtherRun)
{
  const TransformerInput inputs = TinyInput({ 30, 30 });
  TransformerInput first;
  first.tokens = { inputs.tokens[0] };
  TransformerInput second;
  second.tokens = { inputs.tokens[1] };
  Recording found = Recorded(this->Model, first, Made("r0", Replacement::Source, inputs.tokens[1]));
  found.tokens.id = inputs.tokens[1];
  atlas::test::ExpectEqual(WithoutNorms(found), WithoutNorms(Recorded(this->Model, second, {})));
}

TEST_F(PatchingOfTiny, GivesTheSameBytesOnAnyNumberOfThreadsAndInRanges)
{
  const TransformerInput input = TinyInput({ 70, 70, 70 });
  Interventions interventions =
    Made("0.1 r1@2 m1", Replacement::Source, TinyInput({ 70 }).tokens[0]);
  interventions.list.push_back(
    { { ActivationKind::HeadOutput, 1, 2 }, Replacement::MeanOverPositions });
  const Recording whole = Recorded(this->Model, input, interventions);
  RecordOptions options = Everything(interventions, this->Model);
  options.threads = 4;
  atlas::test::ExpectEqual(RecordTransformer(this->Model, input, options), whole);
  options.sequences = SequenceRange{ 1, 2 };
  const Recording part = RecordTransformer(this->Model, input, options);
  EXPECT_EQ(atlas::test::Rows(part.logits, 70, 70), atlas::test::Rows(whole.logits, 70, 70));
}

TEST_F(PatchingOfTiny, ReportsProgressAndStops)
{
  const TransformerInput input = TinyInput({ 7, 7 });
  RecordOptions options =
    Everything(Made("1.1", Replacement::Source, TinyInput({ 7 }).tokens[0]), this->Model);
  const std::vector<double> reports =
    ExpectReports(options.progress, [&] { RecordTransformer(this->Model, input, options); });
  EXPECT_GT(reports.front(), 0);
}

}
