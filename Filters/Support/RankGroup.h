#pragma once

#include "AttentionAtlasDataModule.h"
#include "RecordTransformer.h"

#include <vtkType.h>

#include <array>
#include <exception>
#include <memory>
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
/// each is asked for its own, else only this one, and nothing is sent.
///
/// The ranks exchange what they know by the functions below, each rank the same ones in the same
/// order. An exchange begins with a few numbers of every rank: which exchange it is, and whether
/// the rank has failed or was canceled. A rank that leaves the task by an exception calls Leave,
/// and thereby takes part in whatever exchange the others do next, which throws the same error on
/// each of them, or ends as canceled on all. When the group is destroyed, each rank meets the
/// others once more. So none waits for a rank that has left, and ranks that do different things
/// throw std::runtime_error instead of mixing their data. Behind an error or a cancel nothing is
/// sent: exchanges throw again. Copies are of the same task.
///
/// For tests alone, the environment variable ATLAS_TEST_FAILURE, as RANK:EXCHANGE:KIND, lets a rank
/// fail instead of doing exchange 0, 1, ...; KIND is throw, memory or cancel.
class ATTENTIONATLASDATA_EXPORT RankGroup
{
public:
  explicit RankGroup(vtkInformationVector* outputVector);
  RankGroup(const RankGroup& other);
  RankGroup& operator=(const RankGroup&) = delete;
  ~RankGroup();

  int Count() const;

  /// The index of this rank in the group, from 0.
  int Rank() const;

  /// Waits for the results of all ranks, and returns whether none was canceled. Throws
  /// std::runtime_error on every rank if one has an error, with the message of the first such rank,
  /// or if the inputs differ.
  [[nodiscard]] bool Agree(const RankResult& result) const;

  /// Same, for a task that leaves by an exception if one was canceled, on every rank.
  void Require(const RankResult& result) const;

  /// To be called where a task ends by an exception, on whichever ranks it does; see above. Returns
  /// whether the reason is that a rank was canceled, which is no error to report.
  bool Leave(const std::exception& error) const;

  /// Whether something holds on any rank. True if a rank has failed; then the next exchange throws.
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
  enum class Exchange
  {
    Agreement,
    Bytes,
    Rows,
    End
  };
  struct Task;

  /// Exchange, its number, length of the error, whether canceled, hash of the input, bytes to send.
  using Header = std::array<vtkTypeInt64, 6>;

  vtkMultiProcessController* Controller = nullptr; ///< nullptr: this rank alone
  std::shared_ptr<Task> State;
  bool IsCopy = false;

  std::vector<Header> Meet(Exchange exchange, const RankResult& result, std::size_t bytes) const;
  [[noreturn]] void FailTogether(int rank, std::string error, std::size_t length) const;
  void RunTest() const;

  template<class Value>
  void Send(Value* values, vtkIdType count, int rank) const;
};

}
