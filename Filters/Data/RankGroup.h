#pragma once

#include "AttentionAtlasDataModule.h"
#include "RecordTransformer.h"

#include <vtkType.h>

#include <string>
#include <vector>

class vtkInformationVector;
class vtkMultiProcessController;

/// Sharing work on a recording among MPI ranks.
namespace AttentionAtlas
{

/// The outcome of a rank's part.
struct RankResult
{
  std::string error;      ///< empty if there was none
  bool cancelled = false; ///< by the user
  std::size_t input = 0;  ///< a hash of the input, to detect ranks with different inputs
};

/// The ranks that update an algorithm together: all ranks if there are as many pieces as ranks and
/// each is asked for its own, else only this one, and nothing is sent. All ranks of a group must
/// call the functions below.
class ATTENTIONATLASDATA_EXPORT RankGroup
{
public:
  explicit RankGroup(vtkInformationVector* outputVector);

  int Count() const;

  /// The index of this rank in the group, from 0.
  int Rank() const;

  /// Waits for the results of all ranks, and returns whether none was canceled. Throws
  /// std::runtime_error on every rank if one has an error, with the message of the first such rank,
  /// or if the inputs differ.
  bool Agree(const RankResult& result) const;

  /// Whether something holds on any rank.
  bool Any(bool mine) const;

  /// Sends the rows of all sequences to every rank; rank r has computed those in ranges[r].
  void ShareRows(
    const atlas::Recording& recording, const std::vector<atlas::SequenceRange>& ranges) const;

  /// Sends bytes of each rank to all ranks. Returns those of rank r as entry r.
  std::vector<std::vector<char>> Share(std::vector<char> mine) const;

  /// Sends numbers of each rank to all ranks. Returns all, those of rank 0 first.
  std::vector<vtkTypeInt64> Gather(const std::vector<vtkTypeInt64>& mine) const;
  std::vector<double> Gather(const std::vector<double>& mine) const;

private:
  vtkMultiProcessController* Controller = nullptr; ///< nullptr: this rank alone

  template<class Value>
  void Send(Value* values, vtkIdType count, int rank) const;
};

}
