#include "vtkCorpusAlgorithm.h"

#include "ArrayNames.h"
#include "CorpusConversion.h"
#include "DataFields.h"
#include "Task.h"

#include <vtkDataArray.h>

using namespace AttentionAtlas;

namespace
{

std::vector<std::string> InputTypes(const std::vector<std::string>& more)
{
  std::vector<std::string> types = { "vtkTable" };
  types.insert(types.end(), more.begin(), more.end());
  return types;
}

}

vtkCorpusAlgorithm::vtkCorpusAlgorithm(
  const std::vector<std::string>& outputs, const std::vector<std::string>& moreInputs)
  : vtkTaskAlgorithm(InputTypes(moreInputs), outputs)
{
}

int vtkCorpusAlgorithm::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkTable::SafeDownCast(OutlineOf(this));
  const auto find = [input](const char* name, int* range)
  {
    auto* column =
      input != nullptr ? vtkDataArray::SafeDownCast(input->GetColumnByName(name)) : nullptr;
    const bool isThere = column != nullptr && column->GetNumberOfTuples() > 0;
    for (int i = 0; i < 2; ++i)
    {
      range[i] = isThere ? static_cast<int>(column->GetRange(0)[i]) : 0;
    }
  };
  find(ArrayNames::Layer, this->LayerRange);
  find(ArrayNames::Head, this->HeadRange);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkCorpusAlgorithm::Execute(Task& task)
{
  const auto statistics = ToCorpus(task.Input<vtkTable>());
  if (statistics != nullptr && task.IsFirst())
  {
    this->Show(*statistics, task);
  }
}

void vtkCorpusAlgorithm::AddHead(const AttentionAtlas::Task& task)
{
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    vtkFieldData* fields = task.Output<vtkDataObject>(port)->GetFieldData();
    AttentionAtlas::AddField(fields, AttentionAtlas::ArrayNames::Layer, this->Layer);
    AttentionAtlas::AddField(fields, AttentionAtlas::ArrayNames::Head, this->Head);
  }
}
