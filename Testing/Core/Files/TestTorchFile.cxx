#include "Files/TorchFile.h"

#include "Base/Error.h"
#include "Files/ArrayFile.h"
#include "Files/JsonText.h"
#include "Files/Safetensors.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "TorchBytes.h"

#include <cstring>
#include <filesystem>
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

const std::filesystem::path Files = std::filesystem::path(ATLAS_ORACLE_DIR) / "models" / "files";

/// Reads a file that lies in memory; the file owns a copy of the bytes.
TorchFile Open(const std::string& bytes)
{
  const auto owner = std::make_shared<const std::string>(bytes);
  return { reinterpret_cast<const std::byte*>(owner->data()), owner->size(), owner, "some.pt" };
}

/// Reads all tensors of a file.
void LoadAll(const TorchFile& file)
{
  for (const auto& [name, tensor] : file.GetTensors())
  {
    tensor.load();
  }
}

std::string TorchRefusal(const std::string& bytes)
{
  return MessageOf<FormatError>([&] { LoadAll(Open(bytes)); });
}

std::vector<double> Load(const TorchFile& file, const std::string& name)
{
  return file.GetTensors().at(name).load().view.ToDouble();
}

std::vector<std::byte> BytesOf(const TensorView& view)
{
  return { view.data, view.data + view.Count() * ByteSize(view.dtype) };
}

struct GoodFile
{
  const char* name;
  const char* expected; ///< without its ending
  const char* wrapper;  ///< before the expected names
};

using GoodTorchFile = testing::TestWithParam<GoodFile>;

INSTANTIATE_TEST_SUITE_P(Oracle, GoodTorchFile,
  testing::Values(GoodFile{ "gpt2-zip.pt", "gpt2", "model." },
    GoodFile{ "gpt2-legacy.pt", "gpt2", "model." }, GoodFile{ "gpt2-torch2.pt", "gpt2", "model." },
    GoodFile{ "gpt2-module-prefix.pt", "gpt2", "module." },
    GoodFile{ "gpt2-lightning.ckpt", "gpt2", "state_dict.model." },
    GoodFile{ "gpt2-half.bin", "gpt2-half", "" },
    GoodFile{ "gpt2-bfloat16-legacy.bin", "gpt2-bfloat16", "" },
    GoodFile{ "types-zip.pt", "types", "" }, GoodFile{ "types-legacy.pt", "types", "" },
    GoodFile{ "types-protocol5.pt", "types", "" },
    GoodFile{ "nested-lists.pt", "nested-lists", "" }, GoodFile{ "tl-cache.pt", "tl-cache", "" }),
  [](const auto& file) { return TestName(file.param.name); });

TEST_P(GoodTorchFile, IsReadBitByBit)
{
  const GoodFile& good = GetParam();
  const TorchFile file(Files / "pt" / good.name);
  const SafetensorsFile expected(Files / "pt" / (good.expected + ".tensors.safetensors"s));
  const std::byte* begin = file.GetFile()->Data();
  const std::byte* end = begin + file.GetFile()->Size();
  std::size_t mapped = 0;
  for (const auto& [name, view] : expected.GetTensors())
  {
    const auto found = file.GetTensors().find(good.wrapper + name);
    ASSERT_NE(found, file.GetTensors().end()) << name;
    const LoadedArray array = found->second.load();
    EXPECT_EQ(array.view.dtype, view.dtype) << name;
    EXPECT_EQ(array.view.shape, view.shape) << name;
    EXPECT_EQ(BytesOf(array.view), BytesOf(view)) << name;
    mapped += begin <= array.view.data && array.view.data < end ? 1 : 0;
  }
  EXPECT_GT(mapped, 0U);
  for (const auto& [name, tensor] : file.GetTensors())
  {
    const bool isExpected = name.rfind(good.wrapper, 0) == 0 || name.rfind("optimizer", 0) == 0;
    EXPECT_TRUE(isExpected) << name;
  }
}

