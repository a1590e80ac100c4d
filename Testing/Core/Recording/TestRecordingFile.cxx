#include "RecordingFile.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "NumpyBytes.h"
#include "PicturedRecording.h"
#include "Reports.h"
#include "Safetensors.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TranslatedRecording.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

constexpr std::int64_t B = 2;
constexpr std::int64_t T = 3;
constexpr std::int64_t H = 4;
constexpr std::int64_t D = 2;
constexpr std::int64_t L = 2;

/// The value of a quantity, different for each place in it; exact in half precision.
float ValueAt(
  int quantity, std::int64_t l, std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i)
{
  return static_cast<float>(
    quantity + 4 * (static_cast<int>(i) + 2 * static_cast<int>(h + 4 * (t + 3 * (b + 2 * l)))) -
    300);
}

/// [B,T,heads,width] of layer l.
std::vector<double> TokenFirst(int quantity, std::int64_t l, std::int64_t heads, std::int64_t width)
{
  std::vector<double> values(B * T * heads * width);
  for (std::int64_t i = 0; i < B * T * heads * width; ++i)
  {
    const std::int64_t head = i / width;
    const std::int64_t token = head / heads;
    values[i] = ValueAt(quantity, l, token / T, token % T, head % heads, i % width);
  }
  return values;
}

Tensor Floats(Shape shape, const std::vector<double>& values, DType dtype = DType::F32)
{
  return Tensor::FromDouble(dtype, std::move(shape), values);
}

std::string Block(std::int64_t l, const std::string& rest)
{
  return "blocks." + std::to_string(l) + "." + rest;
}

/// Queries, keys of two groups, and values in old TransformerLens names.
Tensors OldNames()
{
  Tensors tensors;
  for (std::int64_t l = 0; l < L; ++l)
  {
    tensors[Block(l, "attn.hook_q")] = Floats({ B, T, H, D }, TokenFirst(0, l, H, D));
    tensors[Block(l, "attn.hook_k")] = Floats({ B, T, 2, D }, TokenFirst(1, l, 2, D));
    tensors[Block(l, "attn.hook_v")] = Floats({ B, T, 2, D }, TokenFirst(2, l, 2, D));
  }
  return tensors;
}

/// The file's arrays in a file, read.
RecordingContent Read(
  const Tensors& tensors, const Metadata& metadata = {}, const RecordingReadOptions& options = {})
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "r.safetensors", tensors, metadata);
  return ReadRecording(folder / "r.safetensors", options);
}

std::string Refusal(const Tensors& tensors, const Metadata& metadata = {})
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "r.safetensors", tensors, metadata);
  std::string message = MessageOf<ModelError>([&] { ReadRecording(folder / "r.safetensors"); });
  EXPECT_THAT(message, StartsWith((folder / "r.safetensors").string() + ": "));
  return message;
}

std::vector<float> Values(const SharedMatrix& matrix)
{
  return { matrix.values.get(), matrix.values.get() + matrix.Count() };
}

/// Rows of tokens of a quantity of one head, by its formula.
std::vector<float> ExpectedRows(int quantity, std::int64_t l, std::int64_t h)
{
  std::vector<float> values(B * T * D);
  for (std::int64_t i = 0; i < B * T * D; ++i)
  {
    values[i] = ValueAt(quantity, l, i / D / T, i / D % T, h, i % D);
  }
  return values;
}

void ExpectQueriesKeysValues(const Recording& recording)
{
  ASSERT_THAT(recording.layers, SizeIs(L));
  EXPECT_EQ(recording.layerCount, L);
  EXPECT_THAT(recording.sequenceOffsets, ElementsAre(0, 3, 6));
  EXPECT_THAT(recording.tokens.sequence, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(recording.tokens.position, ElementsAre(0, 1, 2, 0, 1, 2));
  for (const RecordedLayer& layer : recording.layers)
  {
    ASSERT_THAT(layer.heads, SizeIs(H));
    EXPECT_DOUBLE_EQ(layer.scoreScale, std::sqrt(0.5));
    for (std::int64_t h = 0; h < H; ++h)
    {
      const RecordedHead& head = layer.heads[h];
      EXPECT_EQ(Values(head.query), ExpectedRows(0, layer.index, h));
      EXPECT_EQ(Values(head.key), ExpectedRows(1, layer.index, h / 2));
      EXPECT_EQ(Values(head.value), ExpectedRows(2, layer.index, h / 2));
      EXPECT_EQ(head.query.columns, D);
    }
    EXPECT_EQ(layer.heads[0].key.values, layer.heads[1].key.values);
    EXPECT_NE(layer.heads[1].key.values, layer.heads[2].key.values);
  }
}

TEST(RecordingFile, ReadsOldTransformerLensNames)
{
  const RecordingContent content = Read(OldNames());
  EXPECT_THAT(content.warnings, IsEmpty());
  ExpectQueriesKeysValues(content.recording);
  EXPECT_EQ(content.recording.mask, AttentionMask::Causal);
  EXPECT_EQ(content.recording.processing, WeightProcessing::Unknown);
  EXPECT_FALSE(content.recording.rotated);
}

TEST(RecordingFile, ReadsNewNamesWithFlatHeads)
{
  Tensors tensors;
  for (std::int64_t l = 0; l < L; ++l)
  {
    tensors[Block(l, "attn.q.hook_out")] = Floats({ B, T, H * D }, TokenFirst(0, l, H, D));
    tensors[Block(l, "attn.k.hook_out")] = Floats({ B, T, 2 * D }, TokenFirst(1, l, 2, D));
    tensors[Block(l, "attn.qkv.v_hook_out")] = Floats({ B, T, 2, D }, TokenFirst(2, l, 2, D));
  }
  ExpectQueriesKeysValues(Read(tensors, { { "n_heads", "4" } }).recording);
  RecordingReadOptions options;
  options.headCount = H;
  ExpectQueriesKeysValues(Read(tensors, {}, options).recording);
  EXPECT_THAT(
    Refusal(tensors), HasSubstr("array 'blocks.0.attn.q.hook_out': expected the vectors of "
                                "heads side by side, the number of which must be known and "
                                "divide 8; give it as n_heads"));
}

TEST(RecordingFile, ABatchAxisMayBeMissing)
{
  Tensors tensors = OldNames();
  for (auto& [name, tensor] : tensors)
  {
    tensor.shape.erase(tensor.shape.begin());
    tensor.shape[0] = B * T; // both sequences as one
  }
  const Recording recording = Read(tensors).recording;
  EXPECT_THAT(recording.sequenceOffsets, ElementsAre(0, 6));
  EXPECT_EQ(Values(recording.layers[1].heads[3].query), ExpectedRows(0, 1, 3));
}

TEST(RecordingFile, RotatedQueriesAndKeysArePreferred)
{
  Tensors tensors = OldNames();
  for (std::int64_t l = 0; l < L; ++l)
  {
    tensors[Block(l, "attn.hook_rot_q")] = tensors.at(Block(l, "attn.hook_q"));
    tensors[Block(l, "attn.hook_rot_k")] = tensors.at(Block(l, "attn.hook_k"));
    tensors[Block(l, "attn.hook_q")] = Floats({ B, T, H, D }, TokenFirst(3, l, H, D));
    tensors[Block(l, "attn.hook_k")] = Floats({ B, T, 2, D }, TokenFirst(3, l, 2, D));
  }
  const RecordingContent content = Read(tensors);
  ExpectQueriesKeysValues(content.recording);
  EXPECT_TRUE(content.recording.rotated);
  EXPECT_THAT(content.warnings,
    ElementsAre(
      HasSubstr("'blocks.{l}.attn.hook_k' (2 of them) is not used: the rotated keys are used"),
      HasSubstr("'blocks.{l}.attn.hook_q' (2 of them) is not used: the rotated queries are used")));
  tensors.erase(Block(1, "attn.hook_rot_k"));
  EXPECT_THAT(Refusal(tensors), HasSubstr("expected rotated queries and keys (attn.hook_rot_q, "
                                          "attn.hook_rot_k) in each layer that has queries"));
}

TEST(RecordingFile, ReadsNpz)
{
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [name, tensor] : OldNames())
  {
    const auto sizes = ToString(tensor.shape);
    std::vector<float> values;
    for (const double value : tensor.View().ToDouble())
    {
      values.push_back(static_cast<float>(value));
    }
    entries.emplace_back(name + ".npy",
      NpyFile(NpyHeader("<f4", "(" + sizes.substr(1, sizes.size() - 2) + ")"), FloatBytes(values)));
  }
  const TemporaryDirectory folder;
  WriteBytes(folder / "r.npz", ZipFile(entries, true));
  ExpectQueriesKeysValues(ReadRecording(folder / "r.npz").recording);
}

