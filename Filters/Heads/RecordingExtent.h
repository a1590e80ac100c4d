#pragma once

#include <array>

class vtkAlgorithm;
class vtkInformation;
class vtkMultiBlockDataSet;

/// What image filters must know of a recording before they execute, and say of their image.
namespace AttentionAtlas
{

/// Updates the recording on input port 0 of a filter, whose image has a size that depends on it.
/// nullptr if that failed, which has been told.
vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter);

/// Whether there is nothing recorded, or no recording.
bool IsEmpty(vtkMultiBlockDataSet* recording);

/// The number of tokens of a sequence, or of the longest for -1; 1 if there is no such sequence, so
/// that something is asked for and the error told.
int SequenceTokens(vtkMultiBlockDataSet* recording, int sequence);

/// The first and last numbers of a recording; all 0 without one. Sequences and heads begin with -1,
/// which means all.
struct RecordingRanges
{
  std::array<int, 2> sequences = { 0, 0 };
  std::array<int, 2> layers = { 0, 0 };
  std::array<int, 2> heads = { 0, 0 };
};
RecordingRanges RangesOf(vtkMultiBlockDataSet* recording);

/// Announces an image of float points at x = 0 ... width - 1, y = 0 ... -(height - 1), of which any
/// part can be asked for.
void AnnounceImage(int width, int height, vtkInformation* info);

}
