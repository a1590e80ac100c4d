#include "StreamModel.h"

#include "Analysis/RecordedModel.h"
#include "Base/Error.h"
#include "Circuits/CircuitWeights.h"
#include "Execution.h"
#include "TokenNames.h"

#include <vtkMultiBlockDataSet.h>

#include <vector>

namespace AttentionAtlas
{

void StreamModel::Open(const std::shared_ptr<const atlas::OpenTransformer>& model, bool processes,
  vtkMultiBlockDataSet* data, const atlas::Recording& recording, const std::string& what)
{
  const vtkMTimeType time = TimeOf(data);
  const bool hasChanged =
    this->Residual == nullptr || model != this->Model || processes != this->Processes;
  if (!hasChanged && time == this->RecordingTime)
  {
    return;
  }
  this->RecordingTime = 0; // unless everything succeeds
  this->Mlps = {};
  atlas::RequireSameModel(recording, model->GetModel(), what);
  atlas::RequireSameProcessing(recording, model->GetModel(), what);
  atlas::RequireSum(model->GetModel().GetConfig());
  atlas::RequireUnpatched(recording, model->GetModel().GetConfig(), processes, what);
  if (hasChanged)
  {
    this->Residual.reset();
    this->Weights = std::make_unique<const atlas::ProcessedWeights>(
      model->GetModel(), atlas::CircuitSteps(processes), ThreadLimit());
    this->Model = model;
    this->Processes = processes;
    this->Residual = std::make_unique<const atlas::ResidualWeights>(*this->Weights, ThreadLimit());
  }
  this->RecordingTime = time;
}

std::int32_t NamedToken::Find(const std::shared_ptr<const atlas::OpenTransformer>& model,
  const std::string& text, const std::string& source)
{
  if (model == this->Model && text == this->Text)
  {
    return this->Id;
  }
  const std::vector<std::int32_t> found = TokenNames(model).Find({ text }, source);
  atlas::ThrowIf<atlas::OptionError>(
    found.size() != 1, source, ": expected one token, found ", found.size(), ".");
  this->Model = model;
  this->Text = text;
  this->Id = found.front();
  return this->Id;
}

}
