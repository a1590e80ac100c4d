#include "Run/RecordTransformer.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "PartParity.h"
#include "Reports.h"
#include "SameRecording.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"
#include "WholeRuns.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using TransformerOfTiny = OnTiny;

class OracleTransformer : public testing::TestWithParam<std::string>
{
protected:
  OracleTransformer() { this->Everything.logits = this->Model.HasLogits(); }

  Recording RunAll() const
  {
    return RecordTransformer(this->Model, this->Expected.Input(), this->Everything);
  }

  TransformerOracle Expected{ GetParam() };
  Transformer Model = Transformer::Read(this->Expected.Path());
  RecordOptions Everything = AllQuantities();
};

INSTANTIATE_TEST_SUITE_P(, OracleTransformer,
  testing::Values("gpt2", "bert", "vit", "bloom", "llama", "attn-only", "attn-only-shortformer"),
  atlas::test::OracleTest::Name);

TEST_P(OracleTransformer, IsThatOfTheOriginalCode)
{
  const Recording recording = this->RunAll();
  CheckRecording(recording, "recording");
  ASSERT_EQ(recording.layers.size(), 2U);
  ASSERT_EQ(recording.residual.size(), 3U);
  const ExpectedPlaces places = PlacesOf(recording, this->Expected.Places());
  const PartParity parity = { recording, this->Expected.Tensors(), "", places, places };
  std::map<std::string, double> deviations = parity.Deviations();
  EXPECT_EQ(NamesOf(deviations), "attention hidden key outputs query scores value");
  EXPECT_EQ(this->Expected.Has("logits"), recording.logits.IsRecorded());
  if (recording.logits.IsRecorded())
  {
    deviations["logits"] = parity.Deviation("logits", recording.logits, places);
  }
  ExpectSmall(this->GetParam(), deviations);
}

TEST_P(OracleTransformer, NormsOfValuesAreThoseOfWhatTheyWrite)
{
  ExpectValueNorms(this->RunAll(), this->Model.GetWeights().layers, &LayerTensors::output);
}

/// Names of the matrices that are there.
std::string NamesIn(const Recording& recording)
{
  std::string names;
  const auto add = [&](const std::string& name, const SharedMatrix& matrix)
  { names += matrix.IsRecorded() ? name + " " : ""; };
  for (const RecordedLayer& layer : recording.layers)
  {
    names += "layer" + std::to_string(layer.index) + " ";
    for (const RecordedHead& head : layer.heads)
    {
      add("q", head.query);
      add("k", head.key);
      add("v", head.value);
      add("o", head.output);
      add("n", head.valueNorm);
    }
  }
  for (std::size_t l = 0; l < recording.residual.size(); ++l)
  {
    add("residual" + std::to_string(l), recording.residual[l]);
  }
  add("logits", recording.logits);
  return names;
}

TEST_F(TransformerOfTiny, RecordsWhatIsAskedForAndNothingElse)
{
  const TransformerInput input = TinyInput({ 3, 5 });
  const auto namesOf = [&](const RecordOptions& options)
  { return NamesIn(RecordTransformer(this->Model, input, options)); };
  RecordOptions options;
  EXPECT_EQ(namesOf(options), "layer0 q k v n q k v n q k v n layer1 q k v n q k v n q k v n ");
  options.values = false;
  options.layers = { 0 };
  EXPECT_EQ(namesOf(options), "layer0 q k n q k n q k n ");
  options.queriesAndKeys = false;
  options.headOutputs = true;
  options.layers = { 1 };
  EXPECT_EQ(namesOf(options), "layer1 o o o ");
  options.headOutputs = false;
  options.residual = true;
  EXPECT_EQ(namesOf(options), "layer1 residual1 residual2 ");
  options.layers = { 0 };
  EXPECT_EQ(namesOf(options), "layer0 residual0 residual1 ");
  options.residual = false;
  options.logits = true;
  EXPECT_EQ(namesOf(options), "layer0 logits ");
}

TEST_F(TransformerOfTiny, SelectedLayersAreThoseOfAFullRun)
{
  const TransformerInput input = TinyInput({ 3, 5 });
  RecordOptions options = AllQuantities();
  const Recording full = RecordTransformer(this->Model, input, options);
  for (const std::int64_t l : { 0, 1 })
  {
    options.layers = { l };
    options.logits = false;
    const Recording selected = RecordTransformer(this->Model, input, options);
    Recording expected = full;
    expected.logits = {};
    expected.residual[l == 0 ? 2 : 0] = {};
    expected.layers = { full.layers[l] };
    atlas::test::ExpectEqual(selected, expected);
  }
}

