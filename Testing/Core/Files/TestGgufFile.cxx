#include "Files/GgufFile.h"

#include "Base/Error.h"
#include "GgufBytes.h"
#include "ModelsOracle.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using namespace std::string_literals;

namespace
{

/// Parses bytes that lie in memory for as long as the result is in use.
GgufContent Parse(const std::string& file)
{
  return ParseGguf(reinterpret_cast<const std::byte*>(file.data()), file.size(), "some.gguf");
}

TEST(GgufFile, MetadataHaveTheirTypes)
{
  GgufBytes bytes;
  bytes.Add("u8", 0, "\xFF");
  bytes.Add("i8", 1, "\xFF");
  bytes.Add("u16", 2, LittleEndian(0xFFFF, 2));
  bytes.Add("i16", 3, LittleEndian(0xFFFF, 2));
  bytes.Add("u32", 4, LittleEndian(0xFFFFFFFF, 4));
  bytes.Add("i32", 5, LittleEndian(0xFFFFFFFF, 4));
  bytes.AddNumber("f32", 0.5F);
  bytes.Add("bool", 7, "\1");
  bytes.AddText("text", "caf\xC3\xA9");
  bytes.Add("u64", 10, LittleEndian(1ULL << 40U, 8));
  bytes.Add("i64", 11, LittleEndian(~0ULL, 8));
  bytes.Add("f64", 12, LittleEndian(0x3FF8000000000000, 8));
  bytes.AddTexts("texts", { "a", "", "\xFF" });
  bytes.AddArray("floats", 6, 2, FloatBytes({ 1.5F, -2 }));
  bytes.AddArray("integers", 5, 3, LittleEndian(1, 4) + LittleEndian(2, 4) + LittleEndian(3, 4));
  const std::string file = bytes.File();
  const GgufMetadata data = Parse(file).metadata;
  EXPECT_EQ(data.Integer("u8"), 255);
  EXPECT_EQ(data.Integer("i8"), -1);
  EXPECT_EQ(data.Integer("u16"), 65535);
  EXPECT_EQ(data.Integer("i16"), -1);
  EXPECT_EQ(data.Integer("u32"), 4294967295);
  EXPECT_EQ(data.Integer("i32"), -1);
  EXPECT_EQ(data.Number("f32"), 0.5);
  EXPECT_TRUE(data.Flag("bool", false));
  EXPECT_EQ(data.Text("text"), "caf\xC3\xA9");
  EXPECT_EQ(data.Integer("u64"), 1LL << 40);
  EXPECT_EQ(data.Number("i64"), -1);
  EXPECT_EQ(data.Number("f64"), 1.5);
  EXPECT_THAT(data.Texts("texts"), ElementsAre("a", "", "\xFF"));
  EXPECT_THAT(data.Numbers("floats"), ElementsAre(1.5, -2));
  EXPECT_THAT(data.Integers("integers"), ElementsAre(1, 2, 3));
  EXPECT_TRUE(data.Has("u8"));
  EXPECT_FALSE(data.Has("u9"));
  EXPECT_EQ(data.Integer("u9", 7), 7);
  EXPECT_EQ(data.Number("u9", 0.25), 0.25);
  EXPECT_EQ(data.Text("u9", "no"), "no");
  EXPECT_TRUE(data.Flag("u9", true));
}

TEST(GgufFile, MetadataOfOtherTypesAreNamed)
{
  GgufBytes bytes;
  bytes.AddText("text", "\xFF");
  bytes.AddTexts("texts", { "a" });
  bytes.Add("large", 10, LittleEndian(~0ULL, 8));
  bytes.AddNumber("half", 0.5F);
  const std::string file = bytes.File();
  const GgufMetadata data = Parse(file).metadata;
  const auto refusal = [](const auto& call) { return MessageOf<FormatError>(call); };
  EXPECT_EQ(refusal([&] { data.Integer("none"); }),
    "some.gguf: the metadata 'none': expected an integer, found none.");
  EXPECT_THAT(refusal([&] { data.Integer("half"); }), HasSubstr("expected an integer, found F32"));
  EXPECT_THAT(refusal([&] { data.Number("texts"); }), HasSubstr("a number, found an array"));
  EXPECT_THAT(refusal([&] { data.Number("text"); }), HasSubstr("a number, found String"));
  EXPECT_THAT(refusal([&] { data.Texts("text"); }), HasSubstr("found a single value"));
  EXPECT_THAT(refusal([&] { data.Text("half"); }), HasSubstr("expected a text, found F32"));
  EXPECT_THAT(refusal([&] { data.Flag("half", true); }), HasSubstr("true or false, found F32"));
  EXPECT_THAT(refusal([&] { data.Integers("texts"); }), HasSubstr("an integer, found String"));
  EXPECT_THAT(refusal([&] { data.Integer("large"); }), HasSubstr("found 18446744073709551615"));
  EXPECT_THAT(refusal([&] { data.Text("text"); }), StartsWith("some.gguf: the metadata 'text'"));
}

TEST(GgufFile, TensorsHaveTheirAxesInTheUsualOrder)
{
  GgufBytes bytes;
  bytes.AddTensor("a", { 2, 3 }, 0, FloatBytes({ 1, 2, 3, 4, 5, 6 }));
  bytes.AddTensor("halves", { 2 }, 1, LittleEndian(0x3C00C000, 4));
  bytes.AddTensor("block", { 1, 32 }, 8, LittleEndian(0x3C00, 2) + std::string(32, '\2'));
  bytes.AddTensor("number", {}, 26, LittleEndian(7, 4));
  bytes.AddTensor("none", { 0, 4 }, 0, "");
  for (const std::uint32_t version : { 2U, 3U })
  {
    const std::string file = bytes.File(version);
    const TensorViews tensors = Parse(file).tensors;
    EXPECT_EQ(tensors.size(), 5U);
    EXPECT_EQ(tensors.at("a").shape, (Shape{ 2, 3 }));
    EXPECT_THAT(tensors.at("a").ToDouble(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(tensors.at("halves").ToDouble(), ElementsAre(-2, 1));
    EXPECT_EQ(tensors.at("block").dtype, DType::Q8_0);
    EXPECT_EQ(tensors.at("block").At(31), 2);
    EXPECT_THAT(tensors.at("number").ToInteger(), ElementsAre(7));
    EXPECT_THAT(tensors.at("none").ToDouble(), IsEmpty());
  }
}

TEST(GgufFile, PrefixesOfAFileAreRefused)
{
  const std::string file = TinyGguf().File();
  EXPECT_EQ(Parse(file).tensors.size(), 11U);
  for (std::size_t size = 0; size < file.size(); ++size)
  {
    // A copy of its own, so that sanitizers see every byte that is read behind it.
    const std::vector<char> part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const auto* bytes = reinterpret_cast<const std::byte*>(part.data());
    EXPECT_THAT(MessageOf<FormatError>([&] { ParseGguf(bytes, part.size(), "some.gguf"); }),
      StartsWith("some.gguf: "))
      << size;
  }
}

/// A file with one tensor of this shape and type, without its data.
std::string OneTensor(const Shape& shape, std::uint32_t type, const std::string& name = "a")
{
  GgufBytes bytes;
  bytes.AddTensor(name, shape, type, "");
  return bytes.File();
}

TEST(GgufFile, StrictAboutTensors)
{
  GgufBytes overlap;
  overlap.AddTensor("a", { 16 }, 0, std::string(64, '\0'));
  overlap.AddTensorAt("b", { 1 }, 0, 32);
  GgufBytes beyond;
  beyond.AddTensorAt("a", { 1 }, 0, 64);
  const std::vector<Refused> bad = { { OneTensor({ 2, 33 }, 8),
                                       "tensor 'a': expected rows of a multiple of 32 elements" },
    { OneTensor({ 256 }, 16), "found IQ2_XXS." },
    { OneTensor({ 256 }, 4), "found the unknown type 4." },
    { OneTensor({ 1, 1, 1, 1, 1 }, 0), "expected at most 4 axes, found 5" },
    { OneTensor({ -1 }, 0), "expected sizes below 2^63" },
    { OneTensor({ 1 }, 0, "\xFF"), "the name of a tensor" },
    { overlap.File(), "tensor 'b': expected it behind tensor 'a'" },
    { beyond.File(), "expected 4 bytes at offset 64 of the data, found 0 bytes" } };
  ExpectRefusals<FormatError>(bad, Parse, "some.gguf: ");
}

TEST(GgufFile, StrictAboutMetadata)
{
  GgufBytes twice;
  twice.AddInteger("a", 1);
  twice.AddInteger("a", 1);
  const std::string start = "GGUF" + LittleEndian(3, 4) + LittleEndian(0, 8) + LittleEndian(1, 8);
  std::vector<Refused> bad = { { twice.File(),
                                 "the metadata 'a': expected it once, found it twice" },
    { start + LittleEndian(1ULL << 63U, 8) + std::string(9, 'a'),
      "a key of the metadata: expected 9223372036854775808 more bytes, found 9" },
    { "GGUF" + LittleEndian(4, 4), "version 2 or 3 of GGUF, found 4" },
    { "", "expected a GGUF file" } };
  for (const std::uint32_t alignment : { 0U, 3U, 96U })
  {
    GgufBytes bytes;
    bytes.AddInteger("general.alignment", alignment);
    bad.push_back({ bytes.File(), "1 to 2^31, found " + std::to_string(alignment) });
  }
  ExpectRefusals<FormatError>(bad, Parse, "some.gguf: ");
}

/// Invalid files, each with what is wrong (Testing/Oracle/models/README.md).
TEST(GgufFile, HostileFilesAreRefused)
{
  const std::vector<Refused> cases = {
    { "alignment-zero", "expected a power of two from 1 to 2^31, found 0" },
    { "array-count", "elements of the metadata" }, { "array-nested", "found an array of arrays" },
    { "big-endian", "found a big-endian file" },
    { "block-size", "expected rows of a multiple of 256 elements" },
    { "duplicate-tensor", "expected it once, found it twice" }, { "kv-count", "metadata in the" },
    { "magic", "expected a GGUF file" },
    { "string-length", "expected at most 0 metadata in the 11 bytes left, found 1" },
    { "tensor-count", "tensors in the" },
    { "tensor-dims", "expected at most 4 axes, found 2147483648" },
    { "tensor-offset-unaligned", "multiple of the alignment, 32, found 3" },
    { "tensor-offset", "of the data, found" },
    { "tensor-overflow", "expected fewer than 2^61 elements" },
    { "tensor-type", "found the unknown type 250" },
    { "truncated-data", "the file may be incomplete" },
    { "truncated-header", "expected at most 11 tensors in the 276 bytes left, found 21" },
    { "value-type", "expected a type from 0 to 12, found 99" }, { "version-1", "found version 1" }
  };
  const auto pathOf = [](const std::string& name)
  { return ModelsOracle("files/gguf-hostile/" + name + ".gguf"); };
  ExpectRefusals<FormatError>(
    cases, [&](const std::string& name) { GgufFile file(pathOf(name)); },
    pathOf("magic").parent_path().string());
}

TEST(GgufFile, IsMapped)
{
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder / "tiny.gguf";
  WriteBytes(path, TinyGguf().File());
  const GgufFile file(path);
  EXPECT_EQ(file.GetMetadata().Text("general.architecture"), "llama");
  EXPECT_EQ(file.GetMetadata().GetSource(), path.string());
  EXPECT_EQ(file.GetTensors().at("blk.0.attn_k.weight").shape, (Shape{ 4, 8 }));
  EXPECT_NO_THROW(file.RequireIntact());
  std::filesystem::resize_file(path, 100);
  EXPECT_THROW(file.RequireIntact(), FileError);
  EXPECT_TRUE(IsGgufName(path));
  EXPECT_FALSE(IsGgufName(folder / "tiny.safetensors"));
  EXPECT_THAT(MessageOf<FileError>([&] { GgufFile(folder / "none.gguf"); }),
    HasSubstr("none.gguf: cannot open file"));
}

}
