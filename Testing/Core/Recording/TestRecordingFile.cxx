#include "Recording/RecordingFile.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "NumpyBytes.h"
#include "RecordingArrays.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

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
      EXPECT_EQ(ValuesOf(head.query), ExpectedRows(0, layer.index, h));
      EXPECT_EQ(ValuesOf(head.key), ExpectedRows(1, layer.index, h / 2));
      EXPECT_EQ(ValuesOf(head.value), ExpectedRows(2, layer.index, h / 2));
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
    Refusal(tensors), HasSubstr("'blocks.0.attn.q.hook_out': expected the vectors of heads side by "
                                "side, the number of which must be known and divide 8"));
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
  EXPECT_EQ(ValuesOf(recording.layers[1].heads[3].query), ExpectedRows(0, 1, 3));
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
    EXPECT_EQ(ValuesOf(recording.residual[l]), std::vector<float>(12, static_cast<float>(l + 1)));
  }
  EXPECT_EQ(ValuesOf(recording.logits), std::vector<float>(30, 7));
  EXPECT_EQ(ValuesOf(recording.layers[1].heads[2].output), ExpectedRows(3, 1, 2));
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
  EXPECT_THAT(ValuesOf(recording.residual[2]), ElementsAre(1, 2, 3, 4, 5, 6));
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
  EXPECT_THAT(content.warnings,
    UnorderedElementsAre(
      HasSubstr("'blocks.{l}.mlp.hook_pre' (2 of them) is not used: no quantity"),
      HasSubstr("array 'mine' is not used: no quantity"),
      HasSubstr("'blocks.0.attn.hook_z' is not used: it follows from attention and values"),
      HasSubstr("'blocks.0.attn.hook_result' is not used: it is the sum over heads"),
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
  tensors["token_type_ids"] =
    Tensor::FromInteger({ B, T }, { 0, std::int64_t{ 1 } << 32, 0, 0, 0, 1 });
  EXPECT_THAT(MessageOf<ModelError>([&] { Read(tensors); }),
    HasSubstr("array 'token_type_ids': expected integers of 32 bits from"));
}

/// Masks of any type and shape, padding at both ends, and texts of all rows.
TEST(RecordingFile, PaddingMayBeAtBothEnds)
{
  Tensors tensors = WithAttention(false);
  tensors["blocks.0.attn.hook_pattern"] = Floats({ 1, 1, 3, 3 }, { 0, 0, 0, 0, 1, 0, 0, 1, 0 });
  tensors["logits"] = Floats({ 1, 3, 2 }, { 1, 2, 3, 4, 5, 6 });
  for (const Tensor& mask : { Floats({ 1, 3 }, { 0, 1, 0 }), Floats({ 3 }, { 0, 1, 0 }, DType::F64),
         Tensor::FromInteger({ 3 }, { 0, 1, 0 }) })
  {
    tensors["attention_mask"] = mask;
    const RecordingContent content = Read(tensors, { { "tokens", R"(["<pad>","word","<pad>"])" } });
    const Recording& recording = content.recording;
    EXPECT_THAT(content.warnings,
      ElementsAre(HasSubstr("the stored attention is not kept, as queries and keys give it")));
    EXPECT_THAT(recording.sequenceOffsets, ElementsAre(0, 1));
    EXPECT_THAT(recording.tokens.text, ElementsAre("word"));
    EXPECT_THAT(recording.tokens.position, ElementsAre(0));
    EXPECT_THAT(ValuesOf(recording.logits), ElementsAre(3, 4));
    EXPECT_THAT(ValuesOf(recording.layers[0].heads[0].query), ElementsAre(0.5, 1));
  }
}

/// What other programs compute at padding may be no number.
TEST(RecordingFile, NumbersAtPaddingDoNotMatter)
{
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensors tensors;
  tensors["attention"] = Floats({ 1, 1, 1, 3, 3 }, { nan, nan, nan, nan, 1, 0, nan, 0.25, 0.75 });
  EXPECT_THAT(Refusal(tensors), HasSubstr("expected finite numbers"));
  tensors["attention_mask"] = Tensor::FromInteger({ 1, 3 }, { 0, 1, 1 });
  const Recording recording = Read(tensors).recording;
  EXPECT_THAT(ValuesOf(recording.layers[0].heads[0].weights[0]), ElementsAre(1, 0, 0.25, 0.75));
}

TEST(RecordingFile, RefusesMasksThatAreNotOfPadding)
{
  const std::vector<std::tuple<Shape, std::vector<std::int64_t>, std::string>> rows = {
    { { B, T }, { 1, 0, 1, 1, 1, 1 }, "sequence 0: expected padding at its ends alone" },
    { { B, T }, { 1, 1, 1, 0, 0, 0 }, "sequence 1: expected tokens, found padding alone" },
    { { B, T }, { 1, 1, 2, 1, 1, 0 }, "1 at tokens and 0 at padding, found 2" },
    { { B, 1, T }, { 1, 1, 1, 1, 1, 0 }, "expected shape [2, 3], found [2, 1, 3]" },
    { { T }, { 1, 1, 0 }, "expected shape [6], found [3]" }
  };
  for (const auto& [shape, values, message] : rows)
  {
    Tensors tensors = OldNames();
    tensors["attention_mask"] = Tensor::FromInteger(shape, values);
    EXPECT_THAT(Refusal(tensors), AllOf(HasSubstr("'attention_mask'"), HasSubstr(message)));
  }
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
  const std::vector<std::tuple<std::string, Shape, std::string>> rows = {
    { "blocks.1.attn.hook_q", { B, T, 6, D }, "layer 1: expected 4 as in layer 0, found 6" },
    { "blocks.1.attn.hook_k", { B, T, 3, D },
      "as many heads as there are queries, 4, or a divisor" },
    { "blocks.1.attn.hook_k", { B, T, 2, 5 }, "keys of dimension 2 as the queries" },
    { "blocks.1.attn.hook_v", { B, 4, 2, D }, "shape [2, 3, ., .], found [2, 4, 2, 2]" },
    { "blocks.1.attn.hook_v", { B, T, 2 * D }, "found [2, 3, 4]" },
    { "blocks.0.hook_resid_pre", { B, 7, 2 }, "expected shape [2, 7, " },
    { "logits", { T, 2 }, "expected shape [3, ., .], found [2, 3, 4, 2]" }
  };
  for (const auto& [name, shape, message] : rows)
  {
    Tensors tensors = OldNames();
    tensors[name] = Floats(shape, std::vector<double>(*ElementCount(shape), 1));
    EXPECT_THAT(Refusal(tensors), HasSubstr(message));
  }
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

TEST(RecordingRoundTrip, KeepsWhatOthersWrote)
{
  ExpectRoundTrip(Read(OldNames()).recording);
  ExpectRoundTrip(Read(WithAttention(true)).recording);
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
        const std::vector<float> foundWeights = ValuesOf(head.weights.at(0));
        const std::vector<float> foundScores = ValuesOf(head.scores.at(0));
        for (std::size_t i = 0; i < 36; ++i)
        {
          ASSERT_EQ(static_cast<double>(foundWeights[i]), weights[begin + i]);
          ASSERT_EQ(static_cast<double>(foundScores[i]), scores[begin + i]);
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
