#include "RecordTransformer.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "RecordedAttention.h"
#include "Reports.h"
#include "SameRecording.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

constexpr double OracleTolerance = 1e-4;
constexpr double OracleStreamTolerance = 5e-4; ///< of hidden states and logits

RecordOptions Everything()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  return options;
}

/// The first `length` rows and columns of an expected matrix [T, T] that begins at `offset`.
std::vector<double> Corner(
  const std::vector<double>& values, std::int64_t offset, std::int64_t length, std::int64_t stride)
{
  std::vector<double> corner;
  for (std::int64_t row = 0; row < length; ++row)
  {
    const auto begin = values.begin() + offset + row * stride;
    corner.insert(corner.end(), begin, begin + length);
  }
  return corner;
}

class OracleTransformer : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override
  {
    this->Expected.emplace(this->GetParam());
    this->Model.emplace(Transformer::Read(this->Expected->Path()));
  }

  Recording RunAll(RecordOptions options = Everything()) const
  {
    options.logits = this->Model->HasLogits();
    return RecordTransformer(*this->Model, this->Expected->Input(), options);
  }

  std::optional<TransformerOracle> Expected;
  std::optional<Transformer> Model;
};

INSTANTIATE_TEST_SUITE_P(, OracleTransformer,
  testing::Values("gpt2", "bert", "vit", "bloom", "llama", "attn-only", "attn-only-shortformer"),
  atlas::test::OracleTest::Name);

TEST_P(OracleTransformer, QueriesKeysValuesAndOutputsOfEachHead)
{
  const Recording recording = this->RunAll();
  CheckRecording(recording, "recording");
  ASSERT_EQ(recording.layers.size(), 2U);
  for (const RecordedLayer& layer : recording.layers)
  {
    ASSERT_EQ(layer.heads.size(), 4U);
    for (std::int64_t h = 0; h < 4; ++h)
    {
      const RecordedHead& head = layer.heads[h];
      for (const auto& [name, matrix] :
        { std::pair("query", &head.query), std::pair("key", &head.key),
          std::pair("value", &head.value), std::pair("head_output", &head.output) })
      {
        ExpectRows(*this->Expected, recording, "layer." + std::to_string(layer.index) + "." + name,
          h, *matrix, OracleTolerance);
      }
    }
  }
}

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// W_O [heads d_head, d_model] of a layer.
Matrix OutputWeights(const Transformer& model, std::int64_t layer)
{
  const LinearTensors& output = model.GetWeights().layers[layer].output;
  const std::vector<double> values = output.weight.ToDouble();
  if (output.layout == WeightLayout::OutputInput)
  {
    return Eigen::Map<const Matrix>(values.data(), output.outputs, output.inputs).transpose();
  }
  return Eigen::Map<const Matrix>(values.data(), output.inputs, output.outputs);
}

/// The values of the original code times W_O, in double. Values of a group of heads are shared, but
/// not their norms.
TEST_P(OracleTransformer, NormsOfValues)
{
  const Recording recording = this->RunAll();
  const std::int64_t dimension = this->Model->GetConfig().headDimension;
  for (std::int64_t l = 0; l < 2; ++l)
  {
    const std::string name = "layer." + std::to_string(l) + ".value";
    const std::int64_t padded = this->Expected->Get(name).shape[2];
    const Matrix weights = OutputWeights(*this->Model, l);
    for (std::int64_t h = 0; h < 4; ++h)
    {
      std::vector<double> expected;
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        const std::vector<double> all = this->Expected->Values(name, s);
        const Eigen::Map<const Matrix> values(
          all.data() + h * padded * dimension, recording.SequenceLength(s), dimension);
        const Eigen::VectorXd norms =
          (values * weights.middleRows(h * dimension, dimension)).rowwise().norm();
        expected.insert(expected.end(), norms.begin(), norms.end());
      }
      const RecordedHead& head = recording.layers[l].heads[h];
      ExpectClose("value norm", Rows(head.valueNorm, 0, recording.tokens.Count()), expected, 1e-5);
    }
  }
}

