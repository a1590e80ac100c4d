#include "RankGroup.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiProcessController.h>
#include <vtkOutputWindow.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <cstdlib>
#include <new>
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

/// A rank was canceled.
struct Cancelled : std::runtime_error
{
  Cancelled()
    : std::runtime_error("the user has canceled.")
  {
  }
};

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

/// What this rank knows of a task.
struct RankGroup::Task
{
  vtkTypeInt64 exchanges = 0;
  bool isOver = false; ///< no rank does another exchange
  bool isCancelled = false;
  bool isReported = false;
  std::string error;
};

RankGroup::RankGroup(vtkInformationVector* outputVector)
  : State(std::make_shared<Task>())
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

RankGroup::RankGroup(const RankGroup& other)
  : Controller(other.Controller)
  , State(other.State)
  , IsCopy(true)
{
}

RankGroup::~RankGroup()
{
  if (this->IsCopy)
  {
    return;
  }
  try
  {
    if (this->State->exchanges > 0 && !this->State->isOver)
    {
      this->Meet(Exchange::End, {}, 0);
    }
  }
  catch (const std::exception&)
  {
    this->State->isOver = true; // reported below
  }
  if (this->Rank() == 0 && !this->State->error.empty() && !this->State->isReported)
  {
    vtkOutputWindowDisplayErrorText(("ERROR: " + this->State->error + "\n").c_str());
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

/// Fails or cancels as the environment variable for tests says.
void RankGroup::RunTest() const
{
  const char* wanted = std::getenv("ATLAS_TEST_FAILURE");
  const std::string place =
    std::to_string(this->Rank()) + ":" + std::to_string(this->State->exchanges) + ":";
  if (wanted == nullptr || std::string(wanted).compare(0, place.size(), place) != 0)
  {
    return;
  }
  const std::string kind = std::string(wanted).substr(place.size());
  if (kind == "memory")
  {
    throw std::bad_alloc();
  }
  if (kind == "cancel")
  {
    this->State->isCancelled = true;
    throw Cancelled();
  }
  throw std::runtime_error("a failure for a test.");
}

/// Throws the error of a rank on all ranks.
void RankGroup::FailTogether(int rank, std::string error, std::size_t length) const
{
  error.resize(length);
  if (this->Controller != nullptr)
  {
    this->Controller->Broadcast(error.data(), static_cast<vtkIdType>(length), rank);
  }
  this->State->isOver = true;
  this->State->isCancelled = false;
  this->State->error = error;
  throw std::runtime_error(error);
}

/// The beginning of an exchange. Throws on all ranks if one has failed or does another exchange,
/// and, but for an agreement of all, if one was canceled.
std::vector<RankGroup::Header> RankGroup::Meet(
  Exchange exchange, const RankResult& result, std::size_t bytes) const
{
  Task& task = *this->State;
  if (task.isOver)
  {
    if (task.isCancelled)
    {
      throw Cancelled();
    }
    throw std::runtime_error(task.error);
  }
  if (exchange != Exchange::End)
  {
    this->RunTest();
  }
  const bool isCancelled = result.cancelled || task.isCancelled;
  const std::string error = isCancelled ? std::string() : result.error;
  const Header mine = { static_cast<vtkTypeInt64>(exchange), task.exchanges++,
    static_cast<vtkTypeInt64>(error.size()), isCancelled ? 1 : 0,
    static_cast<vtkTypeInt64>(result.input), static_cast<vtkTypeInt64>(bytes) };
  std::vector<Header> all(static_cast<std::size_t>(this->Count()), mine);
  if (this->Controller != nullptr && this->Controller->AllGather(mine.data(), all.front().data(),
                                       static_cast<vtkIdType>(mine.size())) == 0)
  {
    FailToSend();
  }
  const auto failed =
    std::find_if(all.begin(), all.end(), [](const Header& header) { return header[2] > 0; });
  if (failed != all.end())
  {
    this->FailTogether(
      static_cast<int>(failed - all.begin()), error, static_cast<std::size_t>((*failed)[2]));
  }
  const auto isOther = [&](const Header& header)
  { return header[0] != all.front()[0] || header[1] != all.front()[1]; };
  const auto other = std::find_if(all.begin(), all.end(), isOther);
  const bool isOneExchange = other == all.end();
  const bool anyCancelled =
    std::any_of(all.begin(), all.end(), [](const Header& header) { return header[3] != 0; });
  task.isCancelled = anyCancelled;
  task.isOver = !isOneExchange || exchange == Exchange::End ||
                (anyCancelled && exchange != Exchange::Agreement);
  if (anyCancelled && exchange != Exchange::Agreement)
  {
    throw Cancelled();
  }
  if (!isOneExchange && !anyCancelled)
  {
    task.error = "the ranks do different things: rank " + std::to_string(other - all.begin()) +
                 " is at another exchange than rank 0.";
    throw std::runtime_error(task.error);
  }
  task.isCancelled = anyCancelled && task.isOver;
  return all;
}

bool RankGroup::Agree(const RankResult& result) const
{
  if (this->State->isOver && this->State->isCancelled)
  {
    return false;
  }
  const std::vector<Header> all = this->Meet(Exchange::Agreement, result, 0);
  if (std::any_of(all.begin(), all.end(), [](const Header& header) { return header[3] != 0; }))
  {
    return false;
  }
  const auto other = std::find_if(
    all.begin(), all.end(), [&](const Header& header) { return header[4] != all.front()[4]; });
  if (other != all.end())
  {
    this->State->isOver = true; // on all ranks
    this->State->error =
      "expected the same model and sequences on every rank, found others on rank " +
      std::to_string(other - all.begin()) + " than on rank 0.";
    throw std::runtime_error(this->State->error);
  }
  return true;
}

void RankGroup::Require(const RankResult& result) const
{
  if (!this->Agree(result))
  {
    this->State->isCancelled = true;
    throw Cancelled();
  }
}

bool RankGroup::Leave(const std::exception& error) const
{
  Task& task = *this->State;
  try
  {
    RankResult result;
    result.error = error.what();
    if (!task.isOver)
    {
      this->Meet(Exchange::End, result, 0);
    }
  }
  catch (const std::exception&)
  {
    task.isOver = true; // the ranks know now
  }
  task.isReported = true;
  return task.isCancelled;
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
  this->Meet(Exchange::Rows, {}, 0);
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
  const std::vector<Header> headers = this->Meet(Exchange::Bytes, {}, mine.size());
  std::vector<std::vector<char>> all(headers.size());
  all[static_cast<std::size_t>(this->Rank())] = std::move(mine);
  for (std::size_t rank = 0; rank < all.size() && this->Controller != nullptr; ++rank)
  {
    all[rank].resize(static_cast<std::size_t>(headers[rank][5]));
    this->Send(all[rank].data(), headers[rank][5], static_cast<int>(rank));
  }
  return all;
}

bool RankGroup::Any(bool mine) const
{
  try
  {
    const std::vector<vtkTypeInt64> all = this->Gather(std::vector<vtkTypeInt64>{ mine ? 1 : 0 });
    return std::any_of(all.begin(), all.end(), [](vtkTypeInt64 other) { return other != 0; });
  }
  catch (const std::exception& e)
  {
    this->Leave(e);
    this->State->isReported = false;
    return true;
  }
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
