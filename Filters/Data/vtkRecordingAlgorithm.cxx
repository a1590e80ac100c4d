#include "vtkRecordingAlgorithm.h"

#include "DataFields.h"
#include "Error.h"
#include "Execution.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"

#include <vtkDataObject.h>
#include <vtkMultiBlockDataSet.h>

#include <string>

namespace
{

/// The part of a recording with a kind of attention; nullptr if there is none.
vtkMultiBlockDataSet* PartOrNone(vtkMultiBlockDataSet* recording, atlas::AttentionKind kind)
{
  try
  {
    return AttentionAtlas::FindPart(recording, kind);
  }
  catch (const atlas::OptionError&)
  {
    return nullptr;
  }
}

}

int vtkRecordingAlgorithm::GetHasKinds()
{
  auto* recording =
    vtkMultiBlockDataSet::SafeDownCast(AttentionAtlas::KnownOutline(this, this->RecordingPort()));
  return !AttentionAtlas::IsEmpty(recording) &&
             PartOrNone(recording, atlas::AttentionKind::Encoder) != nullptr
           ? 1
           : 0;
}

int* vtkRecordingAlgorithm::GetKindRange()
{
  auto* recording =
    vtkMultiBlockDataSet::SafeDownCast(AttentionAtlas::KnownOutline(this, this->RecordingPort()));
  this->KindRange[1] = this->GetHasKinds() != 0 ? ENCODER : DECODER;
  if (AttentionAtlas::IsEmpty(recording) ||
      PartOrNone(recording, atlas::AttentionKind::Cross) != nullptr)
  {
    this->KindRange[1] = CROSS;
  }
  return this->KindRange;
}

vtkMultiBlockDataSet* vtkRecordingAlgorithm::OutlineOfPart()
{
  auto* recording =
    vtkMultiBlockDataSet::SafeDownCast(AttentionAtlas::OutlineOf(this, this->RecordingPort()));
  return AttentionAtlas::IsEmpty(recording)
           ? recording
           : PartOrNone(recording, static_cast<atlas::AttentionKind>(this->AttentionKind));
}

vtkMultiBlockDataSet* vtkRecordingAlgorithm::KnownPart()
{
  auto* recording =
    vtkMultiBlockDataSet::SafeDownCast(AttentionAtlas::KnownOutline(this, this->RecordingPort()));
  return AttentionAtlas::IsEmpty(recording)
           ? recording
           : PartOrNone(recording, static_cast<atlas::AttentionKind>(this->AttentionKind));
}

vtkMultiBlockDataSet* vtkRecordingAlgorithm::RequirePart(const AttentionAtlas::Task& task) const
{
  auto* recording = task.Input<vtkMultiBlockDataSet>(this->RecordingPort());
  return AttentionAtlas::IsEmpty(recording)
           ? recording
           : AttentionAtlas::FindPart(
               recording, static_cast<atlas::AttentionKind>(this->AttentionKind));
}

void vtkRecordingAlgorithm::AddKind(vtkDataObject* output) const
{
  if (this->AttentionKind != DECODER)
  {
    AttentionAtlas::AddField(output->GetFieldData(), AttentionAtlas::AttentionKindField,
      std::string(atlas::Name(static_cast<atlas::AttentionKind>(this->AttentionKind))));
  }
}