TEST_P(OracleTransformer, AttentionIsRecomputed)
{
  const Recording recording = this->RunAll();
  for (const auto& [name, quantity] : { std::pair("scores", AttentionQuantity::Scores),
         std::pair("attention", AttentionQuantity::Weights) })
  {
    for (std::int64_t l = 0; l < 2; ++l)
    {
      const std::string expected = "layer." + std::to_string(l) + "." + name;
      const std::int64_t padded = this->Expected->Get(expected).shape[3];
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        const std::int64_t length = recording.SequenceLength(s);
        std::vector<float> found(length * length);
        for (std::int64_t h = 0; h < 4; ++h)
        {
          // In blocks of 7 queries.
          for (std::int64_t q = 0; q < length; q += 7)
          {
            EvaluateAttention(
              recording, s, l, h, quantity, q, std::min(q + 7, length), found.data() + q * length);
          }
          ExpectClose(expected, found,
            Corner(this->Expected->Values(expected, s), h * padded * padded, length, padded),
            OracleTolerance);
        }
      }
    }
  }
}

TEST_P(OracleTransformer, ResidualAndLogits)
{
  const Recording recording = this->RunAll();
  ASSERT_EQ(recording.residual.size(), 3U);
  std::vector<std::pair<std::string, SharedMatrix>> quantities = { { "hidden.0",
                                                                     recording.residual[0] },
    { "hidden.1", recording.residual[1] }, { "hidden.2", recording.residual[2] } };
  EXPECT_EQ(this->Expected->Has("logits"), recording.logits.IsRecorded());
  if (recording.logits.IsRecorded())
  {
    quantities.emplace_back("logits", recording.logits);
  }
  for (const auto& [name, matrix] : quantities)
  {
    ExpectRows(*this->Expected, recording, name, 0, matrix, OracleStreamTolerance);
  }
}

/// Names of the matrices that are there, and all their bytes in one string.
std::pair<std::string, std::string> Contents(const Recording& recording)
{
  std::string names;
  std::string bytes;
  const auto add = [&](const std::string& name, const SharedMatrix& matrix)
  {
    if (matrix.IsRecorded())
    {
      names += name + " ";
      bytes.append(reinterpret_cast<const char*>(matrix.Row(0)), matrix.Count() * sizeof(float));
    }
  };
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
  return { names, bytes };
}

TEST(Transformer, RecordsWhatIsAskedForAndNothingElse)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 3, 5 });
  const auto namesOf = [&](const RecordOptions& options)
  { return Contents(RecordTransformer(model, input, options)).first; };
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

TEST(Transformer, SelectedLayersAreThoseOfAFullRun)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 3, 5 });
  RecordOptions options = Everything();
  options.logits = true;
  const Recording full = RecordTransformer(model, input, options);
  for (const std::int64_t l : { 0, 1 })
  {
    options.layers = { l };
    options.logits = false;
    Recording selected = RecordTransformer(model, input, options);
    Recording expected = full;
    expected.logits = {};
    expected.residual[l == 0 ? 2 : 0] = {};
    expected.layers = { full.layers[l] };
    EXPECT_EQ(Contents(selected), Contents(expected));
  }
}

TEST(Transformer, BytesDoNotDependOnThreads)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 1, 300, 5, 130, 320, 17, 320, 2 });
  RecordOptions options = Everything();
  options.logits = true;
  options.threads = 1;
  const auto expected = Contents(RecordTransformer(model, input, options));
  for (const int threads : { 0, 2, 3, 7 })
  {
    options.threads = threads;
    EXPECT_TRUE(Contents(RecordTransformer(model, input, options)) == expected)
      << threads << " threads";
  }
}

