// The format in which this program writes recordings.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "PicturedRecording.h"
#include "Recording/RecordingFile.h"
#include "RecordingArrays.h"
#include "Reports.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TranslatedRecording.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

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
  recording.model = "Llama-2/checkpoint-7";
  recording.mask = AttentionMask::Bidirectional;
  recording.alibiSlopes = { 0.1, 0.7, 1.0 / 3, 1e-9 };
  recording.rotated = true;
  recording.processing = WeightProcessing::Processed;
  recording.products = ProductPrecision::Bfloat16;
  recording.layerCount = 5;
  recording.layersWithoutHeads = { 0, 2 };
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

/// A native file, and the messages when parts of it are changed.
class NativeFile
{
public:
  explicit NativeFile(const Recording& recording)
    : Arrays((WriteRecording(this->Folder / "a", recording), this->Folder / "a"))
  {
  }

  const Metadata& Texts() const { return this->Arrays.GetMetadata(); }
  const TensorViews& Tensors() const { return this->Arrays.GetTensors(); }

  /// What is read from other tensors.
  RecordingContent Read(const TensorViews& tensors) const
  {
    WriteSafetensorViews(this->Folder / "b", tensors, this->Texts());
    return ReadRecording(this->Folder / "b");
  }

  template<class ErrorType>
  std::string With(const std::string& key, const std::string& text) const
  {
    Metadata metadata = this->Arrays.GetMetadata();
    metadata[key] = text;
    WriteSafetensorViews(this->Folder / "b", this->Tensors(), metadata);
    return MessageOf<ErrorType>([&] { ReadRecording(this->Folder / "b"); });
  }

  /// Expects what is said of other metadata: key, text, and a part of the message.
  template<class ErrorType>
  void ExpectRefused(const std::vector<std::array<std::string, 3>>& rows) const
  {
    for (const auto& [key, text, message] : rows)
    {
      EXPECT_THAT(this->With<ErrorType>(key, text), HasSubstr(message)) << key << ": " << text;
    }
  }

  template<class Change>
  std::string Changed(const Change& change) const
  {
    TensorViews tensors = this->Arrays.GetTensors();
    change(tensors);
    return MessageOf<ModelError>([&] { this->Read(tensors); });
  }

private:
  TemporaryDirectory Folder;
  SafetensorsFile Arrays;
};

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
  EXPECT_EQ(found.model, "Llama-2/checkpoint-7");
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
  const NativeFile file(recording);
  EXPECT_EQ(file.Texts().at("version"), "3");
  EXPECT_EQ(file.Texts().at("cross.mask"), "cross");
  EXPECT_EQ(file.Tensors().count("cross.source_lengths"), 1U);
  EXPECT_EQ(file.Tensors().count("encoder.distance_bias"), 1U);
}

