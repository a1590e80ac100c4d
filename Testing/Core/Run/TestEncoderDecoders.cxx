#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "PairOracle.h"
#include "ParityRow.h"
#include "PartParity.h"
#include "Recording/RecordedAttention.h"
#include "Run/ActivationPatching.h"
#include "Run/GenerateTokens.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "WholeRuns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

class EncoderDecoderParity : public testing::TestWithParam<std::string>
{
protected:
  /// A part beside its tensors; queries of cross attention are behind the source.
  PartParity Parity(AttentionKind kind) const
  {
    const Recording& part = PartOf(this->Found, kind);
    const Tokens& queries =
      kind == AttentionKind::Encoder ? this->Expected.Sources : this->Expected.Targets;
    const Tokens& keys =
      kind == AttentionKind::Decoder ? this->Expected.Targets : this->Expected.Sources;
    return { part, this->Expected.Tensors(), std::string(Name(kind)) + ".",
      PlacesOf(part, queries, part.sourceLengths), PlacesOf(part, keys) };
  }

  PairOracle Expected{ GetParam() };
  Transformer Model = Transformer::Read(PairOracle::Folder(GetParam()));
  Recording Found = RecordTransformer(this->Model, this->Expected.Input, Everything());
};

INSTANTIATE_TEST_SUITE_P(, EncoderDecoderParity,
  testing::Values(
    "t5", "t5-v1_1", "mt5", "bart", "mbart", "pegasus", "marian", "marian-two", "whisper"),
  PairName);

TEST_P(EncoderDecoderParity, IsThatOfTheOriginalCode)
{
  CheckRecording(this->Found, "recording");
  for (const AttentionKind kind :
    { AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross })
  {
    const PartParity parity = this->Parity(kind);
    const TransformerConfig& config = this->Model.GetConfig();
    const bool isEncoder = kind == AttentionKind::Encoder;
    EXPECT_EQ(parity.part.layers.size(),
      static_cast<std::size_t>(isEncoder ? config.encoder->layers : config.layers));
    std::map<std::string, double> deviations = parity.Deviations();
    EXPECT_EQ(NamesOf(deviations), kind == AttentionKind::Cross
                                     ? "attention key outputs query scores value"
                                     : "attention hidden key outputs query scores value");
    if (kind == AttentionKind::Decoder)
    {
      const PartParity whole = { this->Found, this->Expected.Tensors(), "", {}, {} };
      deviations["logits"] = whole.Deviation("logits", this->Found.logits, parity.queries);
    }
    const std::string part(Name(kind));
    ExpectSmall(this->GetParam() + ", " + part, deviations);
    Write(
      this->GetParam() + "_" + part, { this->GetParam(), part, "safetensors", "F32", deviations });
  }
}

TEST_P(EncoderDecoderParity, ProductsOfBfloat16AreNear)
{
  CompareBfloat16(this->GetParam(), this->Model, this->Expected.Input, Everything(), this->Found);
}

TEST_P(EncoderDecoderParity, GreedyTokensAreThoseOfTheOriginalCode)
{
  const TensorView& view = this->Expected.Get("greedy");
  const std::vector<std::int64_t> greedy = view.ToInteger();
  const auto count = static_cast<std::size_t>(view.shape[1]);
  TransformerInput input = this->Expected.Input;
  Tokens expected;
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const auto first = greedy.begin() + static_cast<std::ptrdiff_t>(s * count);
    EXPECT_EQ(*first, this->Model.GetConfig().decoderStart);
    input.tokens[s] = { *first };
    expected.emplace_back(first + 1, first + static_cast<std::ptrdiff_t>(count));
  }
  GenerationOptions options;
  options.count = static_cast<std::int64_t>(count) - 1;
  EXPECT_EQ(GenerateTokens(this->Model, input, options), expected);
  options.threads = 3;
  EXPECT_EQ(GenerateTokens(this->Model, input, options), expected);
}

