#include "Weights/FloatValues.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;

namespace
{

std::vector<float> Read(const FloatValues& values, std::size_t count)
{
  return { values.Data(), values.Data() + count };
}

TEST(FloatValues, AlignedFloatsStayWhereTheyAre)
{
  const Tensor tensor = Tensor::FromDouble(DType::F32, { 2 }, { 1.5, -2 });
  const FloatValues values(tensor.View());
  EXPECT_EQ(static_cast<const void*>(values.Data()), tensor.bytes.data());
  EXPECT_EQ(WidenedBytes(tensor.View()), 0U);
}

TEST(FloatValues, OthersAreConverted)
{
  const Tensor doubles = Tensor::FromDouble(DType::F64, { 3 }, { 0.1, -2, 1e300 });
  EXPECT_THAT(Read(FloatValues(doubles.View()), 3),
    ElementsAre(0.1F, -2.0F, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(WidenedBytes(doubles.View()), 12U);
  const Tensor halves{ DType::F16, { 1, 2 },
    { std::byte{ 0x00 }, std::byte{ 0x3C }, std::byte{ 0x00 }, std::byte{ 0xC0 } } };
  EXPECT_THAT(Read(FloatValues(halves.View()), 2), ElementsAre(1.0F, -2.0F));
  EXPECT_EQ(WidenedBytes(halves.View()), 8U);
  const Tensor brainFloats{ DType::BF16, { 2 },
    { std::byte{ 0x80 }, std::byte{ 0x3F }, std::byte{ 0x00 }, std::byte{ 0xC0 } } };
  EXPECT_THAT(Read(FloatValues(brainFloats.View()), 2), ElementsAre(1.0F, -2.0F));
  EXPECT_EQ(WidenedBytes(brainFloats.View()), 8U);
}

TEST(FloatValues, UnalignedFloatsAreCopied)
{
  const Tensor tensor = Tensor::FromDouble(DType::F32, { 2 }, { 1.5, -2 });
  std::vector<std::byte> shifted(9);
  std::memcpy(shifted.data() + 1, tensor.bytes.data(), 8);
  const TensorView view{ DType::F32, { 2 }, shifted.data() + 1 };
  FloatValues values(view);
  EXPECT_THAT(Read(values, 2), ElementsAre(1.5F, -2.0F));
  EXPECT_EQ(WidenedBytes(view), 8U);
  const FloatValues moved = std::move(values);
  EXPECT_THAT(Read(moved, 2), ElementsAre(1.5F, -2.0F));
}

TEST(FloatValues, WithoutATensorThereIsNothing)
{
  EXPECT_EQ(FloatValues().Data(), nullptr);
  EXPECT_EQ(FloatValues(TensorView()).Data(), nullptr);
  EXPECT_EQ(WidenedBytes(TensorView()), 0U);
}

}