TEST(UnsupportedTorchFile, IsRefusedByName)
{
  const std::vector<Refused> bad = { { "big-endian-marked.pt", "little-endian order" },
    { "complex64.pt", "names 'torch.ComplexFloatStorage'" },
    { "numpy-objects.pt", "names 'numpy.core.multiarray.scalar'" },
    { "quantized.pt", "names 'torch._utils._rebuild_qtensor'" },
    { "sparse.pt", "names 'torch._utils._rebuild_sparse_tensor'" },
    { "torchscript.pt", "found a TorchScript program" },
    { "whole-module.pt", "names 'torch.nn.modules.linear.Linear'" } };
  const std::filesystem::path folder = Files / "pt/unsupported";
  ExpectRefusals<FormatError>(
    bad, [&](const std::string& name) { const TorchFile file(folder / name); }, folder.string());
}

// Hostile files

/// Files that are made below, since they are large.
bool IsLeftOut(const std::string& name)
{
  return name == "deep-lists.pt" || name == "deep-tuples.pt" || name == "zip-bomb-pickle.pt";
}

TEST(HostileTorchFile, EveryOneIsRefused)
{
  const std::filesystem::path folder = Files / "hostile";
  const nlohmann::json cases =
    ParseJson(ReadFile(folder / "cases.json"), "cases.json", "the list of files");
  ASSERT_EQ(cases.size(), 66U);
  for (const nlohmann::json& entry : cases)
  {
    const auto name = entry.at("file").get<std::string>();
    if (IsLeftOut(name) && !std::filesystem::exists(folder / name))
    {
      continue;
    }
    SCOPED_TRACE(name + ": " + entry.at("why").get<std::string>());
    std::string message;
    try
    {
      LoadAll(TorchFile(folder / name));
    }
    catch (const FormatError& e)
    {
      message = e.what();
    }
    EXPECT_THAT(
      message, StartsWith(entry.at("must") == "refuse" ? (folder / name).string() + ": " : ""));
    EXPECT_LT(message.size(), 1000U);
  }
}

TEST(HostileTorchFile, MessagesNameInstructionOrFunction)
{
  const std::vector<Refused> bad = { { "os-system.pt", "system'" },
    { "builtins-eval.pt", "names 'builtins.eval'" },
    { "builtin2-exec.pt", "names '__builtin__.exec'" },
    { "load-from-bytes.pt", "names 'torch.storage._load_from_bytes'" },
    { "dotted-global.pt", "names 'torch.serialization.os.system'" },
    { "inst-opcode.pt", "instruction DICT is none of" }, // protocol 0

    { "ext-opcode.pt", "instruction EXT1 is none of" },
    { "unknown-opcode.pt", "instruction 0xff is none of" },
    { "zip-bomb.pt", "is compressed or encrypted" },
    { "tensor-expanded-huge.pt", "bytes of memory" }, { "self-reference.pt", "in circles" } };
  ExpectRefusals<FormatError>(
    bad, [](const std::string& name) { const TorchFile file(Files / "hostile" / name); });
}

TEST(HostileTorchFile, DeepObjectsAreRefused)
{
  constexpr std::size_t depth = 200'000;
  const std::string tuples = ")" + std::string(depth, '\x85');
  EXPECT_THAT(TorchRefusal(TorchZip(PickledDictionary({ { "a", tuples } }), {})),
    HasSubstr("at most 100 deep"));
  const std::string lists = std::string(depth, ']') + std::string(depth - 1, 'a');
  EXPECT_THAT(TorchRefusal(TorchZip(PickledDictionary({ { "a", lists } }), {})),
    HasSubstr("at most 100 deep"));
  // The same list many times over, in each of 30 lists.
  std::string doubled = "]q" + LittleEndian(0, 1);
  for (std::uint64_t i = 1; i < 30; ++i)
  {
    doubled +=
      "](h" + LittleEndian(i - 1, 1) + "h" + LittleEndian(i - 1, 1) + "eq" + LittleEndian(i, 1);
  }
  EXPECT_THAT(TorchRefusal(TorchZip("(" + doubled + "t", {})), HasSubstr("many times over"));
}

TEST(HostileTorchFile, CompressedRecordsAreRefused)
{
  EXPECT_THAT(TorchRefusal(ZipFile({ { "a/data.pkl", Pickle("}") } }, true)),
    HasSubstr("record 'a/data.pkl' is compressed or encrypted"));
}

