#include "vtkHeadAlgorithm.h"

vtkHeadAlgorithm::vtkHeadAlgorithm(MeansType means, const std::vector<std::string>& inputs,
  const std::vector<std::string>& outputs, int options)
  : vtkRecordingAlgorithm(inputs, outputs, options)
  , Means(means)
{
}

int vtkHeadAlgorithm::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = this->OutlineOfPart();
  this->Ranges.Find(recording);
  if (this->Means == WITH_MEANS && !AttentionAtlas::IsEmpty(recording))
  {
    this->Ranges.sequence[0] = this->Ranges.head[0] = -1;
  }
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}
