#pragma once

#include "AttentionAtlasSupportModule.h"
#include "Run/RecordTransformer.h"

#include <vtkType.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

class vtkInformationVector;
class vtkMultiProcessController;

namespace AttentionAtlas
{

/// The ranks that execute a filter together: all ranks of its controller if there are as many
/// pieces as ranks and each is asked for its own, else only this one, and nothing is sent.
///
/// Each rank calls the same functions below in the same order. An exchange begins with a few
/// numbers of every rank: which exchange it is, and whether the rank has failed or was canceled. If
/// one has, it throws on all ranks: atlas::Canceled, or std::runtime_error with the message of the
/// first rank that failed. So none waits for a rank that leaves its task, and ranks that do
/// different things fail instead of mixing their data (vtkTaskAlgorithm sees to both).
///
/// For tests alone, the environment variable ATLAS_TEST_FAILURE, as RANK:EXCHANGE:KIND, lets a rank
/// fail instead of doing exchange 0, 1, ...; KIND is throw, memory or cancel.
class ATTENTIONATLASSUPPORT_EXPORT RankGroup
{
public:
  /// This rank alone.
  RankGroup() = default;

  /// `controller`: nullptr without one.
  RankGroup(vtkMultiProcessController* controller, vtkInformationVector* outputVector);

  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int Count() const;

  /// The index of this rank in the group, from 0.
  int Rank() const;

  /// Whether something holds on any rank.
  bool Any(bool mine) const;

  /// Throws std::runtime_error on all ranks unless all have the same number, such as a hash of what
  /// they read.
  void RequireSame(std::size_t hash) const;

  /// Sends the rows of all sequences to every rank; rank r has computed those in ranges[r].
  void ShareRows(
    const atlas::Recording& recording, const std::vector<atlas::SequenceRange>& ranges) const;

  /// Sends bytes of each rank to all ranks. Returns those of rank r as entry r.
  std::vector<std::vector<char>> Share(std::vector<char> mine) const;

  /// Sends numbers, or records of them, of each rank to all ranks. Returns all, those of rank 0
  /// first.
  template<class Value>
  std::vector<Value> Gather(const std::vector<Value>& mine) const;

  /// Sends the values of items that were dealt to the ranks: rank r has those of items r,
  /// r + Count(), ... Returns those of all items in order [items, perItem].
  template<class Value>
  std::vector<Value> GatherDealt(
    const std::vector<Value>& mine, std::size_t items, std::size_t perItem) const;

  /// The end of a task that exchanged something. Throws as an exchange does.
  void Finish() const;

  /// The end of a task by an exception. Returns the error that all ranks have then, or std::nullopt
  /// if they are canceled. `error`: of this rank; std::nullopt if it was canceled.
  std::optional<std::string> Leave(const std::optional<std::string>& error) const;

private:
  enum class Exchange
  {
    Agreement,
    Bytes,
    Rows,
    End
  };

  /// Exchange, its number, length of the error, whether canceled, a hash, bytes to send.
  using Header = std::array<vtkTypeInt64, 6>;

  /// How the task ended on all ranks.
  struct End
  {
    std::optional<std::string> error; ///< none: canceled or finished
    bool isCanceled = false;
  };

  vtkMultiProcessController* Controller = nullptr; ///< nullptr: this rank alone
  mutable vtkTypeInt64 Exchanges = 0;
  mutable std::optional<End> Over; ///< no rank does another exchange

  std::vector<Header> Meet(Exchange exchange, vtkTypeInt64 number = 0, std::size_t bytes = 0) const;
  std::vector<Header> Exchanged(const Header& mine, const std::optional<std::string>& error) const;
  [[noreturn]] void EndWith(const End& end) const;
  void RunTest() const;

  template<class Value>
  void Send(Value* values, vtkIdType count, int rank) const;
};

template<class Value>
std::vector<Value> RankGroup::Gather(const std::vector<Value>& mine) const
{
  static_assert(std::is_trivially_copyable_v<Value>);
  const char* first = reinterpret_cast<const char*>(mine.data());
  const auto parts = this->Share({ first, first + mine.size() * sizeof(Value) });
  std::vector<Value> all;
  for (const std::vector<char>& bytes : parts)
  {
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(Value));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(all.data() + before));
  }
  return all;
}

template<class Value>
std::vector<Value> RankGroup::GatherDealt(
  const std::vector<Value>& mine, std::size_t items, std::size_t perItem) const
{
  const std::size_t ranks = this->Count();
  if (ranks == 1 || perItem == 0)
  {
    return mine;
  }
  const std::vector<Value> dealt = this->Gather(mine);
  std::vector<Value> all(items * perItem);
  auto from = dealt.begin();
  for (std::size_t rank = 0; rank < ranks; ++rank)
  {
    for (std::size_t item = rank; item < items; item += ranks)
    {
      std::copy_n(from, perItem, all.begin() + static_cast<std::ptrdiff_t>(item * perItem));
      from += static_cast<std::ptrdiff_t>(perItem);
    }
  }
  return all;
}

}
