#include "ErrorMemory.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>

#include <algorithm>

namespace AttentionAtlas
{

bool ErrorMemory::IsNew(vtkAlgorithm* algorithm)
{
  vtkMTimeType changed = algorithm->GetMTime();
  for (int port = 0; port < algorithm->GetNumberOfInputPorts(); ++port)
  {
    for (int i = 0; i < algorithm->GetNumberOfInputConnections(port); ++i)
    {
      if (vtkDataObject* data = algorithm->GetInputDataObject(port, i))
      {
        changed = std::max({ changed, data->GetMTime(), data->GetUpdateTime() });
      }
    }
  }
  const bool isNew = changed > this->Told.GetMTime();
  this->Told.Modified();
  return isNew;
}

}