TEST_F(TransformerOfTiny, BytesDependNeitherOnThreadsNorOnOtherSequences)
{
  const TransformerInput input = TinyInput({ 1, 300, 5, 130, 320, 17, 320, 2 });
  const Recording together = RecordTransformer(this->Model, input, AllQuantities(1));
  CheckRecording(together, "recording");
  for (const int threads : { 0, 2, 3, 7 })
  {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    atlas::test::ExpectEqual(
      RecordTransformer(this->Model, input, AllQuantities(threads)), together);
  }
  ExpectSameAlone(this->Model, input, AllQuantities(), together);
}

/// The number of tokens in each range.
std::vector<std::int64_t> SplitTokens(
  const Transformer& model, const TransformerInput& input, int parts)
{
  std::vector<std::int64_t> counts;
  std::int64_t next = 0;
  for (const SequenceRange& range : SplitSequences(model, input, parts))
  {
    EXPECT_EQ(range.first, next);
    next = range.end;
    counts.push_back(0);
    for (std::int64_t s = range.first; s < range.end; ++s)
    {
      counts.back() += static_cast<std::int64_t>(input.tokens.at(s).size());
    }
  }
  EXPECT_EQ(next, static_cast<std::int64_t>(input.tokens.size()));
  return counts;
}

TEST_F(TransformerOfTiny, SequencesAreSplitByTheirTokens)
{
  EXPECT_THAT(SplitTokens(this->Model, TinyInput({ 10, 10, 10, 10 }), 1), ElementsAre(40));
  EXPECT_THAT(SplitTokens(this->Model, TinyInput({ 10, 10, 10, 10 }), 2), ElementsAre(20, 20));
  EXPECT_THAT(
    SplitTokens(this->Model, TinyInput({ 100, 20, 20, 20, 40 }), 2), ElementsAre(100, 100));
  EXPECT_THAT(SplitTokens(this->Model, TinyInput({ 1, 2, 300 }), 3), ElementsAre(3, 300, 0));
  EXPECT_THAT(SplitTokens(this->Model, TinyInput({ 5 }), 2), ElementsAre(5, 0));
}

TEST_F(TransformerOfTiny, RangesAddUp)
{
  const TransformerInput input = TinyInput({ 1, 300, 5, 130, 320, 17, 320, 2, 290, 48, 96, 12 });
  ExpectRangesAddUp(
    this->Model, input, AllQuantities(), RecordTransformer(this->Model, input, AllQuantities()));
}

TEST_P(OracleTransformer, RangesAddUp)
{
  ExpectRangesAddUp(this->Model, this->Expected.Input(), this->Everything, this->RunAll());
}

TEST_F(TransformerOfTiny, PartsAreEmptyElsewhere)
{
  const TransformerInput input = TinyInput({ 3, 4, 5 });
  RecordOptions options = AllQuantities();
  options.sequences = { 1, 2 };
  const Recording part = RecordTransformer(this->Model, input, options);
  for (const SharedMatrix& matrix : TokenMatrices(part))
  {
    ASSERT_EQ(matrix.rows, 12);
    EXPECT_THAT(Rows(matrix, 0, 3), testing::Each(0.F));
    EXPECT_THAT(Rows(matrix, 3, 4), testing::Contains(testing::Ne(0.F)));
    EXPECT_THAT(Rows(matrix, 7, 5), testing::Each(0.F));
  }
  EXPECT_EQ(TokenMatrices(part).size(), 2U * 3 * 5 + 3 + 1);
}

TEST_F(TransformerOfTiny, RangesBeyondTheSequencesAreRefused)
{
  for (const SequenceRange& range :
    { SequenceRange{ 1, 3 }, SequenceRange{ -1, 1 }, SequenceRange{ 2, 1 } })
  {
    RecordOptions options;
    options.sequences = range;
    const auto expected = HasSubstr("of the 2 sequences, found " + std::to_string(range.first) +
                                    " to " + std::to_string(range.end));
    EXPECT_THAT(
      MessageOf<OptionError>([&] { RecordTransformer(this->Model, TinyInput({ 3, 4 }), options); }),
      expected);
    EXPECT_THAT(
      MessageOf<OptionError>([&] { EstimateMemory(this->Model, TinyInput({ 3, 4 }), options); }),
      expected);
  }
}