TEST(RecordingFile, ReadsDoublesAndHalves)
{
  Tensors tensors = OldNames();
  for (auto& [name, tensor] : tensors)
  {
    const std::vector<double> values = tensor.View().ToDouble();
    if (name.find("hook_q") != std::string::npos)
    {
      tensor = Floats(tensor.shape, values, DType::F64);
      continue;
    }
    std::vector<std::byte> bytes;
    for (const double value : values)
    {
      const Eigen::half half(static_cast<float>(value));
      const auto* begin = reinterpret_cast<const std::byte*>(&half);
      bytes.insert(bytes.end(), begin, begin + sizeof(half));
    }
    tensor = { DType::F16, tensor.shape, bytes };
  }
  ExpectQueriesKeysValues(Read(tensors).recording);
}

TEST(RecordingFile, ReadsTheStream)
{
  Tensors tensors = OldNames();
  const auto stream = [](double value)
  { return Floats({ B, T, 2 }, std::vector<double>(B * T * 2, value)); };
  tensors["blocks.0.hook_resid_pre"] = stream(1);
  tensors["blocks.0.hook_resid_post"] = stream(2);
  tensors["blocks.1.hook_resid_pre"] = stream(2);
  tensors["blocks.1.hook_resid_post"] = stream(3);
  tensors["unembed.hook_out"] = Floats({ B, T, 5 }, std::vector<double>(B * T * 5, 7));
  tensors["blocks.0.attn.hook_result"] = Floats({ B, T, H, 2 }, TokenFirst(3, 0, H, 2));
  tensors["blocks.1.attn.hook_result"] = Floats({ B, T, H, 2 }, TokenFirst(3, 1, H, 2));
  tensors["hook_tokens"] = Tensor::FromInteger({ B, T }, { 5, 6, 7, 8, 9, 10 });
  RecordingReadOptions options;
  options.processing = WeightProcessing::Processed;
  options.mask = AttentionMask::Bidirectional;
  options.scoreScale = 1;
  options.architecture = "gpt2";
  const RecordingContent content = Read(tensors, { { "processing", "unprocessed" } }, options);
  const Recording& recording = content.recording;
  ASSERT_THAT(recording.residual, SizeIs(3));
  for (std::size_t l = 0; l < 3; ++l)
  {
    EXPECT_EQ(Values(recording.residual[l]), std::vector<float>(12, static_cast<float>(l + 1)));
  }
  EXPECT_EQ(Values(recording.logits), std::vector<float>(30, 7));
  EXPECT_EQ(Values(recording.layers[1].heads[2].output), ExpectedRows(3, 1, 2));
  EXPECT_THAT(recording.tokens.id, ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_EQ(recording.processing, WeightProcessing::Processed);
  EXPECT_EQ(recording.mask, AttentionMask::Bidirectional);
  EXPECT_EQ(recording.layers[0].scoreScale, 1);
  EXPECT_EQ(recording.architecture, "gpt2");
  EXPECT_THAT(
    content.warnings, ElementsAre(HasSubstr("'blocks.0.hook_resid_post' is not used: the "
                                            "residual before the next layer is the same")));
}

TEST(RecordingFile, MisspeltKindsAreErrors)
{
  const auto message = [](const char* key, const char* text)
  { return MessageOf<ModelError>([&] { Read(OldNames(), { { key, text } }); }); };
  EXPECT_THAT(message("mask", "Causal"),
    HasSubstr("metadata 'mask': expected one of causal, bidirectional, cross, found 'Causal'."));
  EXPECT_THAT(message("mask", ""), HasSubstr("found ''."));
}

TEST(RecordingFile, AnotherMeaningOfProcessingIsToldAndNotUsed)
{
  const Metadata metadata = { { "processing", "float16 on GPU" } };
  const RecordingContent content = Read(OldNames(), metadata);
  EXPECT_EQ(content.recording.processing, WeightProcessing::Unknown);
  EXPECT_THAT(content.warnings,
    ElementsAre(HasSubstr("metadata 'processing': expected one of unknown, unprocessed, "
                          "processed, found 'float16 on GPU'. It is not used.")));
  RecordingReadOptions options;
  options.processing = WeightProcessing::Processed;
  const RecordingContent given = Read(OldNames(), metadata, options);
  EXPECT_EQ(given.recording.processing, WeightProcessing::Processed);
  EXPECT_THAT(given.warnings, IsEmpty());
  EXPECT_EQ(Read(OldNames(), { { "processing", "processed" } }).recording.processing,
    WeightProcessing::Processed);
}

TEST(RecordingFile, ABertIsBidirectional)
{
  Tensors tensors = OldNames();
  tensors["blocks.1.hook_normalized_resid_post"] = Floats({ B, T, 1 }, { 1, 2, 3, 4, 5, 6 });
  const Recording recording = Read(tensors).recording;
  EXPECT_EQ(recording.mask, AttentionMask::Bidirectional);
  EXPECT_FALSE(recording.residual[0].IsRecorded());
  EXPECT_THAT(Values(recording.residual[2]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(RecordingFile, NamesWhatIsNotUsed)
{
  Tensors tensors = OldNames();
  tensors["blocks.0.mlp.hook_pre"] = Floats({ 1 }, { 1 });
  tensors["blocks.1.mlp.hook_pre"] = Floats({ 1 }, { 1 });
  tensors["blocks.0.attn.hook_z"] = Floats({ B, T, H, D }, TokenFirst(3, 0, H, D));
  tensors["blocks.0.attn.hook_result"] = Floats({ B, T, 2 }, std::vector<double>(12, 1));
  tensors["blocks.2.attn.hook_q"] = Floats({ B, T, H, D }, TokenFirst(0, 0, H, D));
  tensors["mine"] = Tensor::FromInteger({ 1 }, { 1 });
  const RecordingContent content = Read(tensors);
  EXPECT_THAT(content.warnings, SizeIs(5));
  EXPECT_THAT(
    content.warnings, Contains(HasSubstr("'blocks.{l}.mlp.hook_pre' (2 of them) is not "
                                         "used: no quantity of a recording has this name")));
  EXPECT_THAT(content.warnings, Contains(HasSubstr("array 'mine' is not used: no quantity")));
  EXPECT_THAT(content.warnings,
    Contains(
      HasSubstr("'blocks.0.attn.hook_z' is not used: it follows from attention and values")));
  EXPECT_THAT(content.warnings,
    Contains(HasSubstr("'blocks.0.attn.hook_result' is not used: it is the sum over heads")));
  EXPECT_THAT(content.warnings,
    Contains(
      HasSubstr("'blocks.2.attn.hook_q' is not used: the layer needs both queries and keys")));
}

TEST(RecordingFile, PaddingIsLeftOut)
{
  Tensors tensors = OldNames();
  tensors["attention_mask"] = { DType::BOOL, { B, T },
    { std::byte{ 1 }, std::byte{ 1 }, std::byte{ 0 }, std::byte{ 0 }, std::byte{ 1 },
      std::byte{ 1 } } };
  tensors["input_ids"] = Tensor::FromInteger({ B, T }, { 5, 6, 0, 0, 8, 9 });
  tensors["token_type_ids"] = Tensor::FromInteger({ B, T }, { 0, 1, 0, 0, 0, 1 });
  const Recording recording = Read(tensors).recording;
  EXPECT_THAT(recording.sequenceOffsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(recording.tokens.id, ElementsAre(5, 6, 8, 9));
  EXPECT_THAT(recording.tokens.segment, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(recording.tokens.position, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(recording.layers[0].heads[1].query.Row(2)[1], ValueAt(0, 0, 1, 1, 1, 1));
}

TEST(RecordingFile, TokenStringsComeFromMetadataOrAFileBeside)
{
  const TemporaryDirectory folder;
  WriteSafetensors(
    folder / "r.safetensors", OldNames(), { { "tokens", R"([["a"," b","c"],["d","e","\n"]])" } });
  const auto texts = [&] { return ReadRecording(folder / "r.safetensors").recording.tokens.text; };
  EXPECT_THAT(texts(), ElementsAre("a", " b", "c", "d", "e", "\n"));
  for (const char* lines : { "1\n 2\n3\n4\n5\n6", "1\r\n 2\r\n3\r\n4\r\n5\r\n6\r\n" })
  {
    WriteBytes(folder / "r.tokens.txt", lines);
    EXPECT_THAT(texts(), ElementsAre("1", " 2", "3", "4", "5", "6"));
  }
  WriteBytes(folder / "r.tokens.json", R"({"tokens":["u","v","w","x","y","z"]})");
  EXPECT_THAT(texts(), ElementsAre("u", "v", "w", "x", "y", "z"));
  WriteBytes(folder / "r.tokens.json", R"(["u","v"])");
  EXPECT_THAT(MessageOf<ModelError>(texts),
    HasSubstr("r.tokens.json: expected a string for each of the 6 tokens, found 2"));
  WriteBytes(folder / "r.tokens.json", R"(["u",5])");
  EXPECT_THAT(MessageOf<FormatError>(texts), HasSubstr("expected token strings as an array"));
  WriteBytes(folder / "r.tokens.json", R"([["u",["v"]]])");
  EXPECT_THAT(MessageOf<FormatError>(texts), HasSubstr("expected a token string, found array"));
}

TEST(RecordingFile, MetadataThatMeanSomethingElseDoNotStopIt)
{
  const RecordingContent content = Read(OldNames(), { { "tokens", "300B" } });
  EXPECT_THAT(content.recording.tokens.text, IsEmpty());
  EXPECT_THAT(content.warnings, ElementsAre(HasSubstr("the list of token strings is not JSON")));
}

/// Softmax of rows of 3 in which the first i + 1 (causal) or all scores take part.
std::vector<double> SoftmaxRows(const std::vector<double>& scores, bool causal)
{
  std::vector<double> weights;
  for (std::size_t row = 0; row < scores.size() / 3; ++row)
  {
    const std::size_t allowed = causal ? row % 3 + 1 : 3;
    double sum = 0;
    for (std::size_t j = 0; j < allowed; ++j)
    {
      sum += std::exp(scores[3 * row + j]);
    }
    for (std::size_t j = 0; j < 3; ++j)
    {
      weights.push_back(j < allowed ? std::exp(scores[3 * row + j]) / sum : 0);
    }
  }
  return weights;
}

std::vector<double> SomeScores(std::size_t count)
{
  std::vector<double> scores(count);
  for (std::size_t i = 0; i < count; ++i)
  {
    scores[i] = 0.25 * static_cast<double>(i * 7 % 13);
  }
  return scores;
}

TEST(RecordingFile, ReadsStackedAttention)
{
  const std::vector<double> scores = SomeScores(L * B * H * T * T);
  for (const bool causal : { true, false })
  {
    Tensors tensors;
    tensors["attention"] = Floats({ L, B, H, T, T }, SoftmaxRows(scores, causal));
    tensors["scores"] = Floats({ L, B, H, T, T }, scores);
    const RecordingContent content = Read(tensors);
    const Recording& recording = content.recording;
    EXPECT_EQ(recording.mask, causal ? AttentionMask::Causal : AttentionMask::Bidirectional);
    EXPECT_THAT(content.warnings, IsEmpty());
    ASSERT_THAT(recording.layers, SizeIs(L));
    const RecordedHead& head = recording.layers[1].heads[2];
    ASSERT_THAT(head.scores, SizeIs(B));
    EXPECT_FALSE(head.query.IsRecorded());
    // layer 1, sequence 1, head 2
    const std::size_t begin = ((1 * B + 1) * H + 2) * T * T;
    for (std::size_t i = 0; i < T * T; ++i)
    {
      EXPECT_EQ(Values(head.scores[1])[i], static_cast<float>(scores[begin + i]));
      EXPECT_EQ(
        Values(head.weights[1])[i], static_cast<float>(SoftmaxRows(scores, causal)[begin + i]));
    }
  }
}

TEST(RecordingFile, ANumpyFileIsAttention)
{
  std::vector<float> values(L * H * T * T, 0.25F);
  const TemporaryDirectory folder;
  const auto read = [&]
  {
    WriteBytes(folder / "a.npy", NpyFile(NpyHeader("<f4", "(2, 4, 3, 3)"), FloatBytes(values)));
    return ReadRecording(folder / "a.npy").recording;
  };
  EXPECT_THAT(read().layers.at(1).heads.at(3).weights, SizeIs(1));
  values[17] = -3;
  EXPECT_THAT(read().layers.at(1).heads.at(3).scores, SizeIs(1));
  EXPECT_THAT(read().layers.at(1).heads.at(3).weights, IsEmpty());
}

TEST(RecordingFile, MaskedScoresMayBeMinusInfinityOrVeryLow)
{
  for (const float masked : { -std::numeric_limits<float>::infinity(), -1e5F })
  {
    std::vector<double> scores;
    for (std::size_t i = 0; i < H * T * T; ++i)
    {
      const bool allowed = i % 3 <= i / 3 % 3;
      scores.push_back(allowed ? 1.0 : static_cast<double>(masked));
    }
    Tensors tensors;
    tensors["blocks.0.attn.hook_attn_scores"] = Floats({ H, T, T }, scores);
    const Recording recording = Read(tensors).recording;
    EXPECT_EQ(recording.mask, AttentionMask::Causal);
    EXPECT_EQ(recording.layers[0].heads[3].scores[0].Row(0)[2], masked);
  }
}

/// Queries and keys small enough that attention is not all on one token.
Tensors WithAttention(bool biased)
{
  Tensors tensors;
  const std::vector<double> queries = { 1, 0, 0.5, 1, -1, 2 };
  const std::vector<double> keys = { 0, 1, 1, 1, 0.5, -1 };
  std::vector<double> scores;
  for (std::size_t i = 0; i < 3; ++i)
  {
    for (std::size_t j = 0; j < 3; ++j)
    {
      const double product = queries[2 * i] * keys[2 * j] + queries[2 * i + 1] * keys[2 * j + 1];
      scores.push_back(product / std::sqrt(2.0) + (biased ? 0.5 * static_cast<double>(j) : 0));
    }
  }
  tensors["blocks.0.attn.hook_q"] = Floats({ 1, 3, 1, 2 }, queries);
  tensors["blocks.0.attn.hook_k"] = Floats({ 1, 3, 1, 2 }, keys);
  tensors["blocks.0.attn.hook_pattern"] = Floats({ 1, 1, 3, 3 }, SoftmaxRows(scores, true));
  return tensors;
}

TEST(RecordingFile, AttentionIsKeptOnlyIfQueriesAndKeysDoNotGiveIt)
{
  const RecordingContent given = Read(WithAttention(false));
  EXPECT_FALSE(given.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(given.warnings, ElementsAre(HasSubstr("is not kept, as queries and keys give it")));
  const RecordingContent biased = Read(WithAttention(true));
  EXPECT_TRUE(biased.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(biased.warnings,
    ElementsAre(
      HasSubstr("the stored attention is shown, as queries and keys do not give it (layer "
                "0, head 0, sequence 0, query 2: ")));
  const RecordingContent explained = Read(WithAttention(true), { { "alibi_slopes", "[0.5]" } });
  EXPECT_FALSE(explained.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(explained.recording.alibiSlopes, ElementsAre(0.5));
  const RecordingContent scaled = Read(WithAttention(false), { { "score_scale", "2" } });
  EXPECT_TRUE(scaled.recording.layers[0].heads[0].HasAttention());
}

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<double> Values(const Matrix& matrix)
{
  return { matrix.data(), matrix.data() + matrix.size() };
}

/// Of numbers from -1 to 1, exact in single precision.
Matrix RandomMatrix(Eigen::Index rows, Eigen::Index columns, std::mt19937& generator)
{
  return Matrix::NullaryExpr(
    rows, columns, [&] { return static_cast<float>(generator() % 2001) / 1000 - 1; });
}

/// A recording of two sequences of 300 tokens and two heads, whose weights are all below 0.02 for
/// queries that see many keys; `change` may change the weights [sequence, head, query, key].
Tensors LongAttention(const std::function<void(std::vector<double>&)>& change)
{
  constexpr std::int64_t tokens = 300;
  std::mt19937 generator(5);
  const Matrix queries = RandomMatrix(2 * tokens, 2 * 2, generator);
  const Matrix keys = RandomMatrix(2 * tokens, 2 * 2, generator);
  std::vector<double> weights;
  for (const auto& [s, h] : { std::pair(0, 0), std::pair(0, 1), std::pair(1, 0), std::pair(1, 1) })
  {
    const Matrix products = queries.block(s * tokens, 2 * h, tokens, 2) *
                            keys.block(s * tokens, 2 * h, tokens, 2).transpose();
    Matrix rows = (products.array() / std::sqrt(2.0)).exp();
    rows.array().colwise() /= rows.array().rowwise().sum().eval();
    weights.insert(weights.end(), rows.data(), rows.data() + rows.size());
  }
  EXPECT_LT(*std::max_element(weights.begin(), weights.end()), 0.02);
  change(weights);
  Tensors tensors;
  tensors["blocks.0.attn.hook_q"] = Floats({ 2, tokens, 2, 2 }, Values(queries));
  tensors["blocks.0.attn.hook_k"] = Floats({ 2, tokens, 2, 2 }, Values(keys));
  tensors["blocks.0.attn.hook_pattern"] = Floats({ 2, 2, tokens, tokens }, weights);
  return tensors;
}

TEST(RecordingFile, AttentionOfLongSequencesIsComparedRelatively)
{
  constexpr std::size_t tokens = 300;
  // Head 1 of sequence 1, query 7.
  constexpr std::size_t row = ((1 * 2 + 1) * tokens + 7) * tokens;
  const RecordingContent other = Read(LongAttention(
    [](std::vector<double>& weights)
    {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(row);
      std::rotate(begin, begin + 1, begin + static_cast<std::ptrdiff_t>(tokens));
    }));
  EXPECT_TRUE(other.recording.layers[0].heads[0].HasAttention());
  EXPECT_THAT(other.warnings,
    ElementsAre(
      HasSubstr("the stored attention is shown, as queries and keys do not give it (layer "
                "0, head 1, sequence 1, query 7: ")));
  EXPECT_THAT(other.warnings, ElementsAre(HasSubstr(" % of the attention lies on other keys")));
}

TEST(RecordingFile, AttentionInHalfPrecisionIsThatOfQueriesAndKeys)
{
  const auto rounded = [](auto half)
  {
    return [half](std::vector<double>& weights)
    {
      for (double& weight : weights)
      {
        weight =
          static_cast<double>(static_cast<float>(decltype(half)(static_cast<float>(weight))));
      }
    };
  };
  for (const Tensors& tensors :
    { LongAttention(rounded(Eigen::half())), LongAttention(rounded(Eigen::bfloat16())) })
  {
    const RecordingContent content = Read(tensors);
    EXPECT_FALSE(content.recording.layers[0].heads[1].HasAttention());
    EXPECT_THAT(
      content.warnings, ElementsAre(HasSubstr("is not kept, as queries and keys give it")));
  }
}

double Bfloat16(double value)
{
  return static_cast<double>(static_cast<float>(Eigen::bfloat16(static_cast<float>(value))));
}

/// Causal attention of a head of 64 dimensions on 128 tokens, all numbers rounded to BF16; the
/// largest score is `largest`. `change` may change the scores [query, key] before they are rounded.
/// Stores scores, or else weights.
Tensors LargeScores(double largest, bool scores, const std::function<void(Matrix&)>& change)
{
  constexpr std::int64_t tokens = 128;
  constexpr std::int64_t dimension = 64;
  std::mt19937 generator(3);
  Matrix queries = RandomMatrix(tokens, dimension, generator);
  Matrix keys = RandomMatrix(tokens, dimension, generator);
  const Matrix small = (queries * keys.transpose() / 8).triangularView<Eigen::Lower>();
  queries = (queries * largest / small.cwiseAbs().maxCoeff()).unaryExpr(&Bfloat16);
  keys = keys.unaryExpr(&Bfloat16).eval();
  Matrix stored = queries * keys.transpose() / 8;
  change(stored);
  stored = stored.unaryExpr(&Bfloat16).eval();
  for (std::int64_t query = 0; query < tokens; ++query)
  {
    auto seen = stored.row(query).head(query + 1).array();
    stored.row(query)
      .tail(tokens - query - 1)
      .setConstant(scores ? -std::numeric_limits<double>::infinity() : 0.0);
    if (!scores)
    {
      seen = (seen - seen.maxCoeff()).exp().eval();
      seen = (seen / seen.sum()).unaryExpr(&Bfloat16).eval();
    }
  }
  Tensors tensors;
  tensors["blocks.0.attn.hook_q"] = Floats({ 1, tokens, 1, dimension }, Values(queries));
  tensors["blocks.0.attn.hook_k"] = Floats({ 1, tokens, 1, dimension }, Values(keys));
  tensors[scores ? "blocks.0.attn.hook_attn_scores" : "blocks.0.attn.hook_pattern"] =
    Floats({ 1, 1, tokens, tokens }, Values(stored));
  return tensors;
}

TEST(RecordingFile, LargeScoresInHalfPrecisionAreThoseOfQueriesAndKeys)
{
  const auto scale = [](Matrix& scores) { scores *= 1.2; };
  const auto permute = [](Matrix& scores)
  {
    double* row = scores.row(100).data();
    std::rotate(row, row + 1, row + 101);
  };
  for (const double largest : { 32.0, 73.0 })
  {
    for (const bool scores : { true, false })
    {
      const RecordingContent given = Read(LargeScores(largest, scores, [](auto&) {}));
      EXPECT_FALSE(given.recording.layers[0].heads[0].HasAttention()) << largest << scores;
      EXPECT_THAT(
        given.warnings, ElementsAre(HasSubstr("is not kept, as queries and keys give it")));
      const RecordingContent scaled = Read(LargeScores(largest, scores, scale));
      EXPECT_TRUE(scaled.recording.layers[0].heads[0].HasAttention()) << largest << scores;
      EXPECT_THAT(scaled.warnings, ElementsAre(HasSubstr("queries and keys do not give it")));
      const RecordingContent permuted = Read(LargeScores(largest, scores, permute));
      EXPECT_TRUE(permuted.recording.layers[0].heads[0].HasAttention()) << largest << scores;
      EXPECT_THAT(permuted.warnings,
        ElementsAre(HasSubstr("do not give it (layer 0, head 0, sequence 0, query 100: ")));
    }
  }
}

TEST(RecordingFile, ThreadsDoNotChangeWhatIsSaidOfAttention)
{
  const Tensors tensors = LongAttention(
    [](std::vector<double>& weights) { std::reverse(weights.begin(), weights.end()); });
  RecordingReadOptions options;
  options.threads = 1;
  const std::string alone = Read(tensors, {}, options).warnings.at(0);
  options.threads = 3;
  const std::size_t name = alone.find("the stored attention"); // behind the name of the file
  EXPECT_EQ(Read(tensors, {}, options).warnings.at(0).substr(name), alone.substr(name));
}

// Refusals

TEST(RecordingFile, RefusesNumbersThatAreNotFinite)
{
  for (const char* value : { "nan", "inf", "-inf" })
  {
    Tensors tensors = OldNames();
    std::vector<double> values = TokenFirst(0, 1, H, D);
    values[(4 * H + 2) * D + 1] = std::stod(value);
    tensors["blocks.1.attn.hook_q"] = Floats({ B, T, H, D }, values);
    const std::string message = Refusal(tensors);
    EXPECT_THAT(
      message, HasSubstr("array 'blocks.1.attn.hook_q': expected finite numbers, found "));
    EXPECT_THAT(message, HasSubstr(" for the token in row 4, column 1."));
  }
  Tensors tensors = WithAttention(true);
  tensors["blocks.0.attn.hook_pattern"] =
    Floats({ 1, 1, 3, 3 }, std::vector<double>(9, std::nan("")));
  EXPECT_THAT(Refusal(tensors), HasSubstr("array 'blocks.0.attn.hook_pattern': expected finite"));
}

TEST(RecordingFile, RefusesArraysThatDisagree)
{
  const auto with = [](const std::string& name, Shape shape)
  {
    Tensors tensors = OldNames();
    const std::size_t count = *ElementCount(shape);
    tensors[name] = Floats(std::move(shape), std::vector<double>(count, 1));
    return Refusal(tensors);
  };
  EXPECT_THAT(with("blocks.1.attn.hook_q", { B, T, 6, D }),
    HasSubstr("layer 1: expected 4 as in layer 0, found 6"));
  EXPECT_THAT(with("blocks.1.attn.hook_k", { B, T, 3, D }),
    HasSubstr("array 'blocks.1.attn.hook_k': expected as many heads as there are queries, 4, or a "
              "divisor of it, found 3"));
  EXPECT_THAT(with("blocks.1.attn.hook_k", { B, T, 2, 5 }),
    HasSubstr("expected keys of dimension 2 as the queries 'blocks.1.attn.hook_q', found 5"));
  EXPECT_THAT(with("blocks.1.attn.hook_v", { B, 4, 2, D }),
    HasSubstr("array 'blocks.1.attn.hook_v': expected shape [2, 3, ., .], found [2, 4, 2, 2]"));
  EXPECT_THAT(with("blocks.1.attn.hook_v", { B, T, 2 * D }), HasSubstr("found [2, 3, 4]"));
  EXPECT_THAT(with("blocks.0.hook_resid_pre", { B, 7, 2 }), HasSubstr("expected shape [2, 7, "));
  EXPECT_THAT(with("logits", { T, 2 }), HasSubstr("expected shape [3, ., .], found [2, 3, 4, 2]"));
  Tensors tensors = OldNames();
  for (const char* name : { "blocks.0.attn.hook_result", "blocks.1.attn.hook_result" })
  {
    tensors[name] = Floats({ B, T, 3, 5 }, std::vector<double>(B * T * 3 * 5, 1));
  }
  EXPECT_THAT(Refusal(tensors), HasSubstr("hook_result': expected 4 heads, found 3"));
  tensors = OldNames();
  tensors["blocks.0.attn.hook_q"] =
    Tensor::FromInteger({ B, T, H, D }, std::vector<std::int64_t>(B * T * H * D, 1));
  EXPECT_THAT(Refusal(tensors),
    HasSubstr("array 'blocks.0.attn.hook_q': expected F64, F32, F16 or BF16, found I64"));
  tensors = OldNames();
  tensors["input_ids"] = Floats({ B, T }, { 1, 2, 3, 4, 5, 6 });
  EXPECT_THAT(Refusal(tensors), HasSubstr("array 'input_ids': expected integers, found F32"));
}

TEST(RecordingFile, RefusesFilesWithoutARecording)
{
  EXPECT_THAT(
    Refusal({}), HasSubstr("expected arrays of a recording, such as blocks.0.attn.hook_q "
                           "and hook_k [B,T,H,d], or attention [L,H,T,T], found no array"));
  Tensors tensors;
  tensors["x"] = Floats({ 2 }, { 1, 2 });
  EXPECT_THAT(Refusal(tensors), HasSubstr("found only 'x' [2]"));
  tensors = {};
  tensors["attention"] = Floats({ 3, 3 }, std::vector<double>(9, 1));
  EXPECT_THAT(Refusal(tensors), HasSubstr("found only 'attention' [3, 3]"));
  tensors["attention"] = Floats({ 1, 1, 3, 2 }, std::vector<double>(6, 1));
  EXPECT_THAT(Refusal(tensors), HasSubstr("'attention': expected shape [., ., 2, 2], found"));
  tensors["attention"] = Floats({ 1, 1, 0, 0 }, {});
  EXPECT_THAT(Refusal(tensors), HasSubstr("array 'attention': expected tokens, found shape"));
}

// Native files

SharedMatrix Counting(std::int64_t rows, std::int64_t columns, float begin)
{
  SharedMatrix matrix = SharedMatrix::Zero(rows, columns);
  for (std::size_t i = 0; i < matrix.Count(); ++i)
  {
    matrix.values.get()[i] = begin + static_cast<float>(i) / 3;
  }
  return matrix;
}

/// Everything that a recording may hold, but attention.
Recording Everything()
{
  Recording recording;
  recording.architecture = "llama \"quoted\"";
  recording.mask = AttentionMask::Bidirectional;
  recording.alibiSlopes = { 0.1, 0.7, 1.0 / 3, 1e-9 };
  recording.rotated = true;
  recording.processing = WeightProcessing::Processed;
  recording.layerCount = 5;
  recording.sequenceOffsets = { 0, 2, 2, 5, 5 };
  recording.tokens.sequence = { 0, 0, 2, 2, 2 };
  recording.tokens.position = { 0, 1, 0, 1, 2 };
  recording.tokens.id = { 1, 1LL << 40U, 0, -1, 7 };
  recording.tokens.text = { "a", " b\n", "\xe6\x97\xa5", "", "\"" };
  recording.tokens.segment = { 0, 1, 0, 0, 1 };
  recording.tokens.row = { -1, 0, 1, 2, 3 };
  recording.tokens.column = { -1, 3, 2, 1, 0 };
  for (const std::int32_t index : { 1, 3 })
  {
    RecordedLayer layer;
    layer.index = index;
    layer.scoreScale = 0.1 * index;
    layer.heads.resize(4);
    for (std::size_t h = 0; h < 4; ++h)
    {
      RecordedHead& head = layer.heads[h];
      const auto begin = static_cast<float>(10 * h);
      head.query = Counting(5, 3, begin);
      head.key = h % 2 == 0 ? Counting(5, 3, begin + 1) : layer.heads[h - 1].key;
      head.value = h % 2 == 0 ? Counting(5, 2, begin + 2) : layer.heads[h - 1].value;
      head.output = Counting(5, 6, begin + 3);
    }
    recording.layers.push_back(layer);
  }
  recording.residual.resize(6);
  recording.residual[0] = Counting(5, 6, -1);
  recording.residual[5] = Counting(5, 6, -2);
  recording.logits = Counting(5, 9, 4);
  return recording;
}

/// Writes, reads, writes again: the same recording and the same bytes.
Recording ExpectRoundTrip(const Recording& recording)
{
  const TemporaryDirectory folder;
  WriteRecording(folder / "a.safetensors", recording);
  const RecordingContent content = ReadRecording(folder / "a.safetensors");
  EXPECT_THAT(content.warnings, IsEmpty());
  ExpectEqual(content.recording, recording);
  WriteRecording(folder / "b.safetensors", content.recording);
  EXPECT_EQ(ReadBytes(folder / "a.safetensors"), ReadBytes(folder / "b.safetensors"));
  WriteRecording(
    folder / "a.safetensors", content.recording); // over the file that it is mapped from
  ExpectEqual(content.recording, recording);
  return content.recording;
}

TEST(RecordingRoundTrip, CanBeCanceled)
{
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder / "a.safetensors";
  std::vector<double> told;
  EXPECT_THROW(WriteRecording(path, Everything(), KeepReports(told, 2)), Canceled);
  EXPECT_EQ(told.size(), 2U);
  EXPECT_TRUE(std::filesystem::is_empty(path.parent_path())); // of temporary files, too

  told.clear();
  WriteRecording(path, Everything(), KeepReports(told));
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 1);
  ExpectEqual(ReadRecording(path).recording, Everything());
}

TEST(RecordingRoundTrip, KeepsEverything)
{
  const Recording found = ExpectRoundTrip(Everything());
  EXPECT_EQ(found.layers[0].heads[0].key.values, found.layers[0].heads[1].key.values);
  EXPECT_NE(found.layers[0].heads[1].key.values, found.layers[0].heads[2].key.values);
}

TEST(RecordingRoundTrip, KeepsAttention)
{
  Recording recording = Everything();
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.query = head.key = {};
      for (const std::int64_t length : { 2, 0, 3, 0 })
      {
        head.weights.push_back(Counting(length, length, 0));
        head.scores.push_back(Counting(length, length, -8));
      }
      head.scores[0].Row(0)[1] = -std::numeric_limits<float>::infinity();
    }
  }
  ExpectRoundTrip(recording);
}

TEST(RecordingRoundTrip, KeepsLittle)
{
  Recording recording;
  recording.layerCount = 2;
  recording.sequenceOffsets = { 0 };
  ExpectRoundTrip(recording);
  recording = Everything();
  recording.tokens.id.clear();
  recording.tokens.text.clear();
  recording.tokens.segment.clear();
  recording.tokens.row.clear();
  recording.tokens.column.clear();
  recording.alibiSlopes.clear();
  recording.residual.clear();
  recording.logits = {};
  for (RecordedLayer& layer : recording.layers)
  {
    layer.heads.assign(4, {});
  }
  ExpectRoundTrip(recording);
}

TEST(RecordingRoundTrip, KeepsTheParts)
{
  const Recording recording = TranslatedRecording();
  ExpectRoundTrip(recording);
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", recording);
  const ArrayFile file(folder / "a");
  EXPECT_EQ(file.GetMetadata().at("version"), "3");
  EXPECT_EQ(file.GetMetadata().at("cross.mask"), "cross");
  EXPECT_EQ(file.GetEntries().count("cross.source_lengths"), 1U);
  EXPECT_EQ(file.GetEntries().count("encoder.distance_bias"), 1U);
}

TEST(RecordingRoundTrip, KeepsPicturesAmongWords)
{
  Recording recording = PicturedRecording();
  ExpectRoundTrip(recording);
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", recording);
  const ArrayFile file(folder / "a");
  EXPECT_EQ(file.GetMetadata().at("version"), "4");
  EXPECT_EQ(file.GetMetadata().at("picture_contents"),
    "[[0,0,1,0,8,12],[1,0,1,0,8,4],[2,0,2,0,4,8],[2,2,2,0,4,8]]");
  EXPECT_EQ(file.GetMetadata().at("encoder.patch_windows"), R"({"0":2})");
  EXPECT_EQ(file.GetMetadata().count("picture_size"), 0U);
  EXPECT_THAT(file.GetEntries().at("pictures").shape, ElementsAre(96 + 32 + 32 + 32, 3));
  EXPECT_THAT(file.GetEntries().at("tokens.picture").shape, ElementsAre(17));

  recording.pictures.contents[1].isSmall = true;
  recording.pictures.pixels = nullptr;
  recording.pictures.processing = "{}";
  for (const char* name : { "a.png", "b.png", "film-0.png", "film-1.png" })
  {
    recording.pictures.sources.push_back({ name, "0123" });
  }
  ExpectRoundTrip(recording);
  recording.pictures.sources.clear();
  recording.pictures.processing.clear();
  ExpectRoundTrip(recording); // of another program, without pictures
  recording.encoder = nullptr;
  ExpectRoundTrip(recording);
  recording.pictures = {};
  ExpectRoundTrip(recording);
}

/// An encoder of images of any size alone, with their pictures.
TEST(RecordingRoundTrip, KeepsImagesOfTheirOwnSizes)
{
  const Recording text = PicturedRecording();
  Recording images = *text.encoder;
  ExpectRoundTrip(images);
  images.pictures = text.pictures;
  ExpectRoundTrip(images);
  images.pictures = {};
  images.layers[0].patchWindow = 0;
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", images);
  EXPECT_EQ(ArrayFile(folder / "a").GetMetadata().at("version"), "1"); // as ever
}

TEST(RecordingRoundTrip, KeepsWhatOthersWrote)
{
  ExpectRoundTrip(Read(OldNames()).recording);
  ExpectRoundTrip(Read(WithAttention(true)).recording);
}

TEST(RecordingFile, NativeFilesAreMapped)
{
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", Everything());
  const Recording recording = ReadRecording(folder / "a").recording;
  // In the file, arrays of a head lie in the order of their names: key, output, query, value.
  const RecordedHead& head = recording.layers[0].heads[0];
  EXPECT_EQ(head.output.values.get(), head.key.values.get() + head.key.Count());
  EXPECT_EQ(head.query.values.get(), head.output.values.get() + head.output.Count());
  EXPECT_EQ(head.value.values.get(), head.query.values.get() + head.query.Count());
}

/// A native file, and the messages when parts of it are changed.
class NativeFile
{
public:
  explicit NativeFile(const Recording& recording)
    : Arrays((WriteRecording(this->Folder / "a", recording), this->Folder / "a"))
  {
  }

  template<class ErrorType>
  std::string With(const std::string& key, const std::string& text) const
  {
    Metadata metadata = this->Arrays.GetMetadata();
    metadata[key] = text;
    return this->Refusal<ErrorType>(this->Arrays.GetTensors(), metadata);
  }

  template<class Change>
  std::string Changed(const Change& change) const
  {
    TensorViews tensors = this->Arrays.GetTensors();
    change(tensors);
    return this->Refusal<ModelError>(tensors, this->Arrays.GetMetadata());
  }

private:
  TemporaryDirectory Folder;
  SafetensorsFile Arrays;

  template<class ErrorType>
  std::string Refusal(const TensorViews& tensors, const Metadata& metadata) const
  {
    WriteSafetensorViews(this->Folder / "b", tensors, metadata);
    return MessageOf<ErrorType>([&] { ReadRecording(this->Folder / "b"); });
  }
};

TEST(RecordingFile, BadNativeFilesAreRefused)
{
  const NativeFile file(Everything());
  const auto with = [&](const std::string& key, const std::string& text)
  { return file.With<FormatError>(key, text); };
  EXPECT_THAT(with("version", "5"),
    HasSubstr("expected version 1, 2, 3 or 4 of the format attention-atlas.recording, found '5'"));
  EXPECT_THAT(with("mask", "none"),
    HasSubstr("metadata 'mask': expected one of causal, bidirectional, cross, found 'none'"));
  EXPECT_THAT(with("rotated", "yes"), HasSubstr("expected one of true, false, found 'yes'"));
  EXPECT_THAT(with("processing", ""), HasSubstr("unknown, unprocessed, processed, found ''"));
  EXPECT_THAT(with("layer_count", "-1"), HasSubstr("an integer from 0 to 10000, found '-1'"));
  EXPECT_THAT(with("head_count", "99999999"), HasSubstr("metadata 'head_count': expected"));
  EXPECT_THAT(with("head_count", "1000000"), HasSubstr("a JSON object of at most 1000000 heads"));
  EXPECT_THAT(with("score_scales", "[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(with("score_scales", R"({"x":1})"), HasSubstr("found 'x': 1"));
  EXPECT_THAT(with("alibi_slopes", R"(["a"])"), HasSubstr("expected an array of numbers"));
  EXPECT_THAT(with("tokens", "no"), HasSubstr("the list of token strings is not JSON"));
  const auto model = [&](const std::string& key, const std::string& text)
  { return file.With<ModelError>(key, text); };
  EXPECT_THAT(
    model("layer_count", "2"), HasSubstr("expected layers in ascending order and below 2"));
  EXPECT_THAT(model("alibi_slopes", "[1]"), HasSubstr("expected 4 ALiBi slopes, found 1"));
  EXPECT_THAT(model("tokens", R"(["a"])"), HasSubstr("a string for each of the 5 tokens, found 1"));
}

/// Caps, windows and sinks of some layers.
Recording Variants()
{
  Recording recording = Everything();
  recording.mask = AttentionMask::Causal;
  recording.layers[0].scoreCap = 50;
  recording.layers[0].window = 4096;
  recording.layers[1].sinks = { 0.1F, -2.5F, 3, 1e-7F };
  return recording;
}

TEST(RecordingFile, VariantsAreKeptAndRaiseTheVersion)
{
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", Variants());
  EXPECT_EQ(SafetensorsFile(folder / "a").GetMetadata().at("version"), "2");
  EXPECT_EQ(SafetensorsFile(folder / "a").GetMetadata().at("windows"), R"({"1":4096})");
  ExpectEqual(ReadRecording(folder / "a").recording, Variants());
  WriteRecording(folder / "b", ReadRecording(folder / "a").recording);
  EXPECT_EQ(ReadBytes(folder / "b"), ReadBytes(folder / "a"));

  Recording windowed = Everything();
  windowed.mask = AttentionMask::Causal;
  windowed.layers[1].window = 3;
  WriteRecording(folder / "c", windowed);
  ExpectEqual(ReadRecording(folder / "c").recording, windowed);
  EXPECT_EQ(SafetensorsFile(folder / "c").GetMetadata().count("sinks"), 0U);

  WriteRecording(folder / "d", Everything()); // programs that know version 1 alone can read it
  EXPECT_EQ(SafetensorsFile(folder / "d").GetMetadata().at("version"), "1");
}

TEST(RecordingFile, BadVariantsAreRefused)
{
  const NativeFile file(Variants());
  const auto format = [&](const std::string& key, const std::string& text)
  { return file.With<FormatError>(key, text); };
  EXPECT_THAT(format("windows", "[1]"),
    HasSubstr("metadata 'windows': expected a JSON object of layers, found array"));
  EXPECT_THAT(format("windows", R"({"2":4})"),
    HasSubstr("metadata 'windows': expected layers that score_scales has, found '2'"));
  EXPECT_THAT(format("windows", R"({"x":4})"), HasSubstr("score_scales has, found 'x'"));
  EXPECT_THAT(format("windows", R"({"1":4.5})"),
    HasSubstr("metadata 'windows', layer 1: expected an integer of 64 bits, found 4.5"));
  EXPECT_THAT(format("windows", R"({"1":18446744073709551615})"),
    HasSubstr("expected an integer of 64 bits, found 18446744073709551615"));
  EXPECT_THAT(format("score_caps", R"({"1":"a"})"),
    HasSubstr("metadata 'score_caps', layer 1: expected a number, found \"a\""));
  EXPECT_THAT(format("sinks", R"({"3":[1,2,3]})"),
    HasSubstr("metadata 'sinks', layer 3: expected an array of a number per head, found array"));
  EXPECT_THAT(format("sinks", R"({"3":[1,2,3,null]})"), HasSubstr("expected an array of a number"));
  EXPECT_THAT(format("sinks", "{"), HasSubstr("the metadata 'sinks' is not JSON"));
  const auto model = [&](const std::string& key, const std::string& text)
  { return file.With<ModelError>(key, text); };
  EXPECT_THAT(model("windows", R"({"1":-4})"),
    HasSubstr("layer 1: expected a window of at least 1 key, or 0 for none, found -4"));
  EXPECT_THAT(model("score_caps", R"({"1":-1})"), HasSubstr("layer 1: expected a score cap above"));
  EXPECT_THAT(model("score_caps", R"({"1":1e200})"), HasSubstr("expected a score cap above"));
  EXPECT_THAT(model("sinks", R"({"3":[1,2,3,1e60]})"),
    HasSubstr("layer 3, head 3: expected a finite sink, found inf"));
  EXPECT_THAT(model("mask", "bidirectional"),
    HasSubstr("layer 1: expected a causal mask, as its window has the last 4096 keys"));
}

TEST(RecordingFile, BadPicturesAmongWordsAreRefused)
{
  const NativeFile file(PicturedRecording());
  const auto format = [&](const std::string& contents)
  { return file.With<FormatError>("picture_contents", contents); };
  for (const char* contents : { "{}", "[]", "3" })
  {
    EXPECT_THAT(format(contents), HasSubstr("'picture_contents': expected an array of pictures"));
  }
  for (const char* entry : { "[0,0,1,0,8]", "[0,0,1,0,8,-12]", "[0,0,1,2,8,12]", "[0,0,1,0,8,1.5]",
         R"([0,0,1,0,8,"12"])", "7" })
  {
    EXPECT_THAT(format(std::string("[") + entry + "]"),
      AllOf(HasSubstr("'picture_contents': expected arrays of six numbers of at least 0"),
        HasSubstr(std::string("found ") + entry)));
  }
  EXPECT_THAT(file.With<FormatError>("encoder.patch_windows", R"({"0":"a"})"),
    HasSubstr("metadata 'patch_windows', layer 0: expected an integer of 64 bits"));
  const auto model = [&](const std::string& contents)
  { return file.With<ModelError>("picture_contents", contents); };
  // More, fewer and huge pixels; each the others as they are.
  const std::string others = ",[1,0,1,0,8,4],[2,0,2,0,4,8],[2,2,2,0,4,8]]";
  for (const char* first :
    { "[0,0,1,0,8,16]", "[0,0,1,0,8,8]", "[0,0,1,0,99999999999999,99999]", "[0,0,1,0,0,12]" })
  {
    EXPECT_THAT(model("[" + (first + others)), HasSubstr("array 'pictures': expected shape"));
  }
  EXPECT_THAT(model("[[0,0,0,0,8,12]" + others), HasSubstr("1 frame or more, found picture 0"));
  EXPECT_THAT(file.With<ModelError>("encoder.patch_windows", R"({"0":-2})"),
    HasSubstr("layer 0: expected a window of at least 1 patch on a side"));

  const auto place = [&](const char* name, std::int32_t value)
  {
    const std::vector<std::int32_t> list(17, value);
    return file.Changed([&](TensorViews& tensors)
      { tensors[name] = { DType::I32, { 17 }, reinterpret_cast<const std::byte*>(list.data()) }; });
  };
  EXPECT_THAT(place("tokens.picture", 4),
    HasSubstr("token 0: expected a place in one of the 4 pictures, or -1 -1 -1 for a word, found "
              "picture 4, row -1, column -1"));
  EXPECT_THAT(place("tokens.picture", -2), HasSubstr("found picture -2"));
  EXPECT_THAT(place("tokens.row", 8), HasSubstr("found picture -1, row 8"));
  EXPECT_THAT(place("tokens.column", -1), HasSubstr("token 1: expected a place"));
  EXPECT_THAT(file.Changed([](TensorViews& tensors) { tensors.erase("tokens.row"); }),
    HasSubstr("expected rows and columns of tokens that are parts of pictures"));
  EXPECT_THAT(file.Changed([](TensorViews& tensors) { tensors.erase("tokens.picture"); }),
    HasSubstr("expected"));
}

/// Pictures among words of other programs.
TEST(RecordingFile, ReadsWhichTokensArePixels)
{
  Tensors tensors = OldNames();
  const auto places = [](const std::vector<std::int64_t>& values)
  { return Tensor::FromInteger({ B, T }, values); };
  tensors["token_picture"] = places({ -1, 0, 0, 1, -1, -1 });
  tensors["token_row"] = places({ -1, 0, 1, 0, -1, -1 });
  tensors["token_column"] = places({ -1, 0, 0, 5, -1, -1 });
  const RecordingContent content = Read(tensors);
  EXPECT_THAT(content.recording.tokens.picture, ElementsAre(-1, 0, 0, 1, -1, -1));
  EXPECT_THAT(content.recording.tokens.row, ElementsAre(-1, 0, 1, 0, -1, -1));
  EXPECT_THAT(content.recording.tokens.column, ElementsAre(-1, 0, 0, 5, -1, -1));
  EXPECT_TRUE(content.recording.pictures.IsEmpty());
  EXPECT_THAT(content.warnings, IsEmpty());
  tensors["token_row"] = places({ -1, 0, 1, -1, -1, -1 });
  EXPECT_THAT(Refusal(tensors), HasSubstr("token 3: expected a place in one of the pictures"));
  tensors["token_row"] = places({ -1, 0, 1, -2, -1, -1 });
  EXPECT_THAT(
    Refusal(tensors), HasSubstr("array 'token_row': expected integers of 32 bits from -1"));
  tensors.erase("token_row");
  EXPECT_THAT(Refusal(tensors), HasSubstr("expected rows and columns of tokens"));
}

/// Routing of a layer: 2 of 5 experts for each of the 5 tokens.
Recording Routed()
{
  Recording recording = Everything();
  RecordedRouting& routing = recording.layers[1].routing;
  routing = { 5, SharedMatrix::Zero(5, 2), SharedMatrix::Zero(5, 2) };
  for (int i = 0; i < 10; ++i)
  {
    routing.chosen.values.get()[i] = static_cast<float>(3 * i % 5);
    routing.weights.values.get()[i] = 1.0F / static_cast<float>(i + 1);
  }
  return recording;
}

TEST(RecordingFile, RoutingIsKept)
{
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", Routed());
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.GetMetadata().at("version"), "1"); // older programs leave it out
  EXPECT_EQ(file.GetMetadata().at("expert_counts"), R"({"3":5})");
  EXPECT_THAT(file.GetTensors().at("layers.3.experts").shape, ElementsAre(5, 2));
  const RecordingContent content = ReadRecording(folder / "a");
  ExpectEqual(content.recording, Routed());
  EXPECT_THAT(content.warnings, IsEmpty());
  WriteRecording(folder / "b", content.recording);
  EXPECT_EQ(ReadBytes(folder / "b"), ReadBytes(folder / "a"));

  WriteRecording(folder / "c", Everything());
  EXPECT_EQ(SafetensorsFile(folder / "c").GetMetadata().count("expert_counts"), 0U);
}

/// As a program with PyTorch writes them.
TEST(RecordingFile, NumbersOfExpertsMayBeIntegers)
{
  const TemporaryDirectory folder;
  WriteRecording(folder / "a", Routed());
  const SafetensorsFile file(folder / "a");
  TensorViews tensors = file.GetTensors();
  const std::vector<std::int64_t> numbers = { 0, 3, 1, 4, 2, 0, 3, 1, 4, 2 };
  tensors["layers.3.experts"] = { DType::I64, { 5, 2 },
    reinterpret_cast<const std::byte*>(numbers.data()) };
  WriteSafetensorViews(folder / "b", tensors, file.GetMetadata());
  ExpectEqual(ReadRecording(folder / "b").recording, Routed());
}

TEST(RecordingFile, BadRoutingIsRefused)
{
  const NativeFile file(Routed());
  EXPECT_THAT(file.With<ModelError>("expert_counts", R"({"3":4})"),
    HasSubstr("layer 3: experts: expected numbers of its 4 experts, from 0, found 4 at token 1."));
  EXPECT_THAT(file.With<FormatError>("expert_counts", R"({"3":-1})"),
    HasSubstr("metadata 'expert_counts', layer 3: expected a number of experts, found -1"));
  EXPECT_THAT(file.With<FormatError>("expert_counts", R"({"3":4000000000})"),
    HasSubstr("expected a number of experts, found 4000000000"));
  EXPECT_THAT(file.With<FormatError>("expert_counts", R"({"7":4})"),
    HasSubstr("metadata 'expert_counts': expected layers that score_scales has, found '7'"));
  EXPECT_THAT(file.Changed([](TensorViews& tensors) { tensors.erase("layers.3.expert_weights"); }),
    HasSubstr("layer 3: expected both experts and their weights or neither, found experts alone."));
  const std::vector<float> bad = { 0, 3, 1, 4, 2, 0, 3, std::nanf(""), 4, 2 };
  const auto replaced = [&](const char* name)
  {
    return file.Changed([&](TensorViews& tensors)
      { tensors.at(name).data = reinterpret_cast<const std::byte*>(bad.data()); });
  };
  for (const char* name : { "layers.3.experts", "layers.3.expert_weights" })
  {
    EXPECT_THAT(replaced(name), HasSubstr(name));
    EXPECT_THAT(replaced(name), HasSubstr("nan"));
  }
}

TEST(RecordingFile, NativeArraysMustFit)
{
  const NativeFile file(Everything());
  const auto without = [&](const std::string& name)
  { return file.Changed([&](TensorViews& tensors) { EXPECT_EQ(tensors.erase(name), 1U); }); };
  EXPECT_THAT(
    without("sequence_offsets"), HasSubstr("'sequence_offsets': expected shape [.], but it "
                                           "is missing"));
  EXPECT_THAT(without("tokens.position"), HasSubstr("increase from 0 to the number of tokens, 0"));
  EXPECT_THAT(without("layers.1.heads.0.query"),
    HasSubstr("layer 1, head 0: expected both queries and keys"));
  EXPECT_THAT(without("layers.3.heads.2.output"),
    HasSubstr("layer 3, head 2: output: expected to be recorded in all heads or in none"));
  EXPECT_THAT(file.Changed([](TensorViews& tensors) { tensors.at("tokens.id").shape = { 1 }; }),
    HasSubstr("array 'tokens.id': expected shape [5], found [1]"));
}

/// Two images of 2 x 2 pixels, each of a class token and one patch.
Recording Images()
{
  Recording recording;
  recording.architecture = "vit";
  recording.mask = AttentionMask::Bidirectional;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0, 2, 4 };
  recording.tokens.sequence = { 0, 0, 1, 1 };
  recording.tokens.position = { 0, 1, 0, 1 };
  recording.tokens.row = recording.tokens.column = { -1, 0, -1, 0 };
  RecordedHead head;
  head.query = head.key = SharedMatrix::Zero(4, 1);
  recording.layers.push_back({ 0, 1, { head } });
  recording.pictures.count = recording.pictures.height = recording.pictures.width = 2;
  const std::shared_ptr<std::uint8_t[]> pixels(new std::uint8_t[24]);
  std::iota(pixels.get(), pixels.get() + 24, std::uint8_t{ 100 });
  recording.pictures.pixels = { pixels, pixels.get() };
  return recording;
}

/// The same, whose pixels are elsewhere.
Recording NamedImages()
{
  Recording recording = Images();
  recording.pictures.pixels = nullptr;
  recording.pictures.sources = { { "/a folder/\u00e4.png", "0123" }, { "b.png", "4567" } };
  recording.pictures.processing = R"({"size": 2})";
  return recording;
}

TEST(RecordingRoundTrip, KeepsPictures)
{
  const TemporaryDirectory folder;
  for (const Recording& recording : { Images(), NamedImages() })
  {
    WriteRecording(folder / "a", recording);
    const RecordingContent content = ReadRecording(folder / "a");
    ExpectEqual(content.recording, recording);
    EXPECT_THAT(content.warnings, IsEmpty());
    Recording without = recording; // as older versions wrote it
    without.pictures = {};
    WriteRecording(folder / "b", without);
    ExpectEqual(ReadRecording(folder / "b").recording, without);
  }
}

TEST(RecordingFile, RefusesDamagedPictures)
{
  const NativeFile file(Images());
  const auto with = [&](DType dtype, const Shape& shape)
  {
    return file.Changed(
      [&](TensorViews& tensors)
      {
        tensors.at("pictures").dtype = dtype;
        tensors.at("pictures").shape = shape;
      });
  };
  EXPECT_THAT(
    with(DType::I8, { 2, 2, 2, 3 }), HasSubstr("array 'pictures': expected U8, found I8"));
  EXPECT_THAT(with(DType::U8, { 2, 2, 3, 2 }),
    HasSubstr("array 'pictures': expected shape [2, ., ., 3], found [2, 2, 3, 2]"));
  EXPECT_THAT(with(DType::U8, { 1, 4, 2, 3 }), HasSubstr("expected shape [2, ., ., 3]"));
  EXPECT_THAT(with(DType::U8, { 2, 0, 2, 3 }), HasSubstr("expected pictures of 1 to 16384 pixels"));
  EXPECT_THAT(file.Changed([](TensorViews& tensors) { tensors.erase("tokens.row"); }),
    HasSubstr("expected pictures of images, but the tokens have no patch rows"));

  const NativeFile named(NamedImages());
  for (const char* text : { "[2]", "[2, -2]", "[2, 2.5]", R"({"a": 2})", "[\"2\", 2]" })
  {
    EXPECT_THAT(named.With<FormatError>("picture_size", text),
      HasSubstr("metadata 'picture_size' and 'picture_sources': expected [height, width]"));
  }
  EXPECT_THAT(named.With<ModelError>("picture_size", "[2, 99999999999999999]"),
    HasSubstr("expected pictures of 1 to 16384 pixels on a side"));
  for (const char* text : { R"([["a.png"]])", R"([["a.png", 1]])", R"([1, 2])" })
  {
    EXPECT_THAT(named.With<FormatError>("picture_sources", text),
      HasSubstr("metadata 'picture_sources': expected pairs of a file and a hash"));
  }
  EXPECT_THAT(named.With<ModelError>("picture_sources", R"([["a.png", "1"]])"),
    HasSubstr("expected a picture for each of the 2 images, found 1"));
  EXPECT_THAT(
    named.With<FormatError>("picture_sources", "["), HasSubstr("the metadata 'picture_sources'"));
}

TEST(RecordingFile, WritesOnlyWhatFitsTogether)
{
  const TemporaryDirectory folder;
  Recording recording = Everything();
  recording.layers[1].heads.pop_back();
  EXPECT_THAT(MessageOf<ModelError>([&] { WriteRecording(folder / "a", recording); }),
    HasSubstr("layer 3: expected 4 as in layer 1, found 3"));
  EXPECT_THAT(folder.Entries(), IsEmpty());
  EXPECT_THAT(MessageOf<FileError>([&] { WriteRecording(folder / "x/a", Everything()); }),
    HasSubstr("cannot write file"));
}

// Recordings of real models

const std::filesystem::path OracleFolder = ATLAS_ORACLE_DIR;

TEST(OriginalRecording, AttentionOfGpt2)
{
  for (const char* name : { "prompt0", "prompt1", "prompt2" })
  {
    const std::filesystem::path path = OracleFolder / "gpt2" / (std::string(name) + ".safetensors");
    const RecordingContent content = ReadRecording(path);
    const Recording& recording = content.recording;
    EXPECT_THAT(content.warnings, IsEmpty());
    EXPECT_EQ(recording.architecture, "gpt2 (124M)");
    EXPECT_EQ(recording.mask, AttentionMask::Causal);
    EXPECT_EQ(recording.layerCount, 12);
    EXPECT_THAT(recording.sequenceOffsets, ElementsAre(0, 6));
    const SafetensorsFile file(path);
    EXPECT_EQ(recording.tokens.id, file.GetTensors().at("token_ids").ToInteger());
    EXPECT_EQ(recording.tokens.text,
      nlohmann::json::parse(file.GetMetadata().at("tokens")).get<std::vector<std::string>>());
    const std::vector<double> weights = file.GetTensors().at("attention").ToDouble();
    const std::vector<double> scores = file.GetTensors().at("scores").ToDouble();
    for (std::size_t l = 0; l < 12; ++l)
    {
      for (std::size_t h = 0; h < 12; ++h)
      {
        const RecordedHead& head = recording.layers.at(l).heads.at(h);
        const std::size_t begin = (l * 12 + h) * 36;
        for (std::size_t i = 0; i < 36; ++i)
        {
          ASSERT_EQ(static_cast<double>(Values(head.weights.at(0))[i]), weights[begin + i]);
          ASSERT_EQ(static_cast<double>(Values(head.scores.at(0))[i]), scores[begin + i]);
        }
      }
    }
    ExpectRoundTrip(recording);
  }
}

using OriginalModel = testing::TestWithParam<const char*>;

INSTANTIATE_TEST_SUITE_P(, OriginalModel, testing::Values("gpt2", "bert", "vit", "bloom", "llama"),
  [](const auto& name) { return std::string(name.param); });

TEST_P(OriginalModel, IsReadHeadsFirst)
{
  const std::string name = GetParam();
  const std::filesystem::path path = OracleFolder / "transformers" / name / "expected.safetensors";
  const SafetensorsFile file(path);
  const RecordingContent content = ReadRecording(path);
  const Recording& recording = content.recording;
  EXPECT_EQ(recording.mask == AttentionMask::Bidirectional, name == "bert" || name == "vit");
  const TensorView& query = file.GetTensors().at("layer.1.query");
  const std::size_t tokens = query.shape[2];
  const std::size_t width = query.shape[3];
  // Head 2 of layer 1 in sequence 1, whose padding in BERT's case is at the end.
  const RecordedHead& head = recording.layers.at(1).heads.at(2);
  const std::int64_t begin = recording.sequenceOffsets[1];
  EXPECT_EQ(begin, query.shape[2]);
  for (std::int64_t t = 0; t < recording.SequenceLength(1); ++t)
  {
    for (std::size_t i = 0; i < width; ++i)
    {
      const std::size_t place = ((1 * 4 + 2) * tokens + static_cast<std::size_t>(t)) * width + i;
      ASSERT_EQ(static_cast<double>(head.query.Row(begin + t)[i]), query.At(place));
      ASSERT_EQ(static_cast<double>(head.key.Row(begin + t)[i]),
        file.GetTensors().at("layer.1.key").At(place));
    }
  }
  // Attention follows from queries and keys, except where ALiBi is added.
  EXPECT_EQ(head.HasAttention(), name == "bloom");
  EXPECT_EQ(recording.SequenceLength(1) < query.shape[2], name == "bert");
  EXPECT_THAT(recording.residual, SizeIs(3));
  ExpectRoundTrip(recording);
}

}
