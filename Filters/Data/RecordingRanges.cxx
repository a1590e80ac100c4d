#include "RecordingRanges.h"

#include "ModelConversion.h"
#include "RecordingConversion.h"

#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkFieldData.h>

#include <algorithm>

namespace AttentionAtlas
{

RecordingRanges FindRanges(vtkDataObject* data)
{
  RecordingRanges ranges;
  vtkFieldData* fields = data != nullptr ? data->GetFieldData() : nullptr;
  if (fields == nullptr)
  {
    return ranges;
  }
  vtkDataArray* offsets = fields->GetArray(SequenceOffsetsField);
  if (offsets != nullptr && offsets->GetNumberOfTuples() > 0)
  {
    const vtkIdType last = offsets->GetNumberOfTuples() - 1;
    ranges.sequences[1] = static_cast<int>(std::max<vtkIdType>(last - 1, 0));
    ranges.tokens = static_cast<int>(offsets->GetComponent(last, 0));
  }
  vtkDataArray* layers = fields->GetArray(ScoreScaleField); // of the recorded ones
  if (layers != nullptr && layers->GetNumberOfTuples() > 0)
  {
    std::array<double, 2> range;
    layers->GetRange(range.data(), 0);
    ranges.layers = { static_cast<int>(range[0]), static_cast<int>(range[1]) };
  }
  vtkDataArray* heads = fields->GetArray(HeadsField);
  if (heads != nullptr && heads->GetNumberOfTuples() > 0)
  {
    ranges.heads[1] = std::max(0, static_cast<int>(heads->GetComponent(0, 0)) - 1);
  }
  return ranges;
}

}