/// Rows that a part has no quantity at are 0, as its documentation says.
TEST_P(EncoderDecoderParity, CrossAttentionHasQueriesOfTargetsAndKeysOfSources)
{
  const Recording& cross = PartOf(this->Found, AttentionKind::Cross);
  EXPECT_EQ(cross.mask, AttentionMask::Cross);
  for (std::int64_t s = 0; s < cross.SequenceCount(); ++s)
  {
    const auto source = static_cast<std::int64_t>(this->Expected.Sources[s].size());
    const auto target = static_cast<std::int64_t>(this->Expected.Targets[s].size());
    EXPECT_EQ(cross.sourceLengths[s], source);
    ASSERT_EQ(cross.SequenceLength(s), source + target);
    for (std::int64_t i = 0; i < source + target; ++i)
    {
      const std::int64_t row = cross.sequenceOffsets[s] + i;
      EXPECT_EQ(cross.tokens.position[row], i < source ? i : i - source);
      const bool isSource = i < source;
      const bool isSound = this->Expected.Input.sounds > 0;
      EXPECT_EQ(cross.tokens.id[row], !isSource  ? this->Expected.Input.tokens[s][i - source]
                                      : !isSound ? this->Expected.Input.source[s][i]
                                                 : -1);
      const RecordedHead& head = cross.layers[0].heads[1];
      const auto isZero = [row](const SharedMatrix& matrix)
      {
        return std::all_of(matrix.Row(row), matrix.Row(row) + matrix.columns,
          [](float value) { return value == 0; });
      };
      EXPECT_EQ(isZero(head.query), isSource);
      EXPECT_EQ(isZero(head.output), isSource);
      EXPECT_EQ(isZero(head.key), !isSource);
      EXPECT_EQ(isZero(head.value), !isSource);
      EXPECT_EQ(isZero(head.valueNorm), !isSource);
    }
  }
}

TEST_P(EncoderDecoderParity, NormsOfValuesAreThoseOfWhatTheyWrite)
{
  const std::vector<LayerTensors>& layers = this->Model.GetWeights().layers;
  ExpectValueNorms(*this->Found.cross, layers, &LayerTensors::crossOutput);
  ExpectValueNorms(this->Found, layers, &LayerTensors::output);
}

TEST_P(EncoderDecoderParity, SequencesThreadsAndRangesDoNotMatter)
{
  if (this->Expected.Input.sounds == 0)
  {
    ExpectSameAlone(this->Model, this->Expected.Input, Everything(), this->Found);
  }
  RecordOptions options = Everything();
  options.threads = 3;
  ExpectEqual(RecordTransformer(this->Model, this->Expected.Input, options), this->Found);
  ExpectRangesAddUp(this->Model, this->Expected.Input, options, this->Found);
}

TEST_P(EncoderDecoderParity, MemoryIsThatOfAllParts)
{
  RecordOptions options = Everything();
  ExpectMemory(this->Model, this->Expected.Input, options);
  options = {};
  options.layers = { 1 };
  options.values = false;
  ExpectMemory(this->Model, this->Expected.Input, options);
}

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The first `rows` rows of a matrix from `first` on, in double precision.
Matrix RowsOf(const SharedMatrix& matrix, std::int64_t first, std::int64_t rows)
{
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Floats>(matrix.Row(first), rows, matrix.columns).cast<double>();
}

/// T5: the bias of a head at a pair, by the rule of Raffel et al., written with counts of distances
/// instead of offsets in tables.
double RelativeBias(const Matrix& table, bool isEncoder, Eigen::Index h, Eigen::Index distance)
{
  constexpr double longest = 20; // relative_attention_max_distance
  const auto all = static_cast<int>(table.rows());
  const int half = isEncoder ? all / 2 : all;
  const auto length =
    static_cast<double>(isEncoder ? std::abs(distance) : std::max<Eigen::Index>(-distance, 0));
  const int exact = half / 2;
  const double beyond = std::log(length / exact) / std::log(longest / exact) * (half - exact);
  const int bucket = length < exact ? static_cast<int>(length)
                                    : std::min(exact + static_cast<int>(beyond), half - 1);
  return table(bucket + (isEncoder && distance > 0 ? half : 0), h);
}

