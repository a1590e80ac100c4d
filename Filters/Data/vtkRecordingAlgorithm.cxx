#include "vtkRecordingAlgorithm.h"

#include "Base/Error.h"
#include "DataFields.h"
#include "Execution.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"

#include <vtkDataObject.h>
#include <vtkMultiBlockDataSet.h>

#include <string>

namespace
{

/// The part of a recording with a kind of attention; an empty one as it is. Throws as FindPart.
vtkMultiBlockDataSet* PartOf(vtkDataObject* data, int kind)
{
  auto* recording = vtkMultiBlockDataSet::SafeDownCast(data);
  return AttentionAtlas::IsEmpty(recording)
           ? recording
           : AttentionAtlas::FindPart(recording, static_cast<atlas::AttentionKind>(kind));
}

/// The same, but nullptr if there is none.
vtkMultiBlockDataSet* PartOrNone(vtkDataObject* data, int kind)
{
  try
  {
    return PartOf(data, kind);
  }
  catch (const atlas::OptionError&)
  {
    return nullptr;
  }
}

bool IsEmptyRecording(vtkDataObject* data)
{
  return AttentionAtlas::IsEmpty(vtkMultiBlockDataSet::SafeDownCast(data));
}

}

int vtkRecordingAlgorithm::GetHasKinds()
{
  vtkDataObject* recording = AttentionAtlas::KnownOutline(this, this->RecordingPort());
  return !IsEmptyRecording(recording) && PartOrNone(recording, ENCODER) != nullptr ? 1 : 0;
}

int* vtkRecordingAlgorithm::GetKindRange()
{
  vtkDataObject* recording = AttentionAtlas::KnownOutline(this, this->RecordingPort());
  const bool hasAll = IsEmptyRecording(recording) || PartOrNone(recording, CROSS) != nullptr;
  this->KindRange[1] = hasAll ? CROSS : this->GetHasKinds() != 0 ? ENCODER : DECODER;
  return this->KindRange;
}

vtkMultiBlockDataSet* vtkRecordingAlgorithm::OutlineOfPart()
{
  return PartOrNone(AttentionAtlas::OutlineOf(this, this->RecordingPort()), this->AttentionKind);
}

vtkMultiBlockDataSet* vtkRecordingAlgorithm::KnownPart()
{
  return PartOrNone(AttentionAtlas::KnownOutline(this, this->RecordingPort()), this->AttentionKind);
}

vtkMultiBlockDataSet* vtkRecordingAlgorithm::RequirePart(const AttentionAtlas::Task& task) const
{
  return PartOf(task.Input<vtkMultiBlockDataSet>(this->RecordingPort()), this->AttentionKind);
}

void vtkRecordingAlgorithm::AddKind(vtkDataObject* output) const
{
  if (this->AttentionKind != DECODER)
  {
    AttentionAtlas::AddField(output->GetFieldData(), AttentionAtlas::AttentionKindField,
      std::string(atlas::Name(static_cast<atlas::AttentionKind>(this->AttentionKind))));
  }
}
