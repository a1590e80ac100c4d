#include "Files/Tensor.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

// The bits of each type are those of TestSafetensors.cxx, at every alignment.

TEST(Tensor, DoublesAreRoundedToFloats)
{
  const Tensor tensor = Tensor::FromDouble(DType::F64, { 3 }, { 0.1, 1 + 1e-12, -3 });
  std::vector<float> floats(2);
  tensor.View().ToFloat(1, 3, floats.data());
  EXPECT_THAT(floats, ElementsAre(1.0F, -3.0F));
  tensor.View().ToFloat(0, 1, floats.data());
  EXPECT_EQ(floats[0], 0.1F);
}

TEST(Tensor, ValuesAreStored)
{
  EXPECT_THAT(Tensor::FromDouble(DType::F32, { 2, 1 }, { 0.1, 2 }).View().ToDouble(),
    ElementsAre(static_cast<double>(0.1F), 2));
  EXPECT_THAT(Tensor::FromInteger({ 2 }, { -5, 9 }).View().ToInteger(), ElementsAre(-5, 9));
  EXPECT_EQ(Tensor::FromInteger({ 2 }, { -5, 9 }).dtype, DType::I64);
  EXPECT_THAT(MessageOf<FormatError>([] { Tensor::FromDouble(DType::I64, { 1 }, { 1 }); }),
    HasSubstr("expected F64 or F32 to store numbers, found I64"));
}

TEST(Tensor, TypesOfNumbersAreNotMixed)
{
  float value = 0;
  EXPECT_THROW(Tensor::FromInteger({ 1 }, { 1 }).View().ToFloat(0, 1, &value), FormatError);
  const Tensor floats = Tensor::FromDouble(DType::F32, { 1 }, { 1 });
  EXPECT_THAT(MessageOf<FormatError>([&] { floats.View().ToInteger(); }),
    HasSubstr("(I64, I32, I16, I8, U8, U32, BOOL), found F32"));
}

TEST(Tensor, TypesHaveNamesAndSizes)
{
  const std::vector<std::pair<std::string, std::size_t>> known = { { "F64", 8 }, { "F32", 4 },
    { "F16", 2 }, { "BF16", 2 }, { "I64", 8 }, { "I32", 4 }, { "I16", 2 }, { "I8", 1 }, { "U8", 1 },
    { "BOOL", 1 }, { "U32", 4 }, { "F8_E4M3", 1 }, { "F8_E5M2", 1 }, { "F8_E8M0", 1 } };
  std::string names;
  for (const auto& [name, size] : known)
  {
    const std::optional<DType> dtype = DTypeFromName(name);
    ASSERT_TRUE(dtype) << name;
    EXPECT_EQ(Name(*dtype), name);
    EXPECT_EQ(ByteSize(*dtype), size) << name;
    EXPECT_EQ(IsFloating(*dtype), name.find('F') != std::string::npos) << name;
    names += (names.empty() ? "" : ", ") + name;
  }
  EXPECT_EQ(KnownDTypes(), names);
  EXPECT_FALSE(DTypeFromName("f32"));
  EXPECT_FALSE(DTypeFromName(""));
}