/// Texts that are longer than the longest distance with a bias of its own, and than a block of
/// queries: weights and outputs of heads by their formulas, from the recorded rows and the file.
TEST(RelativePositions, LongTextsAreTheirFormulas)
{
  TransformerInput input;
  input.source = { SomeTokens(150, 5), SomeTokens(1, 3), SomeTokens(7, 11) };
  input.tokens = { SomeTokens(140, 2), SomeTokens(9, 1), SomeTokens(1, 4) };
  for (const std::string name : { "t5", "t5-v1_1" })
  {
    const std::filesystem::path folder = PairOracle::Folder(name);
    const SafetensorsFile file(folder / "model.safetensors");
    const auto weights = [&](const std::string& tensor) -> Matrix
    {
      const TensorView& view = file.GetTensors().at(tensor + ".weight");
      return Eigen::Map<const Matrix>(view.ToDouble().data(), view.shape[0], view.shape[1]);
    };
    const Recording found = RecordTransformer(Transformer::Read(folder), input, Everything());
    for (const AttentionKind kind :
      { AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross })
    {
      const Recording& part = PartOf(found, kind);
      const bool isCross = kind == AttentionKind::Cross;
      const bool isEncoder = kind == AttentionKind::Encoder;
      EXPECT_EQ(part.distanceBias.columns, isCross ? 0 : 2 * 20 + 1); // to the longest distance
      const std::string stack = isEncoder ? "encoder.block." : "decoder.block.";
      const std::string block = isCross ? ".layer.1.EncDecAttention." : ".layer.0.SelfAttention.";
      const Matrix table = weights(stack + "0.layer.0.SelfAttention.relative_attention_bias");
      for (std::int64_t s = 0; s < 3; ++s)
      {
        SCOPED_TRACE(name + ", " + std::string(Name(kind)) + ", sequence " + std::to_string(s));
        const std::int64_t length = part.SequenceLength(s);
        const std::int64_t begin = isCross ? part.sourceLengths[s] : 0; // of queries
        const std::int64_t end = isCross ? begin : length;              // of keys
        for (const RecordedLayer& layer : part.layers)
        {
          const Matrix out = weights(stack + std::to_string(layer.index) + block + "o");
          for (Eigen::Index h = 0; h < 4; ++h)
          {
            const RecordedHead& head = layer.heads[h];
            const std::int64_t first = part.sequenceOffsets[s];
            const Matrix value = RowsOf(head.value, first, end);
            Matrix expected = RowsOf(head.query, first + begin, length - begin) *
                              RowsOf(head.key, first, end).transpose();
            for (Eigen::Index q = 0; q < expected.rows(); ++q)
            {
              for (Eigen::Index k = 0; k < expected.cols(); ++k)
              {
                const double bias = isCross ? 0 : RelativeBias(table, isEncoder, h, k - q);
                const bool isSeen = kind != AttentionKind::Decoder || k <= q;
                expected(q, k) = isSeen ? std::exp(expected(q, k) + bias) : 0;
              }
              expected.row(q) /= expected.row(q).sum();
            }
            std::vector<float> evaluated(length * length);
            EvaluateAttention(
              part, s, layer.index, h, AttentionQuantity::Weights, 0, length, evaluated.data());
            const Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>> all(
              evaluated.data(), length, length);
            const Matrix shown = all.bottomLeftCorner(length - begin, end).cast<double>();
            EXPECT_LE((shown - expected).cwiseAbs().maxCoeff(), Tolerance);
            const Matrix output =
              expected * value * out.middleCols(h * value.cols(), value.cols()).transpose();
            EXPECT_LE(
              (RowsOf(head.output, first + begin, length - begin) - output).cwiseAbs().maxCoeff(),
              Tolerance);
          }
        }
      }
    }
  }
}

