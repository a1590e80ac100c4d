#pragma once

#include "AttentionAtlasDataModule.h"
#include "RecordingRanges.h"
#include "vtkRecordingAlgorithm.h"

#include <string>
#include <vector>

/**
 * @class vtkHeadAlgorithm
 * @brief The base of filters that show a head of a recording.
 */
class ATTENTIONATLASDATA_EXPORT vtkHeadAlgorithm : public vtkRecordingAlgorithm
{
public:
  vtkTypeMacro(vtkHeadAlgorithm, vtkRecordingAlgorithm);

  /// The index of the sequence or image, from 0; in a filter with means, -1: the mean over all.
  /// Default: 0.
  vtkSetMacro(Sequence, int);
  vtkGetMacro(Sequence, int);

  /// The index of the layer in the model, from 0. Default: 0.
  vtkSetMacro(Layer, int);
  vtkGetMacro(Layer, int);

  /// The index of the head, from 0; in a filter with means, -1: the mean over the heads of the
  /// layer. Default: 0.
  vtkSetMacro(Head, int);
  vtkGetMacro(Head, int);

  /// The first and last sequence, recorded layer and head as of the last UpdateInformation; with
  /// means, sequences and heads begin with -1. 0, 0 without a recording.
  int* GetSequenceRange() VTK_SIZEHINT(2) { return this->Ranges.sequence; }
  int* GetLayerRange() VTK_SIZEHINT(2) { return this->Ranges.layer; }
  int* GetHeadRange() VTK_SIZEHINT(2) { return this->Ranges.head; }

protected:
  enum MeansType
  {
    WITHOUT_MEANS,
    WITH_MEANS
  };

  /// As vtkTaskAlgorithm; `means`: whether the filter shows means over sequences and heads.
  vtkHeadAlgorithm(MeansType means, const std::vector<std::string>& inputs,
    const std::vector<std::string>& outputs, int options = ALONE);

  /// Updates the recording and finds the ranges.
  int RequestInformation(vtkInformation* request, vtkInformationVector** inputVector,
    vtkInformationVector* outputVector) override;

  int Sequence = 0;
  int Layer = 0;
  int Head = 0;

private:
  MeansType Means;
  AttentionAtlas::RecordingRanges Ranges;
};