TEST(Tensor, BlocksHaveSizesOfTheirOwn)
{
  const std::vector<std::tuple<DType, std::string, std::size_t, std::size_t>> known = {
    { DType::Q4_0, "Q4_0", 32, 18 }, { DType::Q4_1, "Q4_1", 32, 20 },
    { DType::Q5_0, "Q5_0", 32, 22 }, { DType::Q5_1, "Q5_1", 32, 24 },
    { DType::Q8_0, "Q8_0", 32, 34 }, { DType::Q2_K, "Q2_K", 256, 84 },
    { DType::Q3_K, "Q3_K", 256, 110 }, { DType::Q4_K, "Q4_K", 256, 144 },
    { DType::Q5_K, "Q5_K", 256, 176 }, { DType::Q6_K, "Q6_K", 256, 210 },
    { DType::IQ4_NL, "IQ4_NL", 32, 18 }, { DType::IQ4_XS, "IQ4_XS", 256, 136 },
    { DType::MXFP4, "MXFP4", 32, 17 }
  };
  for (const auto& [dtype, name, elements, bytes] : known)
  {
    EXPECT_EQ(Name(dtype), name);
    EXPECT_TRUE(IsFloating(dtype)) << name;
    EXPECT_TRUE(IsBlock(dtype)) << name;
    EXPECT_EQ(BlockElements(dtype), elements) << name;
    EXPECT_EQ(BlockBytes(dtype), bytes) << name;
    EXPECT_THROW(ByteSize(dtype), FormatError) << name;
    EXPECT_FALSE(DTypeFromName(name)) << name; // not in safetensors
    const TensorView view{ dtype, { 3, 512 }, nullptr };
    EXPECT_EQ(view.Bytes(), 3 * 512 / elements * bytes) << name;
    EXPECT_FALSE(view.IsPlain()) << name;
    EXPECT_THROW(view.ToInteger(), FormatError) << name;
  }
  EXPECT_FALSE(IsBlock(DType::BOOL));
  EXPECT_EQ(BlockElements(DType::F16), 1U);
  EXPECT_EQ((TensorView{ DType::F16, { 3, 5 }, nullptr }).Bytes(), 30U);
}

TEST(Tensor, InterleavedRowsAreReadInOrder)
{
  // Two groups of four rows of two; the rows of a group are stored as 0, 2, 1, 3.
  const std::vector<double> stored = { 0, 0.5, 2, 2.5, 1, 1.5, 3, 3.5, 4, 4.5, 6, 6.5, 5, 5.5, 7,
    7.5 };
  const Tensor tensor = Tensor::FromDouble(DType::F32, { 8, 2 }, stored);
  TensorView view = tensor.View();
  EXPECT_TRUE(view.IsPlain());
  view.interleavedRows = 4;
  EXPECT_FALSE(view.IsPlain());
  std::vector<double> ordered;
  for (int i = 0; i < 16; ++i)
  {
    ordered.push_back(i / 2.0);
    EXPECT_EQ(view.At(static_cast<std::uint64_t>(i)), i / 2.0);
  }
  EXPECT_EQ(view.ToDouble(), ordered);
  std::vector<float> part(6);
  view.ToFloat(3, 9, part.data());
  EXPECT_THAT(part, ElementsAre(1.5F, 2, 2.5F, 3, 3.5F, 4));
  view.shape = { 16 }; // a bias
  view.interleavedRows = 8;
  view.ToFloat(1, 3, part.data());
  EXPECT_EQ(part[0], 2);
  EXPECT_EQ(part[1], 1);
}

TEST(Tensor, GivesNoFloatsWithoutMemory)
{
  const TensorView empty = { DType::F32, { 0, 3 }, nullptr };
  EXPECT_NO_THROW(empty.ToFloat(0, 0, nullptr)); // undefined in memcpy, which sanitizers tell
  EXPECT_THROW((TensorView{ DType::I8, { 0 }, nullptr }.ToFloat(0, 0, nullptr)), FormatError);
}

TEST(Tensor, ElementsAreCountedUpTo64Bits)
{
  EXPECT_EQ(ElementCount({}), 1U);
  EXPECT_EQ(ElementCount({ 5, 3, 0 }), 0U);
  EXPECT_EQ(ElementCount({ 1LL << 32, (1LL << 32) - 1 }), 0xFFFFFFFF00000000U);
  EXPECT_EQ(ElementCount({ 1LL << 32, 1LL << 32 }), std::nullopt);
  EXPECT_EQ(ToString(Shape{ 5, 3 }), "[5, 3]");
  EXPECT_EQ(ToString(Shape{}), "[]");
}

}
