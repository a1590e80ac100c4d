#pragma once

#include "AttentionAtlasCorpusModule.h"

#include <vtkTaskAlgorithm.h>

#include <string>
#include <vector>

namespace atlas
{
struct CorpusStatistics;
}

/// The base of filters that show statistics of a corpus, most of them of one head. Input:
/// statistics of a corpus, as produced by vtkCorpusStatistics or vtkCorpusReader. Outputs are in
/// the first piece. They are empty if the input is.
class ATTENTIONATLASCORPUS_EXPORT vtkCorpusAlgorithm : public vtkTaskAlgorithm
{
public:
  vtkTypeMacro(vtkCorpusAlgorithm, vtkTaskAlgorithm);

  /// The index of the layer in the model, from 0. Default: 0.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0. Default: 0.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// The first and last layer and head of the input as of the last UpdateInformation. 0, 0 without
  /// input.
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->LayerRange; }
  int* GetHeadRange() VTK_SIZEHINT(2) { return this->HeadRange; }

protected:
  /// The types of the outputs, and of the inputs behind the statistics, as vtkTaskAlgorithm has
  /// them.
  explicit vtkCorpusAlgorithm(
    const std::vector<std::string>& outputs, const std::vector<std::string>& moreInputs = {});

  /// Updates the input and finds the ranges.
  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;
  void Execute(AttentionAtlas::Task& task) final;

  /// Fills the outputs. Throws std::exception with what is wrong.
  virtual void Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task) = 0;

  /// Adds the field arrays Layer and Head to all outputs.
  void AddHead(const AttentionAtlas::Task& task);

  int Layer = 0;
  int Head = 0;

private:
  int LayerRange[2] = { 0, 0 };
  int HeadRange[2] = { 0, 0 };
};
