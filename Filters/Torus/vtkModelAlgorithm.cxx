#include "vtkModelAlgorithm.h"

#include "DataFormat.h"
#include "ModelConversion.h"
#include "Task.h"

#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkMultiBlockDataSet.h>

#include <string_view>

using namespace AttentionAtlas;

namespace
{

std::vector<std::string> InputTypes(const std::vector<std::string>& more)
{
  std::vector<std::string> types = { "vtkMultiBlockDataSet" };
  types.insert(types.end(), more.begin(), more.end());
  return types;
}

/// Passes the model's field data on to an output, which keeps its format and its arrays.
void CopyFields(vtkFieldData* from, vtkFieldData* to)
{
  for (int i = 0; i < from->GetNumberOfArrays(); ++i)
  {
    vtkAbstractArray* array = from->GetAbstractArray(i);
    const char* name = array->GetName();
    if (name != nullptr && std::string_view(name) != FormatField && !to->HasArray(name))
    {
      to->AddArray(array);
    }
  }
}

}

vtkModelAlgorithm::vtkModelAlgorithm(
  const std::vector<std::string>& outputs, const std::vector<std::string>& moreInputs, int pieces)
  : vtkTaskAlgorithm(InputTypes(moreInputs), outputs)
  , Pieces(pieces)
{
}

void vtkModelAlgorithm::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  const bool isEmpty = input == nullptr || input->GetNumberOfBlocks() == 0;
  if (isEmpty || (this->Pieces == FIRST_PIECE && !task.IsFirst()))
  {
    return;
  }
  this->Evaluate(ToModel(input), task);
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    CopyFields(input->GetFieldData(), task.Output<vtkDataObject>(port)->GetFieldData());
  }
}
