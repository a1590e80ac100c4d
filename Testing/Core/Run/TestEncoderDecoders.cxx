#include "ActivationPatching.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "GenerateTokens.h"
#include "PairOracle.h"
#include "ParityRow.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"
#include "SameRecording.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class EncoderDecoderParity : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override
  {
    this->Expected.emplace(this->GetParam());
    this->Model.emplace(Transformer::Read(PairOracle::Folder(this->GetParam())));
    this->Found = RecordTransformer(*this->Model, this->Expected->Input, Everything());
  }

  /// The row of a part's matrices at place i of the source or the target of sequence s.
  std::int64_t Row(AttentionKind kind, std::int64_t s, std::int64_t i, bool isSource) const
  {
    const Recording& part = PartOf(this->Found, kind);
    const bool isBehind = kind == AttentionKind::Cross && !isSource;
    return part.sequenceOffsets[s] + (isBehind ? part.sourceLengths[s] : 0) + i;
  }

  /// The largest deviation of a matrix [tokens, columns] from the expected [B, H, T, columns] at
  /// head `head`, or [B, T, columns].
  double Deviation(AttentionKind kind, const std::string& quantity, bool isSource,
    const SharedMatrix& found, std::int64_t head) const
  {
    const TensorView& view = this->Expected->Get(quantity);
    const Shape& shape = view.shape;
    EXPECT_EQ(shape.back(), found.columns) << quantity;
    const std::int64_t heads = shape.size() == 4 ? shape[1] : 1;
    const std::int64_t length = shape[shape.size() - 2];
    const Tokens& places = isSource ? this->Expected->Sources : this->Expected->Targets;
    double largest = 0;
    for (std::int64_t s = 0; s < this->Found.SequenceCount(); ++s)
    {
      for (std::size_t i = 0; i < places[s].size(); ++i)
      {
        const float* row = found.Row(this->Row(kind, s, static_cast<std::int64_t>(i), isSource));
        const std::int64_t first = ((s * heads + head) * length + places[s][i]) * found.columns;
        for (std::int64_t c = 0; c < found.columns; ++c)
        {
          Raise(
            largest, static_cast<double>(row[c]) - view.At(static_cast<std::uint64_t>(first + c)));
        }
      }
    }
    return largest;
  }

  /// Likewise of scores or weights, as views show them, at the pairs that the mask allows.
  double AttentionDeviation(
    AttentionKind kind, std::size_t l, std::int64_t h, AttentionQuantity quantity) const
  {
    const bool isScores = quantity == AttentionQuantity::Scores;
    const TensorView& view =
      this->Expected->Get(std::string(Name(kind)) + ".layer." + std::to_string(l) +
                          (isScores ? ".scores" : ".attention"));
    const Recording& part = PartOf(this->Found, kind);
    const bool isOfTargets = kind != AttentionKind::Encoder;
    const bool isToSources = kind != AttentionKind::Decoder;
    double largest = 0;
    for (std::int64_t s = 0; s < part.SequenceCount(); ++s)
    {
      const std::int64_t count = part.SequenceLength(s);
      std::vector<float> found(count * count);
      EvaluateAttention(part, s, static_cast<std::int64_t>(l), h, quantity, 0, count, found.data());
      const std::vector<std::int64_t>& queries =
        (isOfTargets ? this->Expected->Targets : this->Expected->Sources)[s];
      const std::vector<std::int64_t>& keys =
        (isToSources ? this->Expected->Sources : this->Expected->Targets)[s];
      const std::int64_t firstQuery = kind == AttentionKind::Cross ? part.sourceLengths[s] : 0;
      for (std::size_t q = 0; q < queries.size(); ++q)
      {
        for (std::size_t k = 0; k < keys.size(); ++k)
        {
          if (isScores && kind == AttentionKind::Decoder && k > q)
          {
            continue;
          }
          const std::int64_t first = (s * view.shape[1] + h) * view.shape[2] + queries[q];
          const auto place = static_cast<std::uint64_t>(first * view.shape[3] + keys[k]);
          const std::int64_t row = firstQuery + static_cast<std::int64_t>(q);
          Raise(largest, static_cast<double>(found[row * count + static_cast<std::int64_t>(k)]) -
                           view.At(place));
        }
      }
    }
    return largest;
  }

  /// Deviations of all layers of a part.
  void Compare(AttentionKind kind, std::map<std::string, double>& deviations) const
  {
    const Recording& part = PartOf(this->Found, kind);
    const auto raise = [&](const std::string& name, double value)
    { Raise(deviations[name], value); };
    const bool isOfSources = kind == AttentionKind::Encoder;
    const bool hasSourceKeys = kind != AttentionKind::Decoder;
    const TransformerConfig& config = this->Model->GetConfig();
    const std::int64_t layers = isOfSources ? config.encoder->layers : config.layers;
    ASSERT_EQ(part.layers.size(), static_cast<std::size_t>(layers));
    for (std::size_t l = 0; l < part.layers.size(); ++l)
    {
      const std::string prefix = std::string(Name(kind)) + ".layer." + std::to_string(l) + ".";
      for (std::int64_t h = 0; h < config.heads; ++h)
      {
        const RecordedHead& head = part.layers[l].heads[h];
        raise("query", this->Deviation(kind, prefix + "query", isOfSources, head.query, h));
        raise("key", this->Deviation(kind, prefix + "key", hasSourceKeys, head.key, h));
        raise("value", this->Deviation(kind, prefix + "value", hasSourceKeys, head.value, h));
        raise(
          "outputs", this->Deviation(kind, prefix + "head_output", isOfSources, head.output, h));
        raise("scores", this->AttentionDeviation(kind, l, h, AttentionQuantity::Scores));
        raise("attention", this->AttentionDeviation(kind, l, h, AttentionQuantity::Weights));
      }
    }
    for (std::size_t l = 0; l < part.residual.size(); ++l)
    {
      raise(
        "hidden", this->Deviation(kind, std::string(Name(kind)) + ".hidden." + std::to_string(l),
                    isOfSources, part.residual[l], 0));
    }
  }

  std::optional<PairOracle> Expected;
  std::optional<Transformer> Model;
  Recording Found;
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
    std::map<std::string, double> deviations;
    this->Compare(kind, deviations);
    if (kind == AttentionKind::Decoder)
    {
      deviations["logits"] = this->Deviation(kind, "logits", false, this->Found.logits, 0);
    }
    std::ostringstream text;
    for (const auto& [name, deviation] : deviations)
    {
      const bool isStream = name == "hidden" || name == "logits";
      EXPECT_LE(deviation, isStream ? PairStreamTolerance : PairTolerance)
        << Name(kind) << " " << name;
      text << " " << name << " " << deviation;
    }
    std::cout << this->GetParam() << ", " << Name(kind) << ":" << text.str() << "\n";
    const std::string part(Name(kind));
    Write(
      this->GetParam() + "_" + part, { this->GetParam(), part, "safetensors", "F32", deviations });
  }
}

