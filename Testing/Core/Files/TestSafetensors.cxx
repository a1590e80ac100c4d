#include "Files/Safetensors.h"

#include "Base/Error.h"
#include "NumpyBytes.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using namespace std::string_literals;

namespace
{

std::string FileOf(const std::string& header, const std::string& data)
{
  return LittleEndian(header.size(), 8) + header + data;
}

/// Parses bytes that lie in memory for as long as the result is in use.
SafetensorsContent Parse(const std::string& file)
{
  return ParseSafetensors(
    reinterpret_cast<const std::byte*>(file.data()), file.size(), "some.safetensors");
}

std::string SafetensorsRefusal(const std::string& file)
{
  return MessageOf<FormatError>([&] { Parse(file); });
}

/// One element type with known bits, written down as its bytes in a file.
struct KnownBits
{
  const char* dtype;
  std::string bytes;
  std::vector<double> values;
};

constexpr double Infinity = std::numeric_limits<double>::infinity();

const std::vector<KnownBits> Known = {
  { "F64",
    "\x9a\x99\x99\x99\x99\x99\xb9\xbf\x18\x2d\x44\x54\xfb\x21\x09\x40\x01\0\0\0\0\0\0\0"s
    "\0\0\0\0\0\0\xf0\x7f"s,
    { -0.1, 3.141592653589793, std::ldexp(1.0, -1074), Infinity } },
  { "F32", "\0\0\xc0\x3f\0\0\x20\xc1\x01\0\0\0\xff\xff\x7f\x7f"s,
    { 1.5, -10, std::ldexp(1.0, -149), 3.4028234663852886e38 } },
  { "F16", "\0\x3c\0\xc0\x01\0\xff\x7b\x55\x35\0\x04\xff\x03\0\0\0\xfc"s,
    { 1, -2, std::ldexp(1.0, -24), 65504, 0.333251953125, std::ldexp(1.0, -14),
      std::ldexp(1023.0, -24), 0, -Infinity } },
  { "BF16", "\x80\x3f\x49\xc0\x01\0\x7f\x7f\x80\x7f"s,
    { 1, -3.140625, std::ldexp(1.0, -133), std::ldexp(255.0, 120), Infinity } },
  { "I64", "\xff\xff\xff\xff\xff\xff\xff\xff\x08\x07\x06\x05\x04\x03\x02\x01"s,
    { -1, 72623859790382856.0 } },
  { "I32", "\xfe\xff\xff\xff\x04\x03\x02\x01\0\0\0\x80"s, { -2, 16909060, -2147483648. } },
  { "I16", "\xfe\xff\x04\x03\0\x80"s, { -2, 772, -32768 } },
  { "I8", "\0\x7f\x80"s, { 0, 127, -128 } }, { "U8", "\0\x7f\xff"s, { 0, 127, 255 } },
  { "BOOL", "\0\x01"s, { 0, 1 } },
  { "U32", "\xfe\xff\xff\xff\x04\x03\x02\x01"s, { 4294967294, 16909060 } },
  // The largest, the smallest and others; of the last one the powers of two alone.
  { "F8_E4M3", "\x7e\x01\x38\xb9\x08\0"s,
    { 448, std::ldexp(1.0, -9), 1, -1.125, std::ldexp(1.0, -6), 0 } },
  { "F8_E5M2", "\x7b\x01\x3c\xbd\x04\xfc"s,
    { 57344, std::ldexp(1.0, -16), 1, -1.25, std::ldexp(1.0, -14), -Infinity } },
  { "F8_E8M0", "\xfe\0\x7f"s, { std::ldexp(1.0, 127), std::ldexp(1.0, -127), 1 } }
};

TEST(Safetensors, TypesAreReadAtEveryAlignment)
{
  for (const KnownBits& known : Known)
  {
    SCOPED_TRACE(known.dtype);
    const std::string count = std::to_string(known.values.size());
    const std::string end = std::to_string(1 + known.bytes.size());
    const std::string header =
      R"({"pad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":")" +
      (known.dtype + (R"(","shape":[)" + count)) + R"(],"data_offsets":[1,)" + end + "]}}";
    for (std::size_t spaces = 0; spaces < 8; ++spaces)
    {
      const std::string file = FileOf(header + std::string(spaces, ' '), "\x07" + known.bytes);
      const SafetensorsContent content = Parse(file);
      const TensorView& x = content.tensors.at("x");
      EXPECT_EQ(Name(x.dtype), known.dtype);
      EXPECT_EQ(x.ToDouble(), known.values);
      if (IsFloating(x.dtype))
      {
        std::vector<float> last(1);
        x.ToFloat(x.Count() - 1, x.Count(), last.data());
        EXPECT_EQ(last[0], static_cast<float>(known.values.back()));
      }
      else
      {
        EXPECT_EQ(static_cast<double>(x.ToInteger().back()), known.values.back());
      }
      EXPECT_EQ(content.tensors.at("pad").At(0), 7);
    }
  }
}

