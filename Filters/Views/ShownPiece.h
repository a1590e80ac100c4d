#pragma once

#include <vtkAlgorithm.h>
#include <vtkAlgorithmOutput.h>
#include <vtkCompositeDataIterator.h>
#include <vtkCompositeDataSet.h>
#include <vtkDataSet.h>
#include <vtkInformation.h>
#include <vtkPVDataRepresentation.h>
#include <vtkPVRenderView.h>
#include <vtkSmartPointer.h>

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

/// The datasets that data consist of; none for null.
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
      if (auto* leaf = vtkDataSet::SafeDownCast(blocks->GetCurrentDataObject()))
      {
        leaves.push_back(leaf);
      }
    }
  }
  return leaves;
}

}