/// The row of the table of biases for each distance, in both stacks and for the sizes of the
/// published models.
TEST(RelativePositions, BucketsAreThoseOfTheOriginalCode)
{
  for (const std::string name : { "t5", "t5-v1_1" })
  {
    const PairOracle oracle(name);
    const TransformerConfig decoder =
      ReadTransformerConfig(PairOracle::Folder(name) / "config.json");
    for (const TransformerConfig* config : { decoder.encoder.get(), &decoder })
    {
      const std::string stack = config == &decoder ? "decoder" : "encoder";
      const TensorView& view = oracle.Get(stack + ".position_buckets");
      const std::vector<std::int64_t> expected = view.ToInteger();
      for (std::int64_t q = 0; q < view.shape[0]; ++q)
      {
        for (std::int64_t k = 0; k < view.shape[1]; ++k)
        {
          EXPECT_EQ(RelativeBucket(*config, k - q), expected[q * view.shape[1] + k]);
        }
      }
    }
  }
  const PairOracle oracle("t5");
  for (const bool isCausal : { false, true })
  {
    TransformerConfig config;
    config.mask = isCausal ? AttentionMask::Causal : AttentionMask::Bidirectional;
    config.relativeBuckets = 32;
    config.relativeDistance = 128;
    const std::vector<std::int64_t> expected =
      oracle.Get(isCausal ? "buckets.causal" : "buckets.bidirectional").ToInteger();
    for (std::int64_t distance = -200; distance <= 200; ++distance)
    {
      EXPECT_EQ(RelativeBucket(config, distance), expected[distance + 200]) << distance;
    }
  }
}

/// Layers that the decoder alone has are not recorded of the encoder.
TEST(EncoderDecoder, LayersAreThoseThatEachStackHas)
{
  const PairOracle oracle("t5-v1_1"); // three layers of the decoder, two of the encoder
  const Transformer model = Transformer::Read(PairOracle::Folder("t5-v1_1"));
  RecordOptions options = Everything();
  const Recording all = RecordTransformer(model, oracle.Input, options);
  options.layers = { 1, 2 };
  const Recording found = RecordTransformer(model, oracle.Input, options);
  CheckRecording(found, "recording");
  const auto indices = [](const Recording& recording)
  {
    std::vector<std::int32_t> list;
    for (const RecordedLayer& layer : recording.layers)
    {
      list.push_back(layer.index);
    }
    return list;
  };
  EXPECT_THAT(indices(found), ElementsAre(1, 2));
  EXPECT_THAT(indices(*found.cross), ElementsAre(1, 2));
  EXPECT_THAT(indices(*found.encoder), ElementsAre(1));
  ExpectEqual(found.layers[1].heads[2], all.layers[2].heads[2]);
  ExpectEqual(found.cross->layers[1].heads[2], all.cross->layers[2].heads[2]);
  ExpectEqual(found.encoder->layers[0].heads[2], all.encoder->layers[1].heads[2]);
  ExpectEqual(found.logits, all.logits);
  options.layers = { 2 };
  const Recording last = RecordTransformer(model, oracle.Input, options);
  EXPECT_THAT(indices(*last.encoder), ElementsAre());
  ExpectEqual(last.layers[0].heads[2], all.layers[2].heads[2]);
  options.layers = { 3 };
  EXPECT_THAT(MessageOf<OptionError>([&] { RecordTransformer(model, oracle.Input, options); }),
    HasSubstr("expected layers from 0 to 2, found 3"));
}

/// A head of the decoder's own attention that is set to zero writes nothing; the encoder and what
/// comes before it stay the same.
TEST(EncoderDecoder, HeadsOfTheDecoderCanBeSetToZero)
{
  const PairOracle oracle("bart");
  const Transformer model = Transformer::Read(PairOracle::Folder("bart"));
  RecordOptions options = Everything();
  const Recording before = RecordTransformer(model, oracle.Input, options);
  Intervention zero;
  zero.site = { ActivationKind::HeadOutput, 1, 2, AllPositions };
  zero.by = Replacement::Zero;
  options.interventions.list = { zero };
  const Recording after = RecordTransformer(model, oracle.Input, options);
  EXPECT_EQ(after.interventions, "1.2 to zero");
  EXPECT_EQ(after.cross->interventions, "1.2 to zero");
  EXPECT_EQ(after.encoder->interventions, "");
  const SharedMatrix& output = after.layers[1].heads[2].output;
  EXPECT_TRUE(
    std::all_of(output.Row(0), output.Row(output.rows), [](float value) { return value == 0; }));
  ExpectEqual(after.layers[1].heads[1].output, before.layers[1].heads[1].output);
  ExpectEqual(after.encoder->residual.back(), before.encoder->residual.back());
  ExpectEqual(after.cross->layers[0].heads[0], before.cross->layers[0].heads[0]);
  EXPECT_NE(std::memcmp(after.logits.Row(0), before.logits.Row(0), 4 * after.logits.Count()), 0);
  for (const Replacement by : { Replacement::Source, Replacement::MeanOverPrompts })
  {
    options.interventions.list[0].by = by;
    EXPECT_THAT(MessageOf<ModelError>([&] { RecordTransformer(model, oracle.Input, options); }),
      HasSubstr("expected a model without an encoder beside its decoder, found bart"));
  }
}