TEST(Safetensors, BlocksAreNeitherReadNorWritten)
{
  EXPECT_THAT(
    SafetensorsRefusal(FileOf(
      R"({"a":{"dtype":"Q8_0","shape":[32],"data_offsets":[0,34]}})", std::string(34, '\0'))),
    HasSubstr("unknown dtype 'Q8_0'"));
  const std::vector<std::byte> bytes(34);
  const TemporaryDirectory folder;
  const auto refusal = [&](const TensorView& view)
  {
    return MessageOf<FormatError>(
      [&] { WriteSafetensorViews(folder / "a.safetensors", { { "a", view } }, {}); });
  };
  EXPECT_THAT(refusal({ DType::Q8_0, { 32 }, bytes.data() }), HasSubstr("found Q8_0"));
  TensorView interleaved{ DType::F32, { 4 }, bytes.data() };
  interleaved.interleavedRows = 4;
  EXPECT_THAT(refusal(interleaved), HasSubstr("tensor 'a': expected elements in their order"));
  EXPECT_THAT(folder.Entries(), IsEmpty());
}

TEST(Safetensors, NotANumberAndMinusZeroAreRead)
{
  const std::string file =
    FileOf(R"({"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", "\x01\x7e\0\x80"s);
  const SafetensorsContent content = Parse(file);
  EXPECT_TRUE(std::isnan(content.tensors.at("x").At(0)));
  EXPECT_TRUE(std::signbit(content.tensors.at("x").At(1)));
}

TEST(Safetensors, IntegersAreExactAsIntegers)
{
  const std::string file = FileOf(R"({"x":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})",
    "\x01\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\x80"s);
  EXPECT_THAT(Parse(file).tensors.at("x").ToInteger(),
    ElementsAre(9007199254740993, std::numeric_limits<std::int64_t>::min()));
}

TEST(Safetensors, ScalarsAndEmptyTensorsAreRead)
{
  const std::string file = FileOf(R"({"scalar":{"dtype":"U8","shape":[],"data_offsets":[0,1]},
    "first":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},
    "last":{"dtype":"F64","shape":[4,0],"data_offsets":[1,1]}})",
    "\x2a");
  const SafetensorsContent content = Parse(file);
  EXPECT_THAT(content.tensors.at("scalar").shape, IsEmpty());
  EXPECT_THAT(content.tensors.at("scalar").ToDouble(), ElementsAre(42));
  EXPECT_THAT(content.tensors.at("first").shape, ElementsAre(0, 3));
  EXPECT_THAT(content.tensors.at("first").ToDouble(), IsEmpty());
  EXPECT_THAT(content.tensors.at("last").ToDouble(), IsEmpty());
}

TEST(Safetensors, MetadataIsRead)
{
  const SafetensorsContent content =
    Parse(FileOf(R"({"__metadata__":{"format":"pt","text":"\u00e9 \"quoted\""}})", ""));
  EXPECT_THAT(content.tensors, IsEmpty());
  EXPECT_THAT(Parse(FileOf("{}", "")).metadata, IsEmpty());
  EXPECT_THAT(content.metadata,
    ElementsAre(testing::Pair("format", "pt"), testing::Pair("text", "\xc3\xa9 \"quoted\"")));
}

