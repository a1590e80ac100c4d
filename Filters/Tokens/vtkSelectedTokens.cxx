#include "vtkSelectedTokens.h"

#include "ArrayNames.h"
#include "PointArrays.h"
#include "Task.h"

#include <vtkDataObject.h>
#include <vtkDataSetAttributes.h>
#include <vtkIdTypeArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>

#include <cstdint>
#include <set>
#include <vector>

using namespace AttentionAtlas;

vtkStandardNewMacro(vtkSelectedTokens);

vtkSelectedTokens::vtkSelectedTokens()
  : vtkTaskAlgorithm({ "vtkDataSet|vtkTable" }, { "vtkSelection" })
{
}

void vtkSelectedTokens::Execute(Task& task)
{
  auto* input = task.Input<vtkDataObject>();
  if (TokenRows(input) == 0)
  {
    return;
  }
  const char* const name = ArrayNames::TokenIndex;
  vtkDataSetAttributes* attributes = TokenAttributes(input);
  vtkDataSetAttributes* ofCells = input->GetAttributes(vtkDataObject::CELL);
  if (!attributes->HasArray(name) && ofCells != nullptr && ofCells->HasArray(name))
  {
    attributes = ofCells;
  }
  const std::vector<std::int64_t> all =
    Integers(RequireNumbers(attributes, name, "Head Embedding makes it."));
  vtkNew<vtkIdTypeArray> tokens;
  for (const std::int64_t token : std::set<std::int64_t>(all.begin(), all.end()))
  {
    tokens->InsertNextValue(token);
  }
  vtkNew<vtkSelectionNode> node;
  node->SetContentType(vtkSelectionNode::PEDIGREEIDS);
  node->SetFieldType(vtkSelectionNode::POINT);
  node->SetSelectionList(tokens);
  task.Output<vtkSelection>()->AddNode(node);
}