TEST(Transformer, SequencesDoNotSeeEachOther)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 1, 300, 5, 130, 17, 2, 320, 320 });
  RecordOptions options = Everything();
  options.logits = true;
  const Recording together = RecordTransformer(model, input, options);
  CheckRecording(together, "recording");
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    TransformerInput one;
    one.tokens = { input.tokens[s] };
    const Recording alone = RecordTransformer(model, one, options);
    const std::int64_t length = together.SequenceLength(static_cast<std::int64_t>(s));
    const auto expectEqual = [&](const char* name, const SharedMatrix& a, const SharedMatrix& b)
    {
      EXPECT_TRUE(Rows(a, 0, length) == Rows(b, together.sequenceOffsets[s], length))
        << name << " of sequence " << s;
    };
    expectEqual("logits", alone.logits, together.logits);
    for (std::size_t l = 0; l < 2; ++l)
    {
      expectEqual("residual", alone.residual[l + 1], together.residual[l + 1]);
      for (std::size_t h = 0; h < 3; ++h)
      {
        const RecordedHead& head = together.layers[l].heads[h];
        expectEqual("query", alone.layers[l].heads[h].query, head.query);
        expectEqual("output", alone.layers[l].heads[h].output, head.output);
      }
    }
  }
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

TEST(Transformer, SequencesAreSplitByTheirTokens)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  EXPECT_THAT(SplitTokens(model, TinyInput({ 10, 10, 10, 10 }), 1), ElementsAre(40));
  EXPECT_THAT(SplitTokens(model, TinyInput({ 10, 10, 10, 10 }), 2), ElementsAre(20, 20));
  EXPECT_THAT(SplitTokens(model, TinyInput({ 100, 20, 20, 20, 40 }), 2), ElementsAre(100, 100));
  EXPECT_THAT(SplitTokens(model, TinyInput({ 1, 2, 300 }), 3), ElementsAre(3, 300, 0));
  EXPECT_THAT(SplitTokens(model, TinyInput({ 5 }), 2), ElementsAre(5, 0));
}

/// Copies the rows of a range of sequences from one recording to another.
void CopyRows(const Recording& from, const SequenceRange& range, const Recording& to)
{
  const std::int64_t begin = from.sequenceOffsets[range.first];
  const std::int64_t end = from.sequenceOffsets[range.end];
  const std::vector<SharedMatrix> source = TokenMatrices(from);
  const std::vector<SharedMatrix> target = TokenMatrices(to);
  ASSERT_EQ(source.size(), target.size());
  for (std::size_t i = 0; i < source.size(); ++i)
  {
    ASSERT_EQ(source[i].columns, target[i].columns);
    std::copy(source[i].Row(begin), source[i].Row(end), target[i].Row(begin));
  }
}

/// Records each of some parts of an input by itself; expects that together they are the whole.
void ExpectWholeFromParts(const Transformer& model, const TransformerInput& input)
{
  RecordOptions options = Everything();
  options.logits = model.HasLogits();
  const Recording whole = RecordTransformer(model, input, options);
  const std::uint64_t memory = EstimateMemory(model, input, options).working;
  for (const int parts : { 2, 3, 12 })
  {
    std::optional<Recording> joined;
    for (const SequenceRange& range : SplitSequences(model, input, parts))
    {
      options.sequences = range;
      EXPECT_LE(EstimateMemory(model, input, options).working, memory);
      const Recording part = RecordTransformer(model, input, options);
      if (!joined)
      {
        joined = part;
      }
      CopyRows(part, range, *joined);
    }
    SCOPED_TRACE(std::to_string(parts) + " parts");
    atlas::test::ExpectEqual(*joined, whole);
  }
}

TEST(Transformer, PartsMakeUpTheWhole)
{
  const TinyTransformer tiny;
  ExpectWholeFromParts(
    tiny.Make(), TinyInput({ 1, 300, 5, 130, 320, 17, 320, 2, 290, 48, 96, 12 }));
}

TEST_P(OracleTransformer, PartsMakeUpTheWhole)
{
  ExpectWholeFromParts(*this->Model, this->Expected->Input());
}