TEST(EncoderDecoder, ActivationPatchingIsRefused)
{
  const PairOracle oracle("t5");
  const Transformer model = Transformer::Read(PairOracle::Folder("t5"));
  TransformerInput prompt = oracle.Input;
  prompt.tokens.resize(1);
  prompt.source.resize(1);
  EXPECT_THAT(
    MessageOf<ModelError>([&] { CheckPatching(model, prompt, prompt, PatchingOptions()); }),
    HasSubstr("a model without an encoder beside its decoder, found t5"));
}

TEST(EncoderDecoder, InputsThatDoNotFitAreRefused)
{
  const TransformerInput bart = PairOracle("bart").Input;
  const TransformerInput whisper = PairOracle("whisper").Input;
  const auto changed = [&](const std::function<void(TransformerInput&)>& change)
  {
    TransformerInput input = bart;
    change(input);
    return input;
  };
  using Input = TransformerInput;
  TransformerInput tooShort = whisper;
  tooShort.features.pop_back();
  Input decoded;
  decoded.tokens = { { 1, 2, 3 } };
  decoded.source = { { 4 } };
  const std::vector<std::tuple<const char*, TransformerInput, const char*>> rows = {
    { "bart", changed([](Input& input) { input.source.pop_back(); }),
      "source tokens for each of the 2 sequences, since a model of architecture bart" },
    { "bart", changed([](Input& input) { input.source.clear(); }), "has an encoder, found none" },
    { "bart",
      changed(
        [&](Input& input)
        {
          input.source.clear();
          input.features = whisper.features;
          input.sounds = 2;
        }),
      "has an encoder, found log-mel features of 2" },
    { "whisper", bart, "log-mel features for each of the 2 sequences" },
    { "whisper", tooShort, "source: expected log-mel features of shape [2, 16, 40], found 1279" },
    { "bart", changed([](Input& input) { input.source[1] = {}; }), "source: sequence 1 is empty" },
    { "bart", changed([](Input& input) { input.source[1] = { 3, 83 }; }),
      "source: sequence 1, position 1: expected a token id from 0 to 82, found 83" },
    { "bart", changed([](Input& input) { input.source[1] = SomeTokens(25, 1); }),
      "source: sequence 1 has 25 tokens, 1 more than the 24 positions" },
    { "bart", changed([](Input& input) { input.tokens[0] = {}; }), "sequence 0 is empty" },
    { "qwen3-v5", decoded, "no source, since a model of architecture qwen3 has no encoder" },
  };
  for (const auto& [name, input, message] : rows)
  {
    const Transformer model = Transformer::Read(PairOracle::Folder(name));
    EXPECT_THAT(MessageOf<OptionError>(
                  [&, &values = input] { RecordTransformer(model, values, RecordOptions()); }),
      HasSubstr(message));
  }
}

TEST(EncoderDecoder, TextsEndWithThePositionsOfTheDecoder)
{
  const PairOracle oracle("bart");
  const Transformer model = Transformer::Read(PairOracle::Folder("bart"));
  TransformerInput input = oracle.Input;
  input.tokens = { { 2 }, { 2, 3 } };
  GenerationOptions options;
  options.count = 23;
  EXPECT_THAT(MessageOf<OptionError>([&] { GenerateTokens(model, input, options); }),
    HasSubstr("sequence 1 would have 25 tokens, but the model has 24 positions"));
  options.count = 22;
  EXPECT_EQ(GenerateTokens(model, input, options)[0].size(), 22);
}

}
