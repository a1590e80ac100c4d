#include "vtkSelectedTokens.h"

#include "Pipeline.h"

#include <vtkIdTypeArray.h>
#include <vtkNew.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>
#include <vtkTable.h>

#include <gmock/gmock.h>

using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

vtkSmartPointer<vtkTable> TableOf(const char* name, const std::vector<vtkIdType>& values)
{
  vtkNew<vtkIdTypeArray> column;
  column->SetName(name);
  for (const vtkIdType value : values)
  {
    column->InsertNextValue(value);
  }
  auto table = vtkSmartPointer<vtkTable>::New();
  table->AddColumn(column);
  return table;
}

}

TEST(SelectedTokens, AreDistinctAndInOrder)
{
  Observed<vtkSelectedTokens> tokens;
  Connect(tokens.Get(), 0, TableOf("Token Index", { 7, 3, 7, 20, 3 }));
  tokens->Update();
  ASSERT_EQ(OutputOf<vtkSelection>(tokens.Get())->GetNumberOfNodes(), 1U);
  vtkSelectionNode* node = OutputOf<vtkSelection>(tokens.Get())->GetNode(0);
  EXPECT_EQ(node->GetContentType(), vtkSelectionNode::PEDIGREEIDS);
  EXPECT_EQ(node->GetFieldType(), vtkSelectionNode::POINT);
  auto* list = vtkIdTypeArray::SafeDownCast(node->GetSelectionList());
  ASSERT_NE(list, nullptr);
  EXPECT_THAT(
    std::vector<vtkIdType>(list->GetPointer(0), list->GetPointer(list->GetNumberOfValues())),
    ElementsAre(3, 7, 20));
}

TEST(SelectedTokens, OfNoPointsAreNone)
{
  Observed<vtkSelectedTokens> tokens;
  Connect(tokens.Get(), 0, vtkSmartPointer<vtkTable>::New());
  tokens->Update();
  EXPECT_EQ(OutputOf<vtkSelection>(tokens.Get())->GetNumberOfNodes(), 0U);
}

TEST(SelectedTokens, NeedTheirIndices)
{
  Observed<vtkSelectedTokens> tokens;
  Connect(tokens.Get(), 0, TableOf("Row", { 1 }));
  tokens->Update();
  EXPECT_THAT(tokens.TakeErrors(), ElementsAre(HasSubstr("Token Index")));
  EXPECT_EQ(OutputOf<vtkSelection>(tokens.Get())->GetNumberOfNodes(), 0U);
}