TEST(Transformer, PartsAreEmptyElsewhere)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 3, 4, 5 });
  RecordOptions options = Everything();
  options.logits = true;
  options.sequences = { 1, 2 };
  const Recording part = RecordTransformer(model, input, options);
  for (const SharedMatrix& matrix : TokenMatrices(part))
  {
    ASSERT_EQ(matrix.rows, 12);
    EXPECT_THAT(Rows(matrix, 0, 3), testing::Each(0.F));
    EXPECT_THAT(Rows(matrix, 3, 4), testing::Contains(testing::Ne(0.F)));
    EXPECT_THAT(Rows(matrix, 7, 5), testing::Each(0.F));
  }
  EXPECT_EQ(TokenMatrices(part).size(), 2U * 3 * 5 + 3 + 1);
}

TEST(Transformer, RangesBeyondTheSequencesAreRefused)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  for (const SequenceRange& range :
    { SequenceRange{ 1, 3 }, SequenceRange{ -1, 1 }, SequenceRange{ 2, 1 } })
  {
    RecordOptions options;
    options.sequences = range;
    const std::string expected = "expected a range of the 2 sequences, found " +
                                 std::to_string(range.first) + " to " + std::to_string(range.end) +
                                 ".";
    EXPECT_EQ(
      MessageOf<OptionError>([&] { RecordTransformer(model, TinyInput({ 3, 4 }), options); }),
      expected);
    EXPECT_EQ(MessageOf<OptionError>([&] { EstimateMemory(model, TinyInput({ 3, 4 }), options); }),
      expected);
  }
}

TEST(Transformer, UnalignedWeightsGiveTheSameBytes)
{
  const TinyTransformer tiny;
  const TransformerInput input = TinyInput({ 9, 40 });
  const auto expected = Contents(RecordTransformer(tiny.Make(), input, {}));
  std::vector<std::vector<std::byte>> memory;
  TensorViews views;
  for (const auto& [name, tensor] : tiny.tensors)
  {
    memory.emplace_back(1).insert(memory.back().end(), tensor.bytes.begin(), tensor.bytes.end());
    views[name] = { tensor.dtype, tensor.shape, memory.back().data() + 1 };
  }
  const Transformer model(
    ParseTransformerConfig(TinyTransformer::Config(), "config"), WeightFiles(views, "odd"));
  EXPECT_TRUE(Contents(RecordTransformer(model, input, {})) == expected);
}

/// Rounding the weights of a whole model to 8 bits moves its numbers by some of those bits.
TEST(Transformer, Bf16WeightsAreUsed)
{
  const TinyTransformer tiny;
  TinyTransformer narrow;
  for (auto& [name, tensor] : narrow.tensors)
  {
    const Tensor wide = tensor;
    tensor.dtype = DType::BF16;
    tensor.bytes.clear();
    for (std::size_t i = 2; i < wide.bytes.size(); i += 4)
    {
      tensor.bytes.insert(tensor.bytes.end(), { wide.bytes[i], wide.bytes[i + 1] });
    }
  }
  const TransformerInput input = TinyInput({ 9, 40 });
  RecordOptions options = Everything();
  const SharedMatrix wide = RecordTransformer(tiny.Make(), input, options).residual[2];
  const std::vector<float> expected = Rows(wide, 0, 49);
  const SharedMatrix found = RecordTransformer(narrow.Make(), input, options).residual[2];
  ExpectClose(
    "residual", Rows(found, 0, 49), std::vector<double>(expected.begin(), expected.end()), 0.03);
}

TEST(Transformer, ProgressRisesAndStops)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 320, 320, 320, 320, 320 });
  std::vector<double> reported;
  RecordOptions options;
  options.progress = KeepReports(reported);
  RecordTransformer(model, input, options);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_THAT(reported, IsSupersetOf({ 0., 0.3, 0.5, 0.8, 1. })); // groups of each layer
  reported.clear();
  options.progress = KeepReports(reported, 3);
  EXPECT_THROW(RecordTransformer(model, input, options), Canceled);
  EXPECT_THAT(reported, SizeIs(3));
}