TEST(Transformer, UnalignedWeightsGiveTheSameBytes)
{
  const TinyTransformer tiny;
  const TransformerInput input = TinyInput({ 9, 40 });
  const Recording expected = RecordTransformer(tiny.Make(), input, {});
  std::vector<std::vector<std::byte>> memory;
  TensorViews views;
  for (const auto& [name, tensor] : tiny.tensors)
  {
    memory.emplace_back(1).insert(memory.back().end(), tensor.bytes.begin(), tensor.bytes.end());
    views[name] = { tensor.dtype, tensor.shape, memory.back().data() + 1 };
  }
  const Transformer model(
    ParseTransformerConfig(TinyTransformer::Config(), "config"), WeightFiles(views, "odd"));
  atlas::test::ExpectEqual(RecordTransformer(model, input, {}), expected);
}

TEST_F(TransformerOfTiny, ProgressRisesAndStops)
{
  const TransformerInput input = TinyInput({ 320, 320, 320, 320, 320 });
  std::vector<double> reported;
  RecordOptions options;
  options.progress = KeepReports(reported);
  RecordTransformer(this->Model, input, options);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_THAT(reported, IsSupersetOf({ 0., 0.3, 0.5, 0.8, 1. })); // groups of each layer
  reported.clear();
  options.progress = KeepReports(reported, 3);
  EXPECT_THROW(RecordTransformer(this->Model, input, options), Canceled);
  EXPECT_THAT(reported, SizeIs(3));
}

TEST_F(TransformerOfTiny, ProgressOfOneLongSequenceRisesWithinALayer)
{
  std::vector<double> reported;
  RecordOptions options;
  options.threads = 1;
  options.progress = KeepReports(reported);
  const TransformerInput input = TinyInput({ 320 });
  RecordTransformer(this->Model, input, options);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  // Before the embedding and each layer. Of heads, blocks of 128 queries: the last ends before the
  // MLP begins.
  const auto second = std::find(reported.begin(), reported.end(), 0.5);
  ASSERT_NE(second, reported.end());
  EXPECT_EQ(second - reported.begin(), 2 + 3 * this->Model.GetConfig().heads);
  EXPECT_LT(*std::prev(second), 0.5);
  reported.clear();
  options.progress = KeepReports(reported, 3);
  EXPECT_THROW(RecordTransformer(this->Model, input, options), Canceled);
  EXPECT_THAT(reported, ElementsAre(0, 0, AllOf(Gt(0), Lt(0.5))));
}

TEST_F(TransformerOfTiny, MemoryIsKnownBeforehand)
{
  const TransformerInput input = TinyInput({ 3, 320, 7 });
  RecordOptions options = AllQuantities();
  ExpectMemory(this->Model, input, options);
  EXPECT_GT(EstimateMemory(this->Model, input, options).working, 0U);
  options.layers = { 1 };
  options.values = false;
  ExpectMemory(this->Model, input, options);
}

TEST_F(TransformerOfTiny, BadInputIsRefused)
{
  const auto refusal = [&](const TransformerInput& input, const RecordOptions& options = {})
  { return MessageOf<OptionError>([&] { RecordTransformer(this->Model, input, options); }); };
  const auto tokens = [](std::vector<std::vector<std::int64_t>> sequences)
  {
    TransformerInput input;
    input.tokens = std::move(sequences);
    return input;
  };
  const std::vector<std::pair<TransformerInput, std::string>> rows = {
    { {}, "at least one sequence of token ids for a model of architecture gpt2, found none" },
    { tokens({ { 1 }, {} }), "sequence 1 is empty" },
    { tokens({ { 1 }, { 0, 12, 13 } }),
      "sequence 1, position 2: expected a token id from 0 to 12" },
    { tokens({ { -1 } }), "sequence 0, position 0: expected a token id from 0 to 12, found -1" },
    { TinyInput({ 320, 327 }), "sequence 1 has 327 tokens, 7 more than the 320 positions" }
  };
  for (const auto& [input, message] : rows)
  {
    EXPECT_THAT(refusal(input), HasSubstr(message));
  }
  TransformerInput typed = tokens({ { 1, 2 } });
  typed.segments = { { 0 } };
  EXPECT_THAT(refusal(typed), HasSubstr("sequence 0: expected a segment for each of its 2 tokens"));
  typed.segments = { { 0, 0 } };
  EXPECT_THAT(refusal(typed), HasSubstr("expected no segments"));
  typed.segments = { {}, {} };
  EXPECT_THAT(refusal(typed), HasSubstr("segments for each of the 1 sequences, found those of 2"));
  TransformerInput image;
  image.images = 1;
  EXPECT_THAT(refusal(image), HasSubstr("found images"));
  RecordOptions options;
  options.layers = { 0, 2 };
  EXPECT_THAT(refusal(TinyInput({ 2 }), options), HasSubstr("layers from 0 to 1, found 2"));
}