TEST(Safetensors, TensorsMayComeInAnyOrder)
{
  const std::string file = FileOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},
    "b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
    "\x01\x02");
  const SafetensorsContent content = Parse(file);
  EXPECT_EQ(content.tensors.at("a").At(0), 2);
  EXPECT_EQ(content.tensors.at("b").At(0), 1);
}

/// A file of one tensor 'x' that is described by `fields`, over 8 bytes of data.
std::string One(const std::string& fields)
{
  return FileOf(R"({"x":{)" + fields + "}}", "12345678");
}

/// A file of two tensors of 4 bytes each, at these offsets, over 8 bytes of data.
std::string Two(const std::string& first, const std::string& second)
{
  const auto tensor = [](const std::string& name, const std::string& offsets)
  { return '"' + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}"; };
  return FileOf("{" + tensor("x", first) + "," + tensor("y", second) + "}", "12345678");
}

std::string Offsets(const std::string& offsets)
{
  return One(R"("dtype":"F32","shape":[2],"data_offsets":)" + offsets);
}

std::string ShapeOf(const std::string& shape)
{
  return One(R"("dtype":"F32","data_offsets":[0,8],"shape":)" + shape);
}

const std::string Deep = std::string(500'000, '[') + std::string(500'000, ']');

TEST(Safetensors, BadFilesAreRefused)
{
  const std::vector<Refused> bad = { // the file
    { "", "begins with" }, { "1234567", "found 7 bytes" },
    { LittleEndian(3, 8) + "{}", "3 bytes long, but only 2" },
    { LittleEndian(1ULL << 32U, 8) + "{}", "100000000 bytes, found a length of 4294967296" },
    { LittleEndian(~0ULL, 8) + "{}", "found a length of 18446744073709551615" },
    { LittleEndian(0, 8), "header is not JSON" },
    { "\x89PNG\r\n\x1a\n and more", "found a PNG picture." },
    { "Attention Atlas\n", "found a text." }, { " {\"model_type\": \"gpt2\"}", "found JSON." },
    { "\n<!DOCTYPE html><title>404</title>", "found a web page." },
    { "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n",
      "found the pointer of Git LFS to a file that was not downloaded." },
    { std::string("GGUF\3\0\0\0\0\0\0\0", 12), "found a GGUF model." },
    { FileOf("{\"x\":", ""), "header is not JSON" },
    { FileOf("\x80\x02}q\x01.", ""), "header is not JSON" }, { FileOf("[]", ""), "found array" },
    { FileOf("17", ""), "found number" }, { FileOf(Deep, ""), "found array" },
    // names
    { FileOf(R"({"x":{},"x":{}})", ""), "has the name 'x' twice" },
    { One(R"("dtype":"F32","dtype":"F32")"), "has the name 'dtype' twice" },
    { FileOf(R"({"__metadata__":{"a":"1","a":"2"}})", ""), "has the name 'a' twice" },
    // metadata
    { FileOf(R"({"__metadata__":[]})", ""), "__metadata__ to be a JSON object, found array" },
    { FileOf(R"({"__metadata__":{"version":1}})", ""), "'version' to be a string, found number" },
    // a tensor
    { FileOf(R"({"x":5})", ""), "'x': expected a JSON object" },
    { One(R"("shape":[2],"data_offsets":[0,8])"), "tensor 'x': expected a string 'dtype'" },
    { One(R"("dtype":32,"shape":[2],"data_offsets":[0,8])"),
      "tensor 'x': expected a string 'dtype'" },
    { One(R"("dtype":"F9","shape":[8],"data_offsets":[0,8])"),
      "'F9', expected one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, U32, F8_E4M3, "
      "F8_E5M2, F8_E8M0." },
    { One(R"("dtype":"F4","shape":[16],"data_offsets":[0,8])"),
      "F8_E8M0, found F4, a type of quantized weights" },
    { One(R"("dtype":"F32","data_offsets":[0,8])"), "tensor 'x': expected an array 'shape'" },
    { ShapeOf("2"), "tensor 'x': expected an array 'shape'" },
    { ShapeOf("[-2]"), "'shape' to hold integers from 0 to 2^63 - 1, found -2" },
    { ShapeOf("[2.0]"), "found 2.0" }, { ShapeOf(R"(["2"])"), "found \"2\"" },
    { ShapeOf("[9223372036854775808]"), "found 9223372036854775808" },
    { ShapeOf(Deep), "found array" },
    { ShapeOf("[4294967296,4294967296]"), "[4294967296, 4294967296] overflows 64 bits" },
    { ShapeOf("[4611686018427387904]"), "overflows 64 bits" },
    { ShapeOf("[3]"), "takes 12 bytes, but data_offsets [0, 8] hold 8" },
    { ShapeOf("[1,1]"), "takes 4 bytes" },
    // offsets
    { One(R"("dtype":"F32","shape":[2])"), "tensor 'x': expected an array 'data_offsets'" },
    { Offsets("[8]"), "expected 2 data_offsets, found 1" },
    { Offsets("[0,8,8]"), "expected 2 data_offsets, found 3" },
    { Offsets("[-8,0]"), "expected 'data_offsets' to hold integers" },
    { Offsets("[0,8.5]"), "found 8.5" },
    { Offsets("[18446744073709551608,18446744073709551616]"), "integers from 0 to 2^63 - 1" },
    { Offsets("[9223372036854775799,9223372036854775807]"),
      "9223372036854775807] are not a range within the 8 bytes" },
    { Offsets("[0,9]"), "[0, 9] are not a range" }, { Offsets("[8,0]"), "[8, 0] are not a range" },
    { Two("[0,4]", "[0,4]"), "'x' and 'y' overlap" },
    { Two("[0,4]", "[2,6]"), "'x' and 'y' overlap" },
    { Two("[3,7]", "[0,4]"), "'y' and 'x' overlap" },
    { One(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"),
      "the 4 bytes of data before tensor 'x'" },
    { One(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"),
      "no tensor holds the last 4 bytes" },
    { FileOf("{}", "1"), "no tensor holds the last 1 bytes" },
    { FileOf(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
        "y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
        "1234"),
      "the 2 bytes of data before tensor 'y'" }
  };
  ExpectRefusals<FormatError>(bad, Parse, "some.safetensors: ");
}

TEST(SafetensorsFile, ThatCannotBeReadIsNamed)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "bad", "1234567");
  EXPECT_THAT(MessageOf<FormatError>([&] { SafetensorsFile{ folder / "bad" }; }),
    AllOf(StartsWith((folder / "bad").string() + ": "), HasSubstr("found 7 bytes")));
  const auto refusal = [](const std::filesystem::path& path)
  { return MessageOf<FileError>([&] { SafetensorsFile{ path }; }); };
  EXPECT_THAT(refusal(folder / "missing"), HasSubstr("missing: cannot open file: No such file"));
  EXPECT_THAT(refusal(folder.Path()), HasSubstr("expected a regular file"));
  // A pipe, without waiting for it.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder / "pipe"), HasSubstr("pipe: expected a regular file"));
}

TEST(SafetensorsFile, CanBeMoved)
{
  const TemporaryDirectory folder;
  WriteBytes(
    folder / "x", FileOf(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "\x03\x04"));
  SafetensorsFile first(folder / "x");
  const SafetensorsFile second(std::move(first));
  EXPECT_THAT(second.GetTensors().at("x").ToDouble(), ElementsAre(3, 4));
}

Tensors SomeTensors()
{
  Tensors tensors;
  tensors["a.scalar"] = Tensor::FromDouble(DType::F32, {}, { 2.5 });
  tensors["b.bytes"] = { DType::U8, { 3 }, { std::byte{ 1 }, std::byte{ 2 }, std::byte{ 3 } } };
  tensors["c.matrix"] = Tensor::FromDouble(DType::F32, { 2, 3 }, { 0, -1, 2, 0.1, 1e-40, 1e30 });
  tensors["d.empty"] = Tensor::FromDouble(DType::F64, { 0, 3 }, {});
  tensors["e.wide"] = Tensor::FromDouble(DType::F64, { 2 }, { 0.1, -1e300 });
  tensors["f.half"] = { DType::F16, { 1 }, { std::byte{ 0 }, std::byte{ 0x3c } } };
  tensors["g.tokens"] = Tensor::FromInteger({ 1, 2 }, { 9007199254740993, -1 });
  return tensors;
}

const Metadata SomeMetadata = { { "format", "test" }, { "text", "\"quoted\"\n\xc3\xa9" } };

TEST(WriteSafetensors, IsReadBackAtAlignedAddresses)
{
  const TemporaryDirectory folder;
  const Tensors tensors = SomeTensors();
  WriteSafetensors(folder / "x", tensors, SomeMetadata);
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.GetMetadata(), SomeMetadata);
  ASSERT_EQ(file.GetTensors().size(), tensors.size());
  for (const auto& [name, expected] : tensors)
  {
    const TensorView& found = file.GetTensors().at(name);
    EXPECT_EQ(found.dtype, expected.dtype) << name;
    EXPECT_EQ(found.shape, expected.shape) << name;
    const std::vector<std::byte> bytes(found.data, found.data + expected.bytes.size());
    EXPECT_EQ(bytes, expected.bytes) << name;
    // Mapped, so at the begin of a page.
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.data) % ByteSize(found.dtype), 0U) << name;
  }
}

