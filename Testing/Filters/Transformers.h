#pragma once

#include "vtkTransformerReader.h"
#include "vtkTransformerRecorder.h"

#include "Core/TransformerOracle.h"
#include "Recordings.h"
#include "TemporaryDirectory.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// An algorithm with its warnings.
template<class Algorithm>
class Warned : public Observed<Algorithm>
{
public:
  Warned() { this->Get()->AddObserver(vtkCommand::WarningEvent, this, &Warned::AddWarning); }
  std::vector<std::string> TakeWarnings() { return std::exchange(this->Warnings, {}); }

private:
  std::vector<std::string> Warnings;

  void AddWarning(vtkObject*, unsigned long, void* message)
  {
    this->Warnings.emplace_back(static_cast<const char*>(message));
  }
};

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
    this->Model.TakeWarnings();
    return OutputOf<vtkMultiBlockDataSet>(this->Recorder.Get());
  }
  Recording Record() { return AttentionAtlas::ToRecording(this->Update()); }

  TransformerReader Model;
  Warned<vtkTransformerRecorder> Recorder;
};

}