TEST(Transformer, LogitsNeedAnUnembedding)
{
  const TinyTransformer tiny;
  std::string config = TinyTransformer::Config();
  config.back() = ',';
  const Transformer model = tiny.Make(config + R"("tie_word_embeddings": false})");
  RecordOptions options;
  options.logits = true;
  EXPECT_THAT(MessageOf<OptionError>([&] { RecordTransformer(model, TinyInput({ 2 }), options); }),
    HasSubstr("the model has no unembedding"));
}

TEST(Transformer, ActivationsThatAreNoNumbersAreFound)
{
  TinyTransformer tiny;
  const TransformerInput input = TinyInput({ 2, 3 });
  RecordOptions options;
  const auto refusal = [&]
  {
    const Transformer model = tiny.Make();
    return MessageOf<ModelError>([&] { RecordTransformer(model, input, options); });
  };
  tiny.Set("h.1.mlp.c_proj.bias", 3, std::numeric_limits<float>::infinity());
  EXPECT_THAT(refusal(), HasSubstr("layer 1: an activation is inf (sequence 0, position 0)"));
  tiny.Set("h.0.attn.c_attn.bias", 5, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(refusal(), HasSubstr("layer 0: an activation is nan"));
  // The position of the third token, which only the second sequence has.
  tiny.Set(
    "wpe.weight", 2 * TinyTransformer::ModelDimension, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(refusal(), HasSubstr("the embedding: an activation is nan (sequence 1, position 2)"));
  options.sequences = { 1, 2 };
  EXPECT_THAT(refusal(), HasSubstr("the embedding: an activation is nan (sequence 1, position 2)"));
  options.sequences = { 0, 1 };
  EXPECT_THAT(refusal(), HasSubstr("layer 0: an activation is nan (sequence 0"));
}

TEST(Transformer, ImagesOfAnotherSizeAreRefused)
{
  const TransformerOracle oracle("vit");
  const Transformer model = Transformer::Read(oracle.Path());
  TransformerInput input = oracle.Input();
  input.pixels.pop_back();
  const auto refusal = [&]
  { return MessageOf<OptionError>([&] { RecordTransformer(model, input, {}); }); };
  EXPECT_THAT(refusal(), HasSubstr("pixels of shape [2, 3, 32, 32], found 6143"));
  input = {};
  EXPECT_THAT(refusal(), HasSubstr("expected at least one image for a model of architecture vit"));
}

TEST(Transformer, PatchesKnowTheirPlace)
{
  const TransformerOracle oracle("vit");
  const Transformer model = Transformer::Read(oracle.Path());
  const Recording recording = RecordTransformer(model, oracle.Input(), {});
  EXPECT_EQ(recording.tokens.row[17], -1);
  EXPECT_EQ(recording.tokens.row[18 + 6], 1);
  EXPECT_EQ(recording.tokens.column[18 + 6], 2);
  EXPECT_THAT(recording.tokens.id, IsEmpty());
}

TEST(Transformer, HeadsOfAGroupShareTheirKeys)
{
  const TransformerOracle oracle("llama");
  const Transformer model = Transformer::Read(oracle.Path());
  const Recording recording = RecordTransformer(model, oracle.Input(), {});
  const std::vector<RecordedHead>& heads = recording.layers[1].heads;
  EXPECT_EQ(heads[0].key.Row(0), heads[1].key.Row(0));
  EXPECT_EQ(heads[2].value.Row(0), heads[3].value.Row(0));
  EXPECT_NE(heads[1].key.Row(0), heads[2].key.Row(0));
  EXPECT_TRUE(recording.rotated);
  EXPECT_EQ(recording.architecture, "llama");
}

}