TEST(HostileTorchFile, LongNamesAreRefused)
{
  std::string list;
  for (int i = 0; i < 1000; ++i)
  {
    list += "h" + LittleEndian(0, 1);
  }
  const std::string tensor = PickledVector("0", 1) + "q" + LittleEndian(0, 1);
  EXPECT_THAT(TorchRefusal(TorchZip(
                PickledList({ tensor,
                  PickledDictionary({ { std::string(10'000, 'n'), "](" + list + "e" } }) }),
                { { "0", FloatBytes({ 1 }) } })),
    HasSubstr("names of its tensors are longer"));
}

TEST(HostileTorchFile, CopiesAreLimited)
{
  // One tensor of 48 MB is read, two are not.
  const std::string expanded =
    PickledTensor({ "0", 1, "FloatStorage", false }, 0, { 12, 1'000'000 }, { 0, 0 });
  const std::string floats = FloatBytes({ 3 });
  EXPECT_EQ(Open(TorchZip(PickledList({ expanded }), { { "0", floats } })).GetTensors().size(), 1U);
  EXPECT_THAT(TorchRefusal(TorchZip(PickledList({ expanded, expanded }), { { "0", floats } })),
    HasSubstr("tensor '1' of shape [12, 1000000] is not stored as it is"));
}

// Files made here

const std::string Three = FloatBytes({ 1, 2, 3 });

TEST(TorchFile, ReadsBothKindsOfFiles)
{
  const TorchFile zip = Open(
    TorchZip(PickledDictionary({ { "a", PickledVector("0", 3) }, { "step", PickledNumber(7) } }),
      { { "0", Three } }));
  ASSERT_EQ(zip.GetTensors().size(), 1U);
  EXPECT_THAT(Load(zip, "a"), ElementsAre(1, 2, 3));
  EXPECT_EQ(zip.GetTensors().at("a").holder, "");
  const TorchFile legacy =
    Open(TorchLegacy(PickledDictionary({ { "a", PickledList({ PickledVector("x", 3, true) }) } }),
      { { "x", Three } }));
  EXPECT_THAT(Load(legacy, "a.0"), ElementsAre(1, 2, 3));
  EXPECT_EQ(legacy.GetTensors().at("a.0").holder, "a");
}

TEST(TorchFile, IsAnArrayFile)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "zip.pt", TorchZip(PickledVector("0", 3), { { "0", Three } }));
  WriteBytes(folder / "legacy.pt", TorchLegacy(PickledVector("0", 3, true), { { "0", Three } }));
  for (const char* name : { "zip.pt", "legacy.pt" })
  {
    const ArrayEntry entry = ArrayFile(folder / name).GetEntries().at("array");
    EXPECT_THAT(entry.shape, ElementsAre(3));
    EXPECT_THAT(entry.load().view.ToDouble(), ElementsAre(1, 2, 3)); // which outlives its file
  }
}

TEST(TorchFile, TruncatedWhileOpenIsNoticed)
{
  const TemporaryDirectory folder;
  const std::string bytes = TorchZip(PickledVector("0", 3), { { "0", Three } });
  WriteBytes(folder / "a.pt", bytes);
  const TorchFile file(folder / "a.pt");
  std::filesystem::resize_file(folder / "a.pt", 10);
  EXPECT_THROW(file.GetTensors().at("array").load(), FileError);
}

TEST(TorchFile, ChecksumsAreCompared)
{
  std::string bytes = TorchZip(PickledList({ PickledVector("0", 3), PickledVector("1", 3) }),
    { { "0", Three }, { "1", Three } });
  bytes[bytes.rfind(Three)] ^= 1;
  const TorchFile file = Open(bytes);
  EXPECT_THAT(Load(file, "0"), ElementsAre(1, 2, 3));
  for (int i = 0; i < 2; ++i)
  {
    EXPECT_THAT(MessageOf<FormatError>([&] { Load(file, "1"); }),
      HasSubstr("record '1' is damaged: its checksum"));
  }
}

TEST(TorchFile, ChecksumsOfLargeRecordsAreComputedInParts)
{
  std::string bytes((std::size_t{ 1 } << 25U) + 12, '\x01');
  const auto count = static_cast<std::int64_t>(bytes.size() / 4);
  std::string file = TorchZip(PickledVector("0", count), { { "0", bytes } });
  EXPECT_EQ(Open(file).GetTensors().at("array").load().view.Count(), bytes.size() / 4);
  file[file.size() - 1000] ^= 1;
  EXPECT_THAT(TorchRefusal(file), HasSubstr("is damaged"));
}

TEST(TorchFile, RecordsMayHaveNoChecksum)
{
  const TorchFile file = Open(TorchZip(PickledVector("0", 3), { { "0", Three } }, false));
  EXPECT_THAT(Load(file, "array"), ElementsAre(1, 2, 3));
}

/// The archive with its directory in the 64-bit form.
std::string Zip64(const std::string& zip)
{
  const std::size_t end = zip.size() - 22;
  const auto number = [&](std::size_t at, unsigned bytes)
  {
    std::uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;)
    {
      value = value << 8U | static_cast<unsigned char>(zip[at + i]);
    }
    return value;
  };
  const std::uint64_t begin = number(end + 16, 4);
  std::string directory;
  for (std::size_t at = begin; at < end;)
  {
    const std::size_t name = number(at + 28, 2);
    std::string entry = zip.substr(at, 46 + name);
    const std::string field = LittleEndian(number(at + 24, 4), 8) +
                              LittleEndian(number(at + 20, 4), 8) +
                              LittleEndian(number(at + 42, 4), 8);
    entry.replace(20, 8, 8, '\xff');
    entry.replace(42, 4, 4, '\xff');
    entry.replace(30, 2, LittleEndian(4 + field.size() + 5, 2));
    directory += entry + LittleEndian(0x4246, 2) + LittleEndian(1, 2) + "x" + LittleEndian(1, 2) +
                 LittleEndian(field.size(), 2) + field;
    at += 46 + name;
  }
  const std::uint64_t count = number(end + 10, 2);
  const std::string end64 = "PK\x06\x06" + LittleEndian(44, 8) + LittleEndian(0, 12 - 8) +
                            LittleEndian(0, 8) + LittleEndian(count, 8) + LittleEndian(count, 8) +
                            LittleEndian(directory.size(), 8) + LittleEndian(begin, 8);
  const std::string locator = "PK\x06\x07" + LittleEndian(0, 4) +
                              LittleEndian(begin + directory.size(), 8) + LittleEndian(1, 4);
  return zip.substr(0, begin) + directory + end64 + locator + "PK\x05\x06" + LittleEndian(0, 4) +
         std::string(12, '\xff') + LittleEndian(0, 2);
}

TEST(TorchFile, ReadsZip64)
{
  const std::string zip = Zip64(TorchZip(PickledVector("0", 3), { { "0", Three } }));
  EXPECT_THAT(Load(Open(zip), "array"), ElementsAre(1, 2, 3));
}

TEST(TorchFile, NoPrefixIsRead)
{
  const std::string object = PickledDictionary(
    { { "a", PickledTensor({ "0", 6, "FloatStorage", false }, 1, { 2, 2 }, { 1, 2 }) } });
  const std::string old = PickledDictionary(
    { { "a", PickledTensor({ "0", 6, "FloatStorage", true }, 1, { 2, 2 }, { 1, 2 }) } });
  const std::string six = Three + Three;
  const std::string zip = TorchZip(object, { { "0", six } }, false);
  for (const std::string& good : { zip, Zip64(zip), TorchLegacy(old, { { "0", six } }) })
  {
    EXPECT_THAT(Load(Open(good), "a"), ElementsAre(2, 1, 3, 2));
    for (std::size_t i = 0; i < good.size(); ++i)
    {
      EXPECT_THROW(Open(good.substr(0, i)), FormatError) << i;
    }
  }
}

std::string Zipped(const std::string& object)
{
  return TorchZip(object, { { "0", Three } });
}

/// A tensor of the three floats.
std::string View(std::int64_t offset, const std::vector<std::int64_t>& shape,
  const std::vector<std::int64_t>& stride)
{
  return Zipped(PickledTensor({ "0", 3, "FloatStorage", false }, offset, shape, stride));
}

// Element (i, j, ...) is that at offset + i stride_0 + j stride_1 + ...
TEST(TorchFile, ViewsMayHaveAnyStrides)
{
  struct Case
  {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> stride;
    std::vector<double> expected;
  };
  const std::vector<Case> cases = { { { 2, 1, 3 }, { 0, 99, 1 }, { 1, 2, 3, 1, 2, 3 } },
    { { 3, 2, 2 }, { 1, 0, 0 }, { 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3 } },
    { { 2, 2 }, { 1, 1 }, { 1, 2, 2, 3 } }, { { 1, 2, 1, 2 }, { 5, 0, 9, 2 }, { 1, 3, 1, 3 } },
    { { 2, 3, 1, 1 }, { 0, 0, 4, 4 }, { 1, 1, 1, 1, 1, 1 } },
    { { 2, 2, 2 }, { 0, 1, 1 }, { 1, 2, 2, 3, 1, 2, 2, 3 } }, { { 2, 0 }, { 0, 0 }, {} } };
  for (const Case& view : cases)
  {
    EXPECT_EQ(Load(Open(View(0, view.shape, view.stride)), "array"), view.expected)
      << testing::PrintToString(view.shape);
  }
}

TEST(TorchFile, BadOnesAreRefused)
{
  const std::vector<Refused> bad = { { "", "expected a PyTorch file" },
    { "hello, world", "expected a PyTorch file" },
    { Pickle("]"), "found a pickle of something else" },
    { ZipFile({ { "a/b", "c" } }), "has a record data.pkl, found none" },
    { ZipFile({ { "data.pkl", Pickle("}") } }), "all in one folder" },
    { ZipFile({ { "a/data.pkl", Pickle("}") }, { "b/version", "3" } }),
      "found 'a/data.pkl' and 'b/version'" },
    { ZipFile({ { "a/data.pkl", Pickle("}") + "x" } }), "expected nothing behind the pickle" },
    { Zipped(PickledDictionary({ { "a", PickledVector("0", 3) }, { "a", PickledVector("0", 3) } })),
      "tensor 'a' is there twice" },
    { Zipped(PickledVector("1", 3)), "storage '1' is missing" },
    { Zipped(PickledVector("0", 4)), "expected 4 elements of F32, found 3" },
    { View(1, { 3 }, { 1 }), "is not inside its storage of 3 elements" },
    { View(0, { 2 }, { 3 }), "is not inside" }, { View(0, { 2, 2 }, { 2, 1 }), "is not inside" },
    { View(3, {}, {}), "is not inside" }, { View(4, { 0 }, { 1 }), "is not inside" },
    { View(0, { std::int64_t{ 1 } << 62, 4 }, { 0, 0 }), "too many elements" },
    { View(0, { -1 }, { 1 }), "at least 0, found -1" },
    { Zipped(PickledGlobal("torch._utils", "_rebuild_tensor_v2") + ")R"),
      "expected 6 to 7 arguments, found 0" },
    { Zipped(PickledGlobal("torch._utils", "_rebuild_tensor_v2") +
             PickledTuple({ PickledStorage{ "0", 3 }.Pickle(), PickledNumber(0),
               PickledTuple(std::vector<std::int64_t>{ 3 }),
               PickledTuple(std::vector<std::int64_t>{ 1 }), "\x89", PickledOrderedDictionary(),
               PickledDictionary({ { "conj", "\x88" } }) }) +
             "R"),
      "not marked as conjugate" },
    { Zipped("}(Nu"), "expected a value for each key" },
    { Zipped("}}"), "one object at its end, found 2" },
    { Zipped("}("), "1 objects from the stack, which has 0" },
    { Zipped("X" + LittleEndian(1, 4) + "\xff"), "a text of the pickle" },
    { ZipFile({ { "a/data.pkl", "\x80\x01}." } }), "expected protocol 2" },
    { Zipped("}}b"), "BUILD sets attributes" },
    { TorchLegacy("}", {}).substr(0, TorchLegacy("}", {}).size() - 4) + "}.", "expected" },
    { TorchLegacy("}", {}) + "123", "no storage holds the last 3 bytes" },
    { TorchLegacy("}", { { "0", Three } }), "no tensor uses storage '0'" },
    { TorchLegacy(PickledList({ PickledVector("0", 3, true),
                    PickledTensor({ "0", 3, "IntStorage", true }, 0, { 3 }, { 1 }) }),
        { { "0", Three } }),
      "two types, F32 and I32" } };
  ExpectRefusals<FormatError>(
    bad, [](const std::string& bytes) { LoadAll(Open(bytes)); }, "some.pt: ");
}

}