/// The format read by its own description: no part of our parser takes part.
TEST(WriteSafetensors, WritesTheFormat)
{
  const TemporaryDirectory folder;
  Tensors tensors;
  tensors["a"] = Tensor::FromDouble(DType::F32, { 1, 2 }, { 1.5, -10 });
  tensors["b"] = Tensor::FromInteger({ 1 }, { 258 });
  WriteSafetensors(folder / "x", tensors, { { "key", "value" } });
  const std::string file = ReadBytes(folder / "x");
  ASSERT_GT(file.size(), 8U);
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(file[0])) +
                      256 * static_cast<std::size_t>(static_cast<unsigned char>(file[1]));
  EXPECT_EQ(file.substr(2, 6), "\0\0\0\0\0\0"s);
  EXPECT_EQ(length % 8, 0U);
  const std::string header = file.substr(8, length);
  const std::size_t end = header.find_last_not_of(' ');
  EXPECT_EQ(header.substr(0, end + 1),
    R"({"__metadata__":{"key":"value"},)"
    R"("b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
    R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}})");
  EXPECT_EQ(file.substr(8 + length), "\x02\x01\0\0\0\0\0\0\0\0\xc0\x3f\0\0\x20\xc1"s);
}

TEST(WriteSafetensors, LeavesAMappedFileReadable)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "x", SomeTensors(), {});
  const SafetensorsFile file(folder / "x");
  WriteSafetensors(folder / "x", {}, {});
  EXPECT_THAT(file.GetTensors().at("a.scalar").ToDouble(), ElementsAre(2.5));
}

/// While it lives, no file can grow beyond `bytes`, as if the disk were full.
class FullDisk
{
public:
  explicit FullDisk(rlim_t bytes)
    : OldHandler(std::signal(SIGXFSZ, SIG_IGN))
  {
    ::getrlimit(RLIMIT_FSIZE, &this->OldLimit);
    const rlimit limit = { bytes, this->OldLimit.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk()
  {
    ::setrlimit(RLIMIT_FSIZE, &this->OldLimit);
    std::signal(SIGXFSZ, this->OldHandler);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

private:
  void (*OldHandler)(int);
  rlimit OldLimit = {};
};

TEST(WriteSafetensors, KeepsTheOldContentIfTheDiskIsFull)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "x", "old");
  std::string message;
  {
    const FullDisk full(64);
    message = MessageOf<FileError>([&] { WriteSafetensors(folder / "x", SomeTensors(), {}); });
  }
  EXPECT_THAT(message, HasSubstr("cannot write file; is the disk full?"));
  EXPECT_EQ(ReadBytes(folder / "x"), "old");
  EXPECT_THAT(folder.Entries(), ElementsAre("x"));
}

}
