#pragma once

#include <vtkAlgorithm.h>
#include <vtkAlgorithmOutput.h>
#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataArray.h>
#include <vtkDataSet.h>
#include <vtkFieldData.h>
#include <vtkInformation.h>
#include <vtkPVDataRepresentation.h>
#include <vtkPVRenderView.h>
#include <vtkSmartPointer.h>

#include <algorithm>
#include <array>
#include <vector>

/// The data that a representation of a render view draws.
namespace AttentionAtlas
{

/// What was delivered to this process, as of the request REQUEST_RENDER; null if nothing was.
inline vtkDataObject* ShownPiece(vtkInformation* input, vtkPVDataRepresentation* representation)
{
  vtkAlgorithmOutput* port = vtkPVRenderView::GetPieceProducer(input, representation);
  vtkAlgorithm* producer = port != nullptr ? port->GetProducer() : nullptr;
  return producer != nullptr ? producer->GetOutputDataObject(port->GetIndex()) : nullptr;
}

/// The datasets that data consist of; none for null. Composite data have empty ones, too, which
/// other ranks have made (ParaView 5.13); these are left out.
inline std::vector<vtkDataSet*> LeavesOf(vtkDataObject* data)
{
  std::vector<vtkDataSet*> leaves;
  if (auto* one = vtkDataSet::SafeDownCast(data))
  {
    leaves.push_back(one);
  }
  else if (auto* composite = vtkCompositeDataSet::SafeDownCast(data))
  {
    const auto blocks = vtkSmartPointer<vtkCompositeDataIterator>::Take(composite->NewIterator());
    for (blocks->InitTraversal(); !blocks->IsDoneWithTraversal(); blocks->GoToNextItem())
    {
      auto* leaf = vtkDataSet::SafeDownCast(blocks->GetCurrentDataObject());
      if (leaf != nullptr && leaf->GetNumberOfPoints() > 0)
      {
        leaves.push_back(leaf);
      }
    }
  }
  return leaves;
}

/// Adds to bounds what the field array View Bounds of data (least and largest x and y) has beyond
/// them.
inline void AddViewBounds(vtkDataObject* data, std::array<double, 6>& bounds)
{
  for (vtkDataSet* leaf : LeavesOf(data))
  {
    vtkDataArray* wanted = leaf->GetFieldData()->GetArray("View Bounds");
    for (vtkIdType axis : { 0, 1 })
    {
      if (wanted != nullptr && wanted->GetNumberOfValues() == 4)
      {
        double& low = bounds.at(2 * axis);
        double& high = bounds.at(2 * axis + 1);
        low = std::min(low, wanted->GetComponent(2 * axis, 0));
        high = std::max(high, wanted->GetComponent(2 * axis + 1, 0));
      }
    }
  }
}

}
