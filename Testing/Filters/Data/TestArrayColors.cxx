#include "DataFields.h"
#include "vtkArrayColors.h"

#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkPointData.h>
#include <vtkUnsignedCharArray.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::ElementsAre;

namespace
{

/// Four points and a cell with an array of numbers, which belongs to points or cells.
vtkSmartPointer<vtkImageData> WithNumbers(
  const char* name, const std::vector<float>& values, bool onCells = false)
{
  auto data = vtkSmartPointer<vtkImageData>::New();
  data->SetDimensions(2, 2, 1);
  auto numbers = AttentionAtlas::MakeArray<vtkFloatArray>(name, values);
  onCells ? data->GetCellData()->AddArray(numbers) : data->GetPointData()->AddArray(numbers);
  return data;
}

std::vector<double> Row(vtkDoubleArray* scale, vtkIdType row)
{
  std::vector<double> found(4);
  scale->GetTuple(row, found.data());
  return found;
}

TEST(ArrayColors, ScaleFollowsTheRangeOfTheData)
{
  vtkNew<vtkArrayColors> colors;
  const auto data = WithNumbers("Effect", { -0.25F, 0, 0.5F, 0.125F });
  EXPECT_TRUE(colors->Read(data, vtkDataObject::POINT, "Effect", true));
  ASSERT_EQ(colors->GetScale()->GetNumberOfTuples(), 3);
  EXPECT_THAT(Row(colors->GetScale(), 0), ElementsAre(-0.5, 0.23, 0.3, 0.75));
  EXPECT_THAT(Row(colors->GetScale(), 1), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Row(colors->GetScale(), 2), ElementsAre(0.5, 0.7, 0.02, 0.15));
  EXPECT_FALSE(colors->AreColors());
  EXPECT_EQ(colors->GetLegend(), "");
}

TEST(ArrayColors, OfOtherProgramsHaveNone)
{
  vtkNew<vtkArrayColors> colors;
  const auto data = WithNumbers("Effect", { 0, 1, 2, 3 });
  EXPECT_TRUE(colors->Read(data, vtkDataObject::POINT, "Effect", false));
  EXPECT_EQ(colors->GetScale()->GetNumberOfTuples(), 0);
  EXPECT_FALSE(colors->Read(data, vtkDataObject::CELL, "Effect", true));
  EXPECT_FALSE(colors->Read(data, vtkDataObject::POINT, "Effects", true));
}

TEST(ArrayColors, ClassesHaveTheirNumbersAsLegend)
{
  vtkNew<vtkArrayColors> colors;
  const auto data = WithNumbers("Class", { 1 }, true);
  AttentionAtlas::AddField(data->GetFieldData(), "VocabularySize", 2);
  EXPECT_TRUE(colors->Read(data, vtkDataObject::CELL, "Class", true));
  EXPECT_EQ(colors->GetLegend(), "Class\n0 114 178 0\n213 94 0 1");
}

TEST(ArrayColors, ColorsHaveTheLegendOfTheirField)
{
  const auto data = WithNumbers("x", { 0, 1, 2, 3 });
  auto bytes = AttentionAtlas::NewArray<vtkUnsignedCharArray>("HeadColor", 0);
  bytes->SetNumberOfComponents(3);
  bytes->SetNumberOfTuples(4);
  bytes->Fill(7);
  data->GetPointData()->AddArray(bytes);
  AttentionAtlas::AddField(data->GetFieldData(), "HeadColor Legend", "Head\n1 2 3 a\n4 5 6 b");
  vtkNew<vtkArrayColors> colors;
  EXPECT_TRUE(colors->Read(data, vtkDataObject::POINT, "HeadColor", true));
  EXPECT_TRUE(colors->AreColors());
  EXPECT_EQ(colors->GetLegend(), "Head\n1 2 3 a\n4 5 6 b");
  EXPECT_EQ(colors->GetScale()->GetNumberOfTuples(), 0);
}

}
