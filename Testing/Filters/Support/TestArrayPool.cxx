#include "ArrayPool.h"
#include "ArrayRanges.h"

#include "Pipeline.h"

using AttentionAtlas::ArrayPool;
using AttentionAtlas::RangeCollector;

namespace
{

TEST(ArrayPool, WhatNobodyHoldsIsTakenAgain)
{
  ArrayPool pool;
  auto first = pool.Take(VTK_FLOAT, 3, 10);
  first->SetName("first");
  first->SetComponentName(0, "x");
  const void* memory = first->GetVoidPointer(0);
  EXPECT_EQ(first->GetNumberOfComponents(), 3);
  EXPECT_EQ(first->GetNumberOfTuples(), 10);
  EXPECT_EQ(first->GetDataType(), VTK_FLOAT);
  EXPECT_NE(pool.Take(VTK_FLOAT, 3, 10)->GetVoidPointer(0), memory) << "it is held";
  first = nullptr;
  EXPECT_NE(pool.Take(VTK_FLOAT, 3, 11)->GetVoidPointer(0), memory);
  EXPECT_NE(pool.Take(VTK_FLOAT, 1, 10)->GetVoidPointer(0), memory);
  EXPECT_NE(pool.Take(VTK_UNSIGNED_CHAR, 3, 10)->GetVoidPointer(0), memory);
  first = pool.Take(VTK_FLOAT, 3, 10);
  EXPECT_EQ(first->GetVoidPointer(0), memory);
  EXPECT_EQ(first->GetName(), nullptr);
}

TEST(ArrayPool, ShallowCopiesOfArraysKeepTheirValues)
{
  ArrayPool pool;
  for (const int type : { VTK_FLOAT, VTK_INT, VTK_UNSIGNED_CHAR })
  {
    auto first = pool.Take(type, 1, 10);
    first->Fill(7);
    const auto copy = vtkSmartPointer<vtkDataArray>::Take(first->NewInstance());
    copy->ShallowCopy(first);
    ASSERT_EQ(copy->GetVoidPointer(0), first->GetVoidPointer(0)) << "they share their memory";
    first = nullptr;
    pool.Take(type, 1, 10)->Fill(3);
    EXPECT_EQ(copy->GetTuple1(9), 7);
  }
}

TEST(ArrayPool, ForgetsWhatNobodyHolds)
{
  ArrayPool pool;
  const auto held = pool.Take(VTK_FLOAT, 1, 1000);
  pool.Take(VTK_INT, 1, 5);
  EXPECT_EQ(pool.Size(), 4020U);
  pool.ForgetFree();
  EXPECT_EQ(pool.Size(), 4000U);
}

TEST(ArrayPool, LargeOnesAreNotKept)
{
  ArrayPool pool;
  const auto large = pool.Take(VTK_FLOAT, 1, vtkIdType{ 1 } << 28U); // 1 GiB, never touched
  EXPECT_EQ(pool.Size(), std::size_t{ 1 } << 30U);
  pool.ForgetFree();
  EXPECT_EQ(pool.Size(), 0U);
  large->SetComponent(0, 0, 7);
  EXPECT_EQ(large->GetComponent(0, 0), 7);
}

TEST(ArrayPool, ArraysOutliveItAndMayGetOtherSizes)
{
  vtkSmartPointer<vtkDataArray> array;
  {
    ArrayPool pool;
    array = pool.Take(VTK_FLOAT, 2, 10);
    array->Fill(7);
    EXPECT_EQ(pool.Take(VTK_FLOAT, 2, 0)->GetNumberOfTuples(), 0);
  }
  EXPECT_EQ(array->GetComponent(9, 1), 7);
  array->Resize(1000);
  EXPECT_EQ(array->GetComponent(9, 1), 7);
  array->Initialize();
  array->SetNumberOfTuples(20);
  array->Fill(3);
  EXPECT_EQ(array->GetComponent(19, 1), 3);
}

TEST(RangeCollector, HasTheRangesOfAllParts)
{
  vtkNew<vtkFloatArray> floats;
  vtkNew<vtkIntArray> integers;
  vtkNew<vtkUnsignedCharArray> bytes;
  vtkNew<vtkDoubleArray> doubles; // of no type that is collected
  bytes->SetNumberOfComponents(3);
  for (int i = 0; i < 100; ++i)
  {
    floats->InsertNextValue(0.5F * static_cast<float>(i * i % 97));
    integers->InsertNextValue(i * 7 % 31 - 9);
    bytes->InsertNextTuple3(i, 100 - i, 3);
    doubles->InsertNextValue(i);
  }
  RangeCollector ranges({ floats, integers, bytes, doubles });
  ranges.Add(60, 100);
  {
    RangeCollector::Part part(ranges);
    part.Add(0, 1);
    part.Add(1, 60);
    part.Add(7, 7);
  }
  ranges.Store();
  EXPECT_EQ(floats->GetRange()[0], 0);
  EXPECT_EQ(floats->GetRange()[1], 0.5 * 96);
  EXPECT_EQ(integers->GetRange()[0], -9);
  EXPECT_EQ(integers->GetRange()[1], 21);
  EXPECT_EQ(bytes->GetRange(1)[0], 1);
  EXPECT_EQ(bytes->GetRange(1)[1], 100);
  EXPECT_DOUBLE_EQ(bytes->GetRange(-1)[0], std::sqrt(50. * 50 + 50 * 50 + 9));
  EXPECT_DOUBLE_EQ(bytes->GetRange(-1)[1], std::sqrt(100. * 100 + 9));
  EXPECT_EQ(doubles->GetRange()[1], 99);
}

}
