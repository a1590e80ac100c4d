#include "vtkSelectedTokens.h"

#include "ArrayNames.h"
#include "PointArrays.h"

#include <vtkDataObject.h>
#include <vtkDataSetAttributes.h>
#include <vtkIdTypeArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkSelection.h>
#include <vtkSelectionNode.h>

#include <cstdint>
#include <exception>
#include <set>
#include <vector>

vtkStandardNewMacro(vtkSelectedTokens);

int vtkSelectedTokens::FillInputPortInformation(int, vtkInformation* info)
{
  AttentionAtlas::AcceptTokens(info);
  return 1;
}

int vtkSelectedTokens::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkDataObject* input = vtkDataObject::GetData(inputVector[0]);
  auto* output = vtkSelection::GetData(outputVector);
  output->Initialize();
  if (AttentionAtlas::TokenRows(input) == 0)
  {
    return 1;
  }
  const char* const name = AttentionAtlas::ArrayNames::TokenIndex;
  vtkDataSetAttributes* attributes = AttentionAtlas::TokenAttributes(input);
  vtkDataSetAttributes* ofCells = input->GetAttributes(vtkDataObject::CELL);
  if (!attributes->HasArray(name) && ofCells != nullptr && ofCells->HasArray(name))
  {
    attributes = ofCells;
  }
  try
  {
    const std::vector<std::int64_t> all = AttentionAtlas::Integers(
      AttentionAtlas::RequireNumbers(attributes, name, "Head Embedding makes it."));
    vtkNew<vtkIdTypeArray> tokens;
    for (const std::int64_t token : std::set<std::int64_t>(all.begin(), all.end()))
    {
      tokens->InsertNextValue(token);
    }
    vtkNew<vtkSelectionNode> node;
    node->SetContentType(vtkSelectionNode::PEDIGREEIDS);
    node->SetFieldType(vtkSelectionNode::POINT);
    node->SetSelectionList(tokens);
    output->AddNode(node);
  }
  catch (const std::exception& e)
  {
    vtkErrorMacro(<< e.what());
  }
  return 1; // as in vtkModelAlgorithm
}
