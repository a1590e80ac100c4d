#include "Files/ArrayFile.h"

#include "Base/Error.h"
#include "Files/Safetensors.h"
#include "NumpyBytes.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using namespace std::string_literals;

namespace
{

/// Opens a file that lies in memory; the file owns a copy of the bytes.
ArrayFile Open(const std::string& bytes)
{
  const auto owner = std::make_shared<const std::string>(bytes);
  return { reinterpret_cast<const std::byte*>(owner->data()), owner->size(), owner, "some.file" };
}

LoadedArray LoadNpy(const std::string& bytes)
{
  return Open(bytes).GetEntries().at("array").load();
}

/// Reads all arrays of a file.
void LoadAll(const std::string& bytes)
{
  const ArrayFile file = Open(bytes);
  for (const auto& [name, entry] : file.GetEntries())
  {
    entry.load();
  }
}

TEST(NumpyFile, HasNumbersOfAllTypes)
{
  struct KnownArray
  {
    const char* type;
    std::string bytes;
    std::vector<double> values;
    DType dtype;
  };
  const std::vector<KnownArray> all = { { "<f2", "\0\x3c\0\xc0"s, { 1, -2 }, DType::F16 },
    { ">f2", "\x3c\0\xc0\0"s, { 1, -2 }, DType::F16 },
    { "<f4", "\0\0\xc0\x3f\0\0\x20\xc1"s, { 1.5, -10 }, DType::F32 },
    { ">f4", "\x3f\xc0\0\0\xc1\x20\0\0"s, { 1.5, -10 }, DType::F32 },
    { "<f8", "\x9a\x99\x99\x99\x99\x99\xb9\xbf"s, { -0.1 }, DType::F64 },
    { ">f8", "\xbf\xb9\x99\x99\x99\x99\x99\x9a"s, { -0.1 }, DType::F64 },
    { "|i1", "\x80\x7f"s, { -128, 127 }, DType::I8 },
    { "<i2", "\xfe\xff\x04\x03"s, { -2, 772 }, DType::I16 },
    { ">i2", "\xff\xfe\x03\x04"s, { -2, 772 }, DType::I16 },
    { "=i4", "\xfe\xff\xff\xff"s, { -2 }, DType::I32 },
    { ">i8", "\0\0\0\0\0\0\x01\x02"s, { 258 }, DType::I64 },
    { "|u1", "\xff\0"s, { 255, 0 }, DType::U8 }, { "<u2", "\xff\xff"s, { 65535 }, DType::I32 },
    { ">u4", "\xff\xff\xff\xfe"s, { 4294967294 }, DType::I64 },
    { "<u8", "\x02\0\0\0\0\0\0\0"s, { 2 }, DType::I64 },
    { "|b1", "\x01\0"s, { 1, 0 }, DType::BOOL } };
  for (const KnownArray& known : all)
  {
    SCOPED_TRACE(known.type);
    const std::string shape = "(" + std::to_string(known.values.size()) + ",)";
    const LoadedArray array = LoadNpy(NpyFile(NpyHeader(known.type, shape), known.bytes));
    EXPECT_EQ(array.view.dtype, known.dtype);
    EXPECT_THAT(array.view.shape, ElementsAre(known.values.size()));
    EXPECT_EQ(array.view.ToDouble(), known.values);
  }
}

TEST(NumpyFile, MayBeInFortranOrder)
{
  // Element (i, j, k) is 100 i + 10 j + k; the first index runs fastest.
  std::vector<float> values;
  for (const float k : { 0.F, 1.F })
  {
    for (const float j : { 0.F, 1.F, 2.F })
    {
      for (const float i : { 0.F, 1.F })
      {
        values.push_back(100 * i + 10 * j + k);
      }
    }
  }
  const LoadedArray array =
    LoadNpy(NpyFile(NpyHeader("<f4", "(2, 3, 2)", "True"), FloatBytes(values)));
  EXPECT_THAT(array.view.shape, ElementsAre(2, 3, 2));
  EXPECT_THAT(
    array.view.ToDouble(), ElementsAre(0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121));
}

TEST(NumpyFile, MayBeBigEndianInFortranOrder)
{
  const LoadedArray array =
    LoadNpy(NpyFile(NpyHeader(">i2", "(2, 2)", "True"), "\0\x01\0\x03\0\x02\0\x04"s));
  EXPECT_THAT(array.view.ToDouble(), ElementsAre(1, 2, 3, 4));
}

TEST(NumpyFile, IsMappedWhereItCanBe)
{
  const auto bytes =
    std::make_shared<const std::string>(NpyFile(NpyHeader("<f4", "(2,)"), FloatBytes({ 1, 2 })));
  const auto* begin = reinterpret_cast<const std::byte*>(bytes->data());
  const LoadedArray array = ParseNumpy(begin, bytes->size(), bytes, "x");
  EXPECT_EQ(array.view.data, begin + bytes->size() - 8);
  EXPECT_EQ(array.owner, bytes);
}

TEST(NumpyFile, ShapesAndVersionsOfAllKinds)
{
  EXPECT_THAT(
    LoadNpy(NpyFile(NpyHeader("<f4", "()"), FloatBytes({ 5 }))).view.ToDouble(), ElementsAre(5));
  EXPECT_THAT(LoadNpy(NpyFile(NpyHeader("<f4", "(0, 3)"), "")).view.shape, ElementsAre(0, 3));
  EXPECT_THAT(
    LoadNpy(NpyFile(NpyHeader("<f4", "(1L,)"), FloatBytes({ 5 }))).view.shape, ElementsAre(1));
  EXPECT_THAT(
    LoadNpy(NpyFile(R"({"shape":(1,),"descr":"<f4","fortran_order":False})", FloatBytes({ 7 })))
      .view.ToDouble(),
    ElementsAre(7));
  const std::string header = NpyHeader("<f4", "(1,)");
  for (const char version : { '\x02', '\x03' })
  {
    EXPECT_THAT(LoadNpy("\x93NUMPY"s + version + '\0' + LittleEndian(header.size(), 4) + header +
                        FloatBytes({ 3 }))
                  .view.ToDouble(),
      ElementsAre(3));
  }
}

std::string Typed(const std::string& type)
{
  return NpyFile(NpyHeader(type, "(1,)"), "12345678");
}

std::string Header(const std::string& header)
{
  return NpyFile(header, "1234");
}

const std::string GoodNpy = NpyFile(NpyHeader("<f4", "(2,)"), FloatBytes({ 1, 2 }));

TEST(NumpyFile, BadOnesAreRefused)
{
  const std::vector<Refused> bad = { { Typed("|O"),
                                       "Python objects (type '|O'), which only pickle can read" },
    { "\x80\x04]."s, "found a pickle of something else" },
    { Typed("<c8"), "'<c8', expected one of f2, f4, f8" }, { Typed("<U5"), "unknown type '<U5'" },
    { Typed("|f4"), "unknown type '|f4'" }, { Typed(""), "unknown type ''" },
    { Header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
      "found records" },
    { NpyFile(NpyHeader("<u8", "(1,)"), "\0\0\0\0\0\0\0\x80"s), "found 9223372036854775808" },
    { "\x93NUMPY\x04"s + "\0\0\0\0\0"s, "version 1.0, 2.0 or 3.0 of the .npy format, found 4.0" },
    { "\x93NUMPY\x01"s + "\0\x10"s, "expected a .npy file" },
    { "\x93NUMPY\x01"s + "\0\x70\0{}"s, "112 bytes long, but only 2" },
    { "\x93NUMPY\x02"s + "\0\xff\xff\xff\xff"s, "100000 bytes, found a length of 4294967295" },
    { Header("[]"), "expected '{'" },
    { Header("{'descr': '<f4', 'shape': (1,)}"), "keys descr, fortran_order and shape" },
    { Header("{'other': 1}"), "found 'other'" },
    { Header("{'descr': '<f4', 'descr': '<f4'}"), "once, found 'descr'" },
    { Header("{'fortran_order': 0}"), "expected True or False" },
    { Header(NpyHeader("<f4", "(-1,)")), "expected a size" },
    { Header(NpyHeader("<f4", "(9223372036854775808,)")), "up to 2^63 - 1" },
    { Header(NpyHeader("<f4", "(4294967296, 4294967296)")), "overflows 64 bits" },
    { Header("{'shape': (1, 2"), "expected ')'" },
    { Header("{'shape"), "expected the end of a string" },
    { Header(NpyHeader("<f4", "(1,)") + "x"), "expected nothing after the dictionary" },
    { GoodNpy.substr(0, GoodNpy.size() - 1), "takes 8 bytes, found 7" },
    { GoodNpy + "1", "takes 8 bytes, found 9" },
    { Header(
        NpyHeader("<f4", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)")),
      "at most 32 dimensions" } };
  ExpectRefusals<FormatError>(bad, LoadAll, "some.file: ");
}

std::string Damaged(std::string zip, std::size_t at)
{
  zip[at] = static_cast<char>(zip[at] ^ 1);
  return zip;
}

const std::string GoodZip = ZipFile({ { "x.npy", GoodNpy } });
const std::string DeflatedZip = ZipFile({ { "x.npy", GoodNpy } }, true);

TEST(ArrayFile, BadArchivesAreRefused)
{
  const std::vector<Refused> bad = { { GoodZip.substr(0, GoodZip.size() / 2),
                                       "it is cut off or damaged" },
    { ZipFile({ { "x.npy", "nothing" } }), "array 'x.npy': expected a .npy file" },
    { ZipFile({ { "x.npy", Typed("|O") } }), "array 'x.npy': the array holds Python objects" },
    { ZipFile({ { "model/data.pkl", "\x80\x02." } }),
      "takes 1 objects from the stack, which has 0" },
    { ZipFile({ { "x.npy", GoodNpy }, { "x", GoodNpy } }), "array 'x' occurs twice" },
    { ZipFile({ { "x.npy", GoodNpy } }, true, 4'000'000'000), "which is impossible" },
    { Damaged(GoodZip, GoodZip.find("PK\x01\x02") - 1),
      "record 'x.npy' is damaged: its checksum differs" },
    { std::string(DeflatedZip).replace(35, 1, "\x07"), // no kind of block
      "'x.npy': cannot read it from the zip archive" } };
  ExpectRefusals<FormatError>(bad, LoadAll, "some.file: ");
}

TEST(ArrayFile, ReadsZipArchives)
{
  for (const bool deflate : { false, true })
  {
    const ArrayFile file = Open(ZipFile(
      { { "b.npy", GoodNpy }, { "a.x.npy", NpyFile(NpyHeader("|u1", "(2,)"), "\x01\x02") } },
      deflate));
    ASSERT_EQ(file.GetEntries().size(), 2U);
    EXPECT_EQ(file.GetEntries().at("b").dtype, DType::F32);
    EXPECT_THAT(file.GetEntries().at("b").shape, ElementsAre(2));
    EXPECT_THAT(file.GetEntries().at("b").load().view.ToDouble(), ElementsAre(1, 2));
    EXPECT_THAT(file.GetEntries().at("a.x").load().view.ToDouble(), ElementsAre(1, 2));
  }
  EXPECT_TRUE(Open(ZipFile({})).GetEntries().empty());
}

TEST(ArrayFile, TheLengthOfAHeaderMayLookLikeAPickle)
{
  for (const std::size_t length : { 0x80U, 0x280U, 0x480U })
  {
    const std::string header = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    const std::string file =
      LittleEndian(length, 8) + header + std::string(length - header.size(), ' ') + "\x07";
    EXPECT_THAT(Open(file).GetEntries().at("x").load().view.ToDouble(), ElementsAre(7));
  }
}

TEST(ArrayFile, ArraysOutliveTheFile)
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "x", { { "a", Tensor::FromDouble(DType::F32, { 2 }, { 3, 4 }) } },
    { { "key", "value" } });
  WriteBytes(folder / "y", GoodNpy);
  WriteBytes(folder / "z", GoodZip);
  std::vector<LoadedArray> arrays;
  for (const char* name : { "x", "y", "z" })
  {
    const ArrayFile file(folder / name);
    EXPECT_EQ(file.GetMetadata().size(), name == "x"s ? 1U : 0U);
    arrays.push_back(file.GetEntries().begin()->second.load());
    std::filesystem::remove(folder / name);
  }
  EXPECT_THAT(arrays[0].view.ToDouble(), ElementsAre(3, 4));
  EXPECT_THAT(arrays[1].view.ToDouble(), ElementsAre(1, 2));
  EXPECT_THAT(arrays[2].view.ToDouble(), ElementsAre(1, 2));
}

/// A folder with arrays a and b in files of their own, and their index.
class ShardedArrays : public testing::Test
{
protected:
  TemporaryDirectory Folder;
  std::filesystem::path Index = this->Folder / "run.safetensors.index.json";

  ShardedArrays()
  {
    this->WriteShard("one.safetensors", "a", 1);
    this->WriteShard("two.safetensors", "b", 2);
    this->WriteIndex(R"({"a": "one.safetensors", "b": "two.safetensors"})");
  }

  void WriteShard(const std::string& file, const std::string& array, double value) const
  {
    WriteSafetensors(this->Folder / file,
      { { array, Tensor::FromDouble(DType::F32, { 1 }, { value }) } }, { { "format", "pt" } });
  }

  void WriteIndex(const std::string& map) const
  {
    WriteBytes(
      this->Index, R"({"metadata": {"total_size": 8, "format": "x"}, "weight_map": )" + map + "}");
  }
};

TEST_F(ShardedArrays, AreReadByTheirIndex)
{
  const ArrayFile file(this->Index);
  ASSERT_EQ(file.GetEntries().size(), 2U);
  EXPECT_THAT(file.GetEntries().at("a").load().view.ToDouble(), ElementsAre(1));
  EXPECT_THAT(file.GetEntries().at("b").load().view.ToDouble(), ElementsAre(2));
  EXPECT_THAT(file.GetMetadata(), ElementsAre(Pair("format", "x"))); // that of the index
  EXPECT_NO_THROW(file.RequireIntact());
}

TEST_F(ShardedArrays, AreIntactTogether)
{
  const ArrayFile file(this->Index);
  std::filesystem::resize_file(this->Folder / "two.safetensors", 20);
  EXPECT_THAT(MessageOf<FileError>([&] { file.RequireIntact(); }), HasSubstr("two.safetensors"));
}

TEST_F(ShardedArrays, AreThoseThatTheIndexLists)
{
  const auto refusal = [this](const std::string& map)
  {
    this->WriteIndex(map);
    return MessageOf<ModelError>([this] { const ArrayFile file(this->Index); });
  };
  EXPECT_THAT(refusal(R"({"c": "one.safetensors"})"),
    EndsWith(
      "one.safetensors: array 'c' is missing, although run.safetensors.index.json lists it."));
  this->WriteShard("two.safetensors", "a", 3);
  EXPECT_THAT(refusal(R"({"a": "one.safetensors", "b": "two.safetensors"})"),
    EndsWith("two.safetensors: array 'a' is in another shard too, expected it once."));
}

TEST_F(ShardedArrays, AnIndexListsFilesOfItsFolder)
{
  const auto refuse = [this](const std::string& map)
  {
    this->WriteIndex(map);
    const ArrayFile file(this->Index);
  };
  for (const char* name :
    { "3", R"("")", R"("../one.safetensors")", R"("run.safetensors.index.json")" })
  {
    EXPECT_THAT(MessageOf<FormatError>([&] { refuse("{\"a\": " + std::string(name) + "}"); }),
      EndsWith("tensor 'a': expected the name of a file in the folder of the index."))
      << name;
  }
  EXPECT_THAT(MessageOf<FileError>([&] { refuse(R"({"a": "three.safetensors"})"); }),
    EndsWith("the shard 'three.safetensors', which holds tensor 'a', is missing."));
}

TEST(ArrayFile, NoPrefixIsRead)
{
  for (const std::string& good : { GoodNpy, GoodZip, ZipFile({ { "x.npy", GoodNpy } }, true) })
  {
    for (std::size_t i = 0; i < good.size(); ++i)
    {
      EXPECT_THROW(Open(good.substr(0, i)), FormatError);
    }
  }
}

}
