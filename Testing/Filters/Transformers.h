#pragma once

#include "vtkTransformerReader.h"
#include "vtkTransformerRecorder.h"

#include "Core/TransformerOracle.h"
#include "Recordings.h"
#include "TemporaryDirectory.h"

namespace atlas::test
{

using TransformerReader = Warned<vtkTransformerReader>;

/// A model of the oracle and a recorder of it.
class Pipeline
{
public:
  explicit Pipeline(const std::filesystem::path& path)
  {
    this->Model->SetFileName((path / "config.json").c_str());
    this->Recorder->SetInputConnection(this->Model->GetOutputPort());
  }

  vtkMultiBlockDataSet* Update()
  {
    this->Recorder->Update();
    return OutputOf<vtkMultiBlockDataSet>(this->Recorder.Get());
  }
  Recording Record() { return AttentionAtlas::ToRecording(this->Update()); }

  TransformerReader Model;
  Warned<vtkTransformerRecorder> Recorder;
};

}
