#pragma once

#include "Circuits/ResidualComponents.h"
#include "Recorder/OpenTransformer.h"

#include <vtkType.h>

#include <memory>
#include <string>

class vtkMultiBlockDataSet;

namespace AttentionAtlas
{

/// What views of the residual stream use of a model and a recording. It is kept between executions,
/// so that another token or head reads no weights again; it is small.
class StreamModel
{
public:
  /// Makes it that of this model and recording, unless it is already. `data`: of the recording.
  /// Throws atlas::OptionError if the recording is of another model, which `what` needs, and as
  /// atlas::ResidualWeights.
  void Open(const std::shared_ptr<const atlas::OpenTransformer>& model, bool processes,
    vtkMultiBlockDataSet* data, const atlas::Recording& recording, const std::string& what);

  const atlas::Transformer& GetModel() const { return this->Model->GetModel(); }
  const std::shared_ptr<const atlas::OpenTransformer>& GetOpenModel() const { return this->Model; }
  const atlas::ResidualWeights& GetWeights() const { return *this->Residual; }
  atlas::LastMlps& GetLastMlps() { return this->Mlps; }

private:
  std::shared_ptr<const atlas::OpenTransformer> Model;
  bool Processes = true;
  vtkMTimeType RecordingTime = 0;
  std::unique_ptr<const atlas::ProcessedWeights> Weights;
  std::unique_ptr<const atlas::ResidualWeights> Residual;
  atlas::LastMlps Mlps;
};

/// The token that a user names by text or id. It is kept until another is asked for. Throws
/// atlas::OptionError unless it is one token, as TokenNames::Find.
class NamedToken
{
public:
  std::int32_t Find(const std::shared_ptr<const atlas::OpenTransformer>& model,
    const std::string& text, const std::string& source);

private:
  std::shared_ptr<const atlas::OpenTransformer> Model;
  std::string Text;
  std::int32_t Id = -1;
};

}
