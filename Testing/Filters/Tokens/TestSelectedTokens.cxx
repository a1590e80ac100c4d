#include "vtkSelectedTokens.h"

#include "Matchers.h"
#include "Pipeline.h"

using namespace atlas::test;

namespace
{

vtkSmartPointer<vtkTable> TableOf(const char* name, const std::vector<vtkIdType>& values)
{
  auto table = vtkSmartPointer<vtkTable>::New();
  AddArray<vtkIdTypeArray>(table->GetRowData(), name, values);
  return table;
}

}

TEST(SelectedTokens, AreDistinctAndInOrder)
{
  On<vtkSelectedTokens> tokens(TableOf("Token Index", { 7, 3, 7, 20, 3 }));
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
  On<vtkSelectedTokens> tokens(vtkSmartPointer<vtkTable>::New());
  tokens->Update();
  EXPECT_EQ(OutputOf<vtkSelection>(tokens.Get())->GetNumberOfNodes(), 0U);
}

TEST(SelectedTokens, NeedTheirIndices)
{
  On<vtkSelectedTokens> tokens(TableOf("Row", { 1 }));
  EXPECT_THAT(tokens.Error(), HasSubstr("Token Index"));
  EXPECT_EQ(OutputOf<vtkSelection>(tokens.Get())->GetNumberOfNodes(), 0U);
}
