#include "vtkModelAlgorithm.h"

#include "DataFormat.h"
#include "Execution.h"
#include "ModelConversion.h"

#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>

#include <string_view>

int vtkModelAlgorithm::FillInputPortInformation(int port, vtkInformation* info)
{
  if (port != 0)
  {
    return 0;
  }
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
}

int vtkModelAlgorithm::RequestDataObject(
  vtkInformation*, vtkInformationVector**, vtkInformationVector*)
{
  return 1;
}

vtkMultiBlockDataSet* vtkModelAlgorithm::GetModelInput(vtkInformationVector** inputVector)
{
  auto* model = vtkMultiBlockDataSet::GetData(inputVector[0]);
  return model != nullptr && model->GetNumberOfBlocks() > 0 ? model : nullptr;
}

int vtkModelAlgorithm::RequestFromModel(vtkInformationVector** inputVector,
  vtkInformationVector* outputVector, const std::vector<const char*>& formats,
  const std::function<bool(const atlas::AttentionOnlyModel&)>& compute)
{
  vtkMultiBlockDataSet* input = GetModelInput(inputVector);
  if (input == nullptr || !AttentionAtlas::IsFirstPiece(outputVector))
  {
    return 1;
  }
  try
  {
    if (!compute(AttentionAtlas::ToModel(input)))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
  }
  catch (const std::exception& e)
  {
    for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
    {
      vtkDataObject::GetData(outputVector, port)->Initialize();
    }
    vtkErrorMacro(<< e.what());
    // Returning 0 would stop downstream filters on this rank only. Other ranks would then wait for
    // it when they compute something together.
    return 1;
  }
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    vtkDataObject* output = vtkDataObject::GetData(outputVector, port);
    CopyModelFields(input, output);
    AttentionAtlas::SetFormat(output, formats.at(static_cast<std::size_t>(port)));
  }
  return 1;
}

void vtkModelAlgorithm::CopyModelFields(vtkMultiBlockDataSet* model, vtkDataObject* output)
{
  vtkFieldData* from = model->GetFieldData();
  vtkFieldData* to = output->GetFieldData();
  for (int i = 0; i < from->GetNumberOfArrays(); ++i)
  {
    vtkAbstractArray* array = from->GetAbstractArray(i);
    const char* name = array->GetName();
    if (name != nullptr && std::string_view(name) != AttentionAtlas::FormatField &&
        !to->HasArray(name))
    {
      to->AddArray(array);
    }
  }
}
