#include "ModelSizes.h"

#include "ArrayNames.h"
#include "Circuits/Bigrams.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Execution.h"
#include "RecordingRanges.h"
#include "Task.h"

#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkMultiBlockDataSet.h>

namespace AttentionAtlas
{
namespace
{

int NumberOf(vtkFieldData* fields, const char* name)
{
  vtkDataArray* array = fields->GetArray(name);
  return array != nullptr && array->GetNumberOfTuples() > 0
           ? static_cast<int>(array->GetComponent(0, 0))
           : 0;
}

}

ModelSizes::ModelSizes(vtkMultiBlockDataSet* model)
{
  if (!IsEmpty(model))
  {
    vtkFieldData* fields = model->GetFieldData();
    this->layers = NumberOf(fields, "Layers");
    this->heads = NumberOf(fields, "Heads");
    this->headDimension = NumberOf(fields, "HeadDimension");
    this->modelDimension = NumberOf(fields, "EmbeddingDimension");
  }
}

ModelSizes ModelSizes::OfInput(vtkAlgorithm* filter)
{
  return ModelSizes(vtkMultiBlockDataSet::SafeDownCast(OutlineOf(filter)));
}

void Describe(vtkDataObject* output, const char* format, bool processes,
  const std::vector<std::string>& leftOut)
{
  SetFormat(output, format);
  AddField(output->GetFieldData(), ArrayNames::Processing,
    std::string(processes ? "TransformerLens" : "None"));
  output->GetFieldData()->AddArray(MakeArray<vtkStringArray>(ArrayNames::LeftOut, leftOut));
}

std::string HeadNameOf(int layer, int head)
{
  return std::to_string(layer) + "." + std::to_string(head);
}

std::vector<std::int32_t> ChosenTokens(
  const atlas::OpenTransformer& model, const std::vector<std::string>& entries)
{
  const atlas::TokenFinder& finder = model.GetTokenFinder();
  const std::vector<std::int32_t> tokens = finder.FindAll(entries, "Tokens");
  return tokens.empty() ? atlas::SampleTokens(finder) : tokens;
}

atlas::LargestProductOptions LargestOptions(const Task& task, int top)
{
  atlas::LargestProductOptions options;
  options.top = top;
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  return options;
}

}
