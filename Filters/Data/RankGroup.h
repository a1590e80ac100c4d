#pragma once

#include "RecordTransformer.h"

#include <vtkType.h>

#include <string>
#include <vector>

class vtkInformationVector;
class vtkMultiProcessController;

/// How the MPI ranks share the work of a recording.
namespace AttentionAtlas
{

/// What became of a rank's part.
struct RankResult
{
  std::string error;      ///< empty: there was none
  bool cancelled = false; ///< by the user
  std::size_t input = 0;  ///< a number that tells inputs apart
};

/// The ranks that update an algorithm together: all of them if each is asked for its own of as many
/// pieces, else this one alone, and then nothing is sent. All have to call the functions below.
class RankGroup
{
public:
  explicit RankGroup(vtkInformationVector* outputVector);

  int Count() const;

  /// This one's number in the group, from 0.
  int Rank() const;

  /// Waits for the results of all, and returns whether none was cancelled. Throws
  /// std::runtime_error on each rank if one has an error, with that of the first such; or if the
  /// inputs are not the same.
  bool Agree(const RankResult& result) const;

  /// Gives every rank the rows of all sequences, of which rank r has those in ranges[r].
  void ShareRows(
    const atlas::Recording& recording, const std::vector<atlas::SequenceRange>& ranges) const;

private:
  vtkMultiProcessController* Controller = nullptr; ///< none: this rank alone

  void Send(float* values, vtkIdType count, int rank) const;
};

}