TEST(Transformer, ProgressOfOneLongSequenceRisesWithinALayer)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  std::vector<double> reported;
  RecordOptions options;
  options.threads = 1;
  options.progress = KeepReports(reported);
  const TransformerInput input = TinyInput({ 320 });
  RecordTransformer(model, input, options);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  // Before the embedding and each layer. Of heads, blocks of 128 queries: the last ends before the
  // MLP begins.
  const auto second = std::find(reported.begin(), reported.end(), 0.5);
  ASSERT_NE(second, reported.end());
  EXPECT_EQ(second - reported.begin(), 2 + 3 * model.GetConfig().heads);
  EXPECT_LT(*std::prev(second), 0.5);
  reported.clear();
  options.progress = KeepReports(reported, 3);
  EXPECT_THROW(RecordTransformer(model, input, options), Canceled);
  EXPECT_THAT(reported, ElementsAre(0, 0, AllOf(Gt(0), Lt(0.5))));
}

TEST(Transformer, MemoryIsKnownBeforehand)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const TransformerInput input = TinyInput({ 3, 320, 7 });
  RecordOptions options = Everything();
  options.logits = true;
  const std::uint64_t recorded = Contents(RecordTransformer(model, input, options)).second.size();
  EXPECT_EQ(EstimateMemory(model, input, options).recording, recorded);
  EXPECT_GT(EstimateMemory(model, input, options).working, 0U);
  options.layers = { 1 };
  options.values = false;
  EXPECT_EQ(EstimateMemory(model, input, options).recording,
    Contents(RecordTransformer(model, input, options)).second.size());
}

TEST(Transformer, BadInputIsRefused)
{
  const TinyTransformer tiny;
  const Transformer model = tiny.Make();
  const auto refusal = [&](const TransformerInput& input, const RecordOptions& options = {})
  { return MessageOf<OptionError>([&] { RecordTransformer(model, input, options); }); };
  const auto tokens = [](std::vector<std::vector<std::int64_t>> sequences)
  {
    TransformerInput input;
    input.tokens = std::move(sequences);
    return input;
  };
  EXPECT_EQ(refusal({}),
    "expected at least one sequence of token ids for a model of architecture gpt2, found none.");
  EXPECT_EQ(refusal(tokens({ { 1 }, {} })), "sequence 1 is empty, expected at least one token.");
  EXPECT_EQ(refusal(tokens({ { 1 }, { 0, 12, 13 } })),
    "sequence 1, position 2: expected a token id from 0 to 12, found 13.");
  EXPECT_EQ(refusal(tokens({ { -1 } })),
    "sequence 0, position 0: expected a token id from 0 to 12, found -1.");
  EXPECT_EQ(refusal(TinyInput({ 320, 327 })),
    "sequence 1 has 327 tokens, 7 more than the 320 positions of the model.");
  TransformerInput typed = tokens({ { 1, 2 } });
  typed.segments = { { 0 } };
  EXPECT_EQ(refusal(typed), "sequence 0: expected a segment for each of its 2 tokens, found 1.");
  typed.segments = { { 0, 0 } };
  EXPECT_THAT(refusal(typed), HasSubstr("expected no segments"));
  typed.segments = { {}, {} };
  EXPECT_EQ(refusal(typed), "expected segments for each of the 1 sequences, found those of 2.");
  TransformerInput image;
  image.images = 1;
  EXPECT_THAT(refusal(image), HasSubstr("found images"));
  RecordOptions options;
  options.layers = { 0, 2 };
  EXPECT_EQ(refusal(TinyInput({ 2 }), options), "expected layers from 0 to 1, found 2.");
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
  EXPECT_EQ(
    refusal(), "layer 1: an activation is inf (sequence 0, position 0); expected finite numbers.");
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
  EXPECT_EQ(refusal(), "expected pixels of shape [2, 3, 32, 32], found 6143 numbers.");
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