TEST_P(EncoderDecoderParity, ProductsOfBfloat16AreNear)
{
  CompareBfloat16(this->GetParam(), *this->Model, this->Expected->Input, Everything(), this->Found);
}

TEST_P(EncoderDecoderParity, GreedyTokensAreThoseOfTheOriginalCode)
{
  const TensorView& view = this->Expected->Get("greedy");
  const std::vector<std::int64_t> greedy = view.ToInteger();
  const auto count = static_cast<std::size_t>(view.shape[1]);
  TransformerInput input = this->Expected->Input;
  Tokens expected;
  for (std::size_t s = 0; s < input.tokens.size(); ++s)
  {
    const auto first = greedy.begin() + static_cast<std::ptrdiff_t>(s * count);
    EXPECT_EQ(*first, this->Model->GetConfig().decoderStart);
    input.tokens[s] = { *first };
    expected.emplace_back(first + 1, first + static_cast<std::ptrdiff_t>(count));
  }
  GenerationOptions options;
  options.count = static_cast<std::int64_t>(count) - 1;
  EXPECT_EQ(GenerateTokens(*this->Model, input, options), expected);
  options.threads = 3;
  EXPECT_EQ(GenerateTokens(*this->Model, input, options), expected);
}

/// Rows that a part has no quantity at are 0, as its documentation says.
TEST_P(EncoderDecoderParity, CrossAttentionHasQueriesOfTargetsAndKeysOfSources)
{
  const Recording& cross = PartOf(this->Found, AttentionKind::Cross);
  EXPECT_EQ(cross.mask, AttentionMask::Cross);
  for (std::int64_t s = 0; s < cross.SequenceCount(); ++s)
  {
    const auto source = static_cast<std::int64_t>(this->Expected->Sources[s].size());
    const auto target = static_cast<std::int64_t>(this->Expected->Targets[s].size());
    EXPECT_EQ(cross.sourceLengths[s], source);
    ASSERT_EQ(cross.SequenceLength(s), source + target);
    for (std::int64_t i = 0; i < source + target; ++i)
    {
      const std::int64_t row = cross.sequenceOffsets[s] + i;
      EXPECT_EQ(cross.tokens.position[row], i < source ? i : i - source);
      const bool isSource = i < source;
      const bool isSound = this->Expected->Input.sounds > 0;
      EXPECT_EQ(cross.tokens.id[row], !isSource  ? this->Expected->Input.tokens[s][i - source]
                                      : !isSound ? this->Expected->Input.source[s][i]
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

/// The norm of value W_O^h of cross attention, from the weights.
TEST_P(EncoderDecoderParity, NormsOfValuesAreThoseOfWhatTheyWrite)
{
  const Recording& cross = PartOf(this->Found, AttentionKind::Cross);
  const LinearTensors& output = this->Model->GetWeights().layers[1].crossOutput;
  const std::vector<double> weights = output.weight.ToDouble(); // [d_model, H d_head]
  const std::int64_t h = 2;
  const RecordedHead& head = cross.layers[1].heads[h];
  for (std::int64_t i = 0; i < cross.sourceLengths[0]; ++i)
  {
    double square = 0;
    for (std::int64_t o = 0; o < output.outputs; ++o)
    {
      double sum = 0;
      for (std::int64_t c = 0; c < head.value.columns; ++c)
      {
        sum += static_cast<double>(head.value.Row(i)[c]) *
               weights[o * output.inputs + h * head.value.columns + c];
      }
      square += sum * sum;
    }
    EXPECT_NEAR(head.valueNorm.Row(i)[0], std::sqrt(square), 1e-4 * (1 + std::sqrt(square)));
  }
}

void ExpectEqualParts(const Recording& found, const Recording& expected)
{
  for (const AttentionKind kind :
    { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
  {
    const std::vector<SharedMatrix> a = TokenMatrices(PartOf(found, kind));
    const std::vector<SharedMatrix> b = TokenMatrices(PartOf(expected, kind));
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
    {
      ExpectEqual(a[i], b[i]);
    }
  }
}

TEST_P(EncoderDecoderParity, ResultsDoNotDependOnThreads)
{
  RecordOptions options = Everything();
  options.threads = 3;
  ExpectEqualParts(RecordTransformer(*this->Model, this->Expected->Input, options), this->Found);
}

/// The rows of a range of sequences are those of a run of all; other rows are 0, so that the parts
/// of several processes add up.
TEST_P(EncoderDecoderParity, RangesAddUp)
{
  RecordOptions options = Everything();
  std::vector<Recording> halves;
  for (const SequenceRange range : SplitSequences(*this->Model, this->Expected->Input, 2))
  {
    options.sequences = range;
    halves.push_back(RecordTransformer(*this->Model, this->Expected->Input, options));
  }
  for (const AttentionKind kind :
    { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
  {
    const std::vector<SharedMatrix> a = TokenMatrices(PartOf(halves[0], kind));
    const std::vector<SharedMatrix> b = TokenMatrices(PartOf(halves[1], kind));
    for (std::size_t i = 0; i < a.size(); ++i)
    {
      std::transform(a[i].Row(0), a[i].Row(a[i].rows), b[i].Row(0), a[i].Row(0), std::plus<>());
    }
  }
  ExpectEqualParts(halves[0], this->Found);
}

TEST_P(EncoderDecoderParity, MemoryIsThatOfAllParts)
{
  const auto bytesOf = [](const Recording& recording)
  {
    std::uint64_t bytes = 0;
    for (const AttentionKind kind :
      { AttentionKind::Decoder, AttentionKind::Encoder, AttentionKind::Cross })
    {
      for (const SharedMatrix& matrix : TokenMatrices(PartOf(recording, kind)))
      {
        bytes += matrix.Count() * sizeof(float);
      }
    }
    return bytes;
  };
  RecordOptions options = Everything();
  EXPECT_EQ(
    EstimateMemory(*this->Model, this->Expected->Input, options).recording, bytesOf(this->Found));
  options = {};
  options.layers = { 1 };
  options.values = false;
  EXPECT_EQ(EstimateMemory(*this->Model, this->Expected->Input, options).recording,
    bytesOf(RecordTransformer(*this->Model, this->Expected->Input, options)));
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

/// The biases that a recording of T5 keeps are those of all pairs.
TEST(RelativePositions, RecordedBiasesAreThoseOfTheOriginalCode)
{
  for (const std::string name : { "t5", "t5-v1_1" })
  {
    const PairOracle oracle(name);
    const Transformer model = Transformer::Read(PairOracle::Folder(name));
    const Recording found = RecordTransformer(model, oracle.Input, RecordOptions());
    EXPECT_FALSE(found.cross->distanceBias.IsRecorded());
    for (const AttentionKind kind : { AttentionKind::Decoder, AttentionKind::Encoder })
    {
      const SharedMatrix& bias = PartOf(found, kind).distanceBias;
      const std::int64_t reach = 20; // relative_attention_max_distance
      ASSERT_EQ(bias.rows, 4);
      ASSERT_EQ(bias.columns, 2 * reach + 1);
      const TensorView& view = oracle.Get(std::string(Name(kind)) + ".position_bias");
      std::uint64_t i = 0;
      for (std::int64_t h = 0; h < view.shape[0]; ++h)
      {
        for (std::int64_t q = 0; q < view.shape[1]; ++q)
        {
          for (std::int64_t k = 0; k < view.shape[2]; ++k, ++i)
          {
            EXPECT_EQ(bias.Row(h)[reach + k - q], static_cast<float>(view.At(i)));
          }
        }
      }
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
  EXPECT_EQ(MessageOf<ModelError>([&] { CheckPatching(model, prompt, prompt, PatchingOptions()); }),
    "comparing logits: expected a model without an encoder beside its decoder, found t5.");
}

TEST(EncoderDecoder, MissingSourcesAreNamed)
{
  const PairOracle bart("bart");
  const PairOracle whisper("whisper");
  const auto message = [](const std::string& name, const TransformerInput& input)
  {
    const Transformer model = Transformer::Read(PairOracle::Folder(name));
    return MessageOf<OptionError>([&] { RecordTransformer(model, input, RecordOptions()); });
  };
  TransformerInput input = bart.Input;
  input.source.pop_back();
  EXPECT_EQ(message("bart", input),
    "expected source tokens for each of the 2 sequences, since a model of architecture bart has an "
    "encoder, found source tokens of 1.");
  input.source.clear();
  EXPECT_EQ(message("bart", input),
    "expected source tokens for each of the 2 sequences, since a model of architecture bart has an "
    "encoder, found none.");
  input.features = whisper.Input.features;
  input.sounds = 2;
  EXPECT_EQ(message("bart", input),
    "expected source tokens for each of the 2 sequences, since a model of architecture bart has an "
    "encoder, found log-mel features of 2.");
  EXPECT_EQ(message("whisper", bart.Input),
    "expected log-mel features for each of the 2 sequences, since a model of architecture whisper "
    "has an encoder, found source tokens of 2.");
  input = whisper.Input;
  input.features.pop_back();
  EXPECT_EQ(message("whisper", input),
    "source: expected log-mel features of shape [2, 16, 40], found 1279 numbers.");
  input = bart.Input;
  input.source[1] = {};
  EXPECT_EQ(message("bart", input), "source: sequence 1 is empty, expected at least one token.");
  input.source[1] = { 3, 83 };
  EXPECT_EQ(message("bart", input),
    "source: sequence 1, position 1: expected a token id from 0 to 82, found 83.");
  input.source[1] = SomeTokens(25, 1);
  EXPECT_EQ(message("bart", input),
    "source: sequence 1 has 25 tokens, 1 more than the 24 positions of the model.");
  input = bart.Input;
  input.tokens[0] = {};
  EXPECT_EQ(message("bart", input), "sequence 0 is empty, expected at least one token.");
}

TEST(EncoderDecoder, ModelsWithoutEncodersTakeNoSource)
{
  const Transformer model = Transformer::Read(PairOracle::Folder("qwen3-v5"));
  TransformerInput input;
  input.tokens = { { 1, 2, 3 } };
  input.source = { { 4 } };
  EXPECT_EQ(MessageOf<OptionError>([&] { RecordTransformer(model, input, RecordOptions()); }),
    "expected no source, since a model of architecture qwen3 has no encoder, found source tokens "
    "of "
    "1.");
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
