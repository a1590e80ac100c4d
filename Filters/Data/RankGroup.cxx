#include "RankGroup.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiProcessController.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace AttentionAtlas
{
namespace
{

/// The most numbers in one message, as MPI counts in 31 bits.
constexpr vtkIdType MessageSize = vtkIdType{ 1 } << 28;

[[noreturn]] void FailToSend()
{
  throw std::runtime_error("the ranks could not exchange their parts.");
}

template<class Number>
std::vector<char> BytesOf(const std::vector<Number>& numbers)
{
  const char* first = reinterpret_cast<const char*>(numbers.data());
  return { first, first + numbers.size() * sizeof(Number) };
}

/// The numbers in the bytes of all ranks.
template<class Number>
std::vector<Number> Joined(const std::vector<std::vector<char>>& parts)
{
  std::vector<Number> numbers;
  for (const std::vector<char>& bytes : parts)
  {
    const std::size_t before = numbers.size();
    numbers.resize(before + bytes.size() / sizeof(Number));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(numbers.data() + before));
  }
  return numbers;
}

}

RankGroup::RankGroup(vtkInformationVector* outputVector)
{
  using SDDP = vtkStreamingDemandDrivenPipeline;
  auto* controller = vtkMultiProcessController::GetGlobalController();
  vtkInformation* info = outputVector->GetInformationObject(0);
  if (controller != nullptr && controller->GetNumberOfProcesses() > 1 &&
      info->Get(SDDP::UPDATE_NUMBER_OF_PIECES()) == controller->GetNumberOfProcesses() &&
      info->Get(SDDP::UPDATE_PIECE_NUMBER()) == controller->GetLocalProcessId())
  {
    this->Controller = controller;
  }
}

int RankGroup::Count() const
{
  return this->Controller == nullptr ? 1 : this->Controller->GetNumberOfProcesses();
}

int RankGroup::Rank() const
{
  return this->Controller == nullptr ? 0 : this->Controller->GetLocalProcessId();
}

bool RankGroup::Agree(const RankResult& result) const
{
  using Numbers = std::array<vtkTypeInt64, 3>; // length of the error, canceled, input
  const Numbers mine = { static_cast<vtkTypeInt64>(result.error.size()), result.cancelled ? 1 : 0,
    static_cast<vtkTypeInt64>(result.input) };
  std::vector<Numbers> all(static_cast<std::size_t>(this->Count()), mine);
  if (this->Controller != nullptr && this->Controller->AllGather(mine.data(), all.front().data(),
                                       static_cast<vtkIdType>(mine.size())) == 0)
  {
    FailToSend();
  }
  const auto failed =
    std::find_if(all.begin(), all.end(), [](const Numbers& numbers) { return numbers[0] > 0; });
  if (failed != all.end())
  {
    std::string error = result.error;
    error.resize(static_cast<std::size_t>((*failed)[0]));
    if (this->Controller != nullptr)
    {
      this->Controller->Broadcast(
        error.data(), static_cast<vtkIdType>(error.size()), static_cast<int>(failed - all.begin()));
    }
    throw std::runtime_error(error);
  }
  const auto cancelled =
    std::any_of(all.begin(), all.end(), [](const Numbers& numbers) { return numbers[1] != 0; });
  if (cancelled)
  {
    return false;
  }
  const auto other = std::find_if(
    all.begin(), all.end(), [&](const Numbers& numbers) { return numbers[2] != all.front()[2]; });
  if (other != all.end())
  {
    throw std::runtime_error(
      "expected the same model and sequences on every rank, found others on rank " +
      std::to_string(other - all.begin()) + " than on rank 0.");
  }
  return true;
}

template<class Value>
void RankGroup::Send(Value* values, vtkIdType count, int rank) const
{
  for (vtkIdType begin = 0; begin < count; begin += MessageSize)
  {
    if (this->Controller->Broadcast(values + begin, std::min(MessageSize, count - begin), rank) ==
        0)
    {
      FailToSend();
    }
  }
}

void RankGroup::ShareRows(
  const atlas::Recording& recording, const std::vector<atlas::SequenceRange>& ranges) const
{
  if (this->Controller == nullptr)
  {
    return;
  }
  const auto rowOf = [&](std::int64_t sequence)
  { return recording.sequenceOffsets[static_cast<std::size_t>(sequence)]; };
  for (const atlas::SharedMatrix& matrix : atlas::TokenMatrices(recording))
  {
    for (int rank = 0; rank < this->Count(); ++rank)
    {
      const atlas::SequenceRange& range = ranges[static_cast<std::size_t>(rank)];
      const std::int64_t begin = rowOf(range.first);
      this->Send(matrix.Row(begin), (rowOf(range.end) - begin) * matrix.columns, rank);
    }
  }
}

std::vector<std::vector<char>> RankGroup::Share(std::vector<char> mine) const
{
  std::vector<std::vector<char>> all(static_cast<std::size_t>(this->Count()));
  if (this->Controller == nullptr)
  {
    all.front() = std::move(mine);
    return all;
  }
  const vtkTypeInt64 size = static_cast<vtkTypeInt64>(mine.size());
  std::vector<vtkTypeInt64> sizes(all.size());
  if (this->Controller->AllGather(&size, sizes.data(), 1) == 0)
  {
    FailToSend();
  }
  all[static_cast<std::size_t>(this->Rank())] = std::move(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
  {
    all[rank].resize(static_cast<std::size_t>(sizes[rank]));
    this->Send(all[rank].data(), sizes[rank], static_cast<int>(rank));
  }
  return all;
}

bool RankGroup::Any(bool mine) const
{
  const std::vector<vtkTypeInt64> all = this->Gather(std::vector<vtkTypeInt64>{ mine ? 1 : 0 });
  return std::any_of(all.begin(), all.end(), [](vtkTypeInt64 other) { return other != 0; });
}

std::vector<vtkTypeInt64> RankGroup::Gather(const std::vector<vtkTypeInt64>& mine) const
{
  return Joined<vtkTypeInt64>(this->Share(BytesOf(mine)));
}

std::vector<double> RankGroup::Gather(const std::vector<double>& mine) const
{
  return Joined<double>(this->Share(BytesOf(mine)));
}

}