TEST(RecordingRoundTrip, KeepsPicturesAmongWords)
{
  Recording recording = PicturedRecording();
  ExpectRoundTrip(recording);
  const NativeFile file(recording);
  EXPECT_EQ(file.Texts().at("version"), "4");
  EXPECT_EQ(file.Texts().at("picture_contents"),
    "[[0,0,1,0,8,12],[1,0,1,0,8,4],[2,0,2,0,4,8],[2,2,2,0,4,8]]");
  EXPECT_EQ(file.Texts().at("encoder.patch_windows"), R"({"0":2})");
  EXPECT_EQ(file.Texts().count("picture_size"), 0U);
  EXPECT_THAT(file.Tensors().at("pictures").shape, ElementsAre(96 + 32 + 32 + 32, 3));
  EXPECT_THAT(file.Tensors().at("tokens.picture").shape, ElementsAre(17));

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
  EXPECT_EQ(NativeFile(images).Texts().at("version"), "1"); // as ever
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

TEST(RecordingFile, BadNativeFilesAreRefused)
{
  const NativeFile file(Everything());
  file.ExpectRefused<FormatError>({
    { "version", "9", "version 1 to 8 of the format attention-atlas.recording, found '9'" },
    { "alibi_unit", "-1", "metadata 'alibi_unit': expected a positive number, found -1" },
    { "mask", "none",
      "metadata 'mask': expected one of causal, bidirectional, cross, found 'none'" },
    { "rotated", "yes", "true, false, found 'yes'" },
    { "products", "half", "single, bf16, found 'half'" },
    { "processing", "", "unknown, unprocessed, processed, found ''" },
    { "layer_count", "-1", "an integer from 0 to 10000, found '-1'" },
    { "head_count", "99999999", "metadata 'head_count': expected" },
    { "head_count", "1000000", "at most 1000000 heads" },
    { "score_scales", "[]", "a JSON object" },
    { "score_scales", R"({"x":1})", "found 'x': 1" },
    { "alibi_slopes", R"(["a"])", "an array of numbers" },
    { "tokens", "no", "the list of token strings is not JSON" },
    { "layers_without_heads", "[-1]", "expected a list of layers, found -1" },
    { "layers_without_heads", R"(["a"])", "expected a list of layers, found \"a\"" },
  });
  file.ExpectRefused<ModelError>({
    { "layer_count", "2", "layers in ascending order and below 2" },
    { "layers_without_heads", "[1]", "below 5 that have none, found 1" },
    { "layers_without_heads", "[2, 0]", "ascending ones" },
    { "layers_without_heads", "[9]", "found 9" },
    { "alibi_slopes", "[1]", "4 ALiBi slopes, found 1" },
    { "tokens", R"(["a"])", "a string for each of the 5 tokens, found 1" },
  });
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

/// Programs that know version 1 alone can read what has no variants, and those that know four would
/// leave chunks out.
TEST(RecordingFile, VariantsAreKeptAndRaiseTheVersion)
{
  Recording windowed = Everything();
  windowed.mask = AttentionMask::Causal;
  windowed.layers[1].window = 3;
  Recording chunked = Variants();
  chunked.layers[1].chunk = 8192;
  Recording ended = Variants();
  for (const std::int32_t position : ended.tokens.position)
  {
    ended.tokens.keyEnd.push_back(position + 1);
  }
  ended.pixels = "torchvision";
  Recording rounded = Variants();
  rounded.alibiUnit = 0.125;
  Recording local = Everything(); // of a window on both sides
  local.layers[1].window = 65;
  for (const auto& [recording, version, windows, hasSinks] :
    { std::tuple(Everything(), "1", "", false), { Variants(), "2", R"({"1":4096})", true },
      { windowed, "2", R"({"3":3})", false }, { local, "2", R"({"3":65})", false },
      { chunked, "5", R"({"1":4096})", true }, { ended, "7", R"({"1":4096})", true },
      { rounded, "8", R"({"1":4096})", true } })
  {
    ExpectRoundTrip(recording);
    Metadata metadata = NativeFile(recording).Texts();
    EXPECT_EQ(metadata["version"], version);
    EXPECT_EQ(metadata["windows"], windows);
    EXPECT_EQ(metadata.count("sinks") != 0, hasSinks);
  }
}

TEST(RecordingFile, BadVariantsAreRefused)
{
  const NativeFile file(Variants());
  file.ExpectRefused<FormatError>({
    { "windows", "[1]", "metadata 'windows': expected a JSON object of layers, found array" },
    { "windows", R"({"2":4})", "'windows': expected layers that score_scales has, found '2'" },
    { "windows", R"({"x":4})", "score_scales has, found 'x'" },
    { "windows", R"({"1":4.5})", "'windows', layer 1: expected an integer of 64 bits, found 4.5" },
    { "windows", R"({"1":18446744073709551615})", "64 bits, found 18446744073709551615" },
    { "score_caps", R"({"1":"a"})", "'score_caps', layer 1: expected a number, found \"a\"" },
    { "sinks", R"({"3":[1,2,3]})", "'sinks', layer 3: expected an array of a number per head" },
    { "sinks", R"({"3":[1,2,3,null]})", "an array of a number" },
    { "sinks", "{", "the metadata 'sinks' is not JSON" },
    { "chunks", R"({"1":0.5})", "'chunks', layer 1: expected an integer of 64 bits, found 0.5" },
  });
  file.ExpectRefused<ModelError>({
    { "windows", R"({"1":-4})", "layer 1: expected a window of at least 1 key" },
    { "score_caps", R"({"1":-1})", "layer 1: expected a score cap above" },
    { "score_caps", R"({"1":1e200})", "a score cap above" },
    { "sinks", R"({"3":[1,2,3,1e60]})", "layer 3, head 3: expected a finite sink, found inf" },
    { "chunks", R"({"1":-4})", "layer 1: expected chunks of at least 1 token under a causal mask" },
  });
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
  routing.scores = SharedMatrix::Zero(5, 2);
  routing.scores.values.get()[3] = 0.75F;
  routing.bias = SharedMatrix::Zero(1, 5);
  routing.bias.values.get()[4] = -0.25F;
  return recording;
}

TEST(RecordingFile, RoutingIsKept)
{
  const NativeFile file(Routed());
  EXPECT_EQ(file.Texts().at("version"), "1"); // older programs leave it out
  EXPECT_EQ(file.Texts().at("expert_counts"), R"({"3":5})");
  EXPECT_THAT(file.Tensors().at("layers.3.experts").shape, ElementsAre(5, 2));
  ExpectRoundTrip(Routed());
  EXPECT_EQ(NativeFile(Everything()).Texts().count("expert_counts"), 0U);
}

/// As a program with PyTorch writes them.
TEST(RecordingFile, NumbersOfExpertsMayBeIntegers)
{
  const NativeFile file(Routed());
  TensorViews tensors = file.Tensors();
  const std::vector<std::int64_t> numbers = { 0, 3, 1, 4, 2, 0, 3, 1, 4, 2 };
  tensors["layers.3.experts"] = { DType::I64, { 5, 2 },
    reinterpret_cast<const std::byte*>(numbers.data()) };
  ExpectEqual(file.Read(tensors).recording, Routed());
}

TEST(RecordingFile, BadRoutingIsRefused)
{
  const NativeFile file(Routed());
  file.ExpectRefused<ModelError>({ { "expert_counts", R"({"3":4})",
    "layer 3: experts: expected numbers of its 4 experts, from 0, found 4 at token 1" } });
  file.ExpectRefused<FormatError>({
    { "expert_counts", R"({"3":-1})", "'expert_counts', layer 3: expected a number of experts" },
    { "expert_counts", R"({"3":4000000000})", "a number of experts, found 4000000000" },
    { "expert_counts", R"({"7":4})", "expected layers that score_scales has, found '7'" },
  });
  EXPECT_THAT(file.Changed([](TensorViews& tensors) { tensors.erase("layers.3.expert_weights"); }),
    HasSubstr("layer 3: expected both experts and their weights"));
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
  EXPECT_THAT(without("sequence_offsets"), HasSubstr("'sequence_offsets': expected shape [.]"));
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
  for (Recording recording : { Images(), NamedImages() })
  {
    ExpectRoundTrip(recording);
    recording.pictures = {}; // as older versions wrote it
    ExpectRoundTrip(recording);
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
    named.ExpectRefused<FormatError>({ { "picture_size", text,
      "'picture_size' and 'picture_sources': expected [height, width]" } });
  }
  for (const char* text : { R"([["a.png"]])", R"([["a.png", 1]])", R"([1, 2])" })
  {
    named.ExpectRefused<FormatError>(
      { { "picture_sources", text, "'picture_sources': expected pairs of a file and a hash" } });
  }
  named.ExpectRefused<FormatError>(
    { { "picture_sources", "[", "the metadata 'picture_sources'" } });
  named.ExpectRefused<ModelError>({
    { "picture_size", "[2, 99999999999999999]", "pictures of 1 to 16384 pixels on a side" },
    { "picture_sources", R"([["a.png", "1"]])", "a picture for each of the 2 images, found 1" },
  });
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

}

/// Programs that write this format may pad sequences and say so as elsewhere.
TEST(NativeRecording, PaddingIsLeftOut)
{
  Recording recording = Everything();
  recording.sequenceOffsets = { 0, 2, 5 };
  recording.tokens.sequence = { 0, 0, 1, 1, 1 };
  const NativeFile file(recording);
  const auto read = [&](const std::vector<std::int64_t>& mask, const Shape& shape)
  {
    TensorViews views = file.Tensors();
    const Tensor padding = Tensor::FromInteger(shape, mask);
    views["attention_mask"] = padding.View();
    return file.Read(views).recording;
  };
  const Recording right = read({ 1, 1, 1, 1, 0 }, { 5 });
  EXPECT_THAT(right.sequenceOffsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(right.tokens.position, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(right.tokens.text, ElementsAre("a", " b\n", "\xe6\x97\xa5", ""));
  const Recording both = read({ 0, 1, 0, 1, 0 }, { 5 });
  EXPECT_THAT(both.sequenceOffsets, ElementsAre(0, 1, 2));
  EXPECT_THAT(both.tokens.position, ElementsAre(0, 0));
  EXPECT_THAT(both.tokens.id, ElementsAre(1LL << 40U, -1));
  EXPECT_THAT(both.tokens.text, ElementsAre(" b\n", ""));
  for (const auto& [found, all] : { std::pair(both.residual[0], recording.residual[0]),
         std::pair(both.layers[1].heads[3].key, recording.layers[1].heads[3].key),
         std::pair(both.layers[0].heads[0].output, recording.layers[0].heads[0].output) })
  {
    ASSERT_EQ(found.rows, 2);
    EXPECT_TRUE(std::equal(found.Row(0), found.Row(0) + found.columns, all.Row(1)));
    EXPECT_TRUE(std::equal(found.Row(1), found.Row(1) + found.columns, all.Row(3)));
  }
  EXPECT_THAT(MessageOf<ModelError>([&] { read({ 1, 1, 1, 0, 1 }, { 5 }); }),
    HasSubstr("'attention_mask': sequence 1: expected padding at its ends alone"));
  EXPECT_THAT(MessageOf<ModelError>([&] { read({ 1, 1, 1, 0 }, { 2, 2 }); }),
    HasSubstr("array 'attention_mask': expected shape [5], found [2, 2]"));
}
