#include "RankGroup.h"

#include "Base/Progress.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiProcessController.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <cstddef>
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

}

RankGroup::RankGroup(vtkMultiProcessController* controller, vtkInformationVector* outputVector)
{
  using SDDP = vtkStreamingDemandDrivenPipeline;
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

/// Fails or cancels as the environment variable for tests says.
void RankGroup::RunTest() const
{
  const char* wanted = std::getenv("ATLAS_TEST_FAILURE");
  const std::string place =
    std::to_string(this->Rank()) + ":" + std::to_string(this->Exchanges) + ":";
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
    throw atlas::Canceled();
  }
  throw std::runtime_error("a failure for a test.");
}

/// Ends the task on this rank as on all others.
void RankGroup::EndWith(const End& end) const
{
  this->Over = end;
  if (end.isCanceled)
  {
    throw atlas::Canceled();
  }
  throw std::runtime_error(end.error.value_or("the task of all ranks is over."));
}

/// The beginning of an exchange.
std::vector<RankGroup::Header> RankGroup::Meet(
  Exchange exchange, vtkTypeInt64 number, std::size_t bytes) const
{
  if (this->Over)
  {
    this->EndWith(*this->Over);
  }
  if (exchange != Exchange::End)
  {
    this->RunTest();
  }
  return this->Exchanged({ static_cast<vtkTypeInt64>(exchange), this->Exchanges, 0, 0, number,
                           static_cast<vtkTypeInt64>(bytes) },
    std::nullopt);
}

/// The headers of all ranks. Throws on all of them unless all do the same exchange.
std::vector<RankGroup::Header> RankGroup::Exchanged(
  const Header& mine, const std::optional<std::string>& error) const
{
  ++this->Exchanges;
  std::vector<Header> all(this->Count(), mine);
  if (this->Controller != nullptr && this->Controller->AllGather(mine.data(), all.front().data(),
                                       static_cast<vtkIdType>(mine.size())) == 0)
  {
    FailToSend();
  }
  const auto find = [&all](const auto& holds)
  { return std::find_if(all.begin(), all.end(), holds) - all.begin(); };
  const std::int64_t count = all.size();
  const std::ptrdiff_t failed = find([](const Header& header) { return header[2] > 0; });
  if (failed < count)
  {
    std::string text = error.value_or("");
    text.resize(all[failed][2]);
    if (this->Controller != nullptr)
    {
      this->Controller->Broadcast(
        text.data(), static_cast<vtkIdType>(text.size()), static_cast<int>(failed));
    }
    this->EndWith({ text, false });
  }
  if (find([](const Header& header) { return header[3] != 0; }) < count)
  {
    this->EndWith({ std::nullopt, true });
  }
  const std::ptrdiff_t other = find([&](const Header& header)
    { return header[0] != all.front()[0] || header[1] != all.front()[1]; });
  if (other < count)
  {
    this->EndWith({ "the ranks do different things: rank " + std::to_string(other) +
                      " is at another exchange than rank 0.",
      false });
  }
  return all;
}

bool RankGroup::Any(bool mine) const
{
  const std::vector<Header> all = this->Meet(Exchange::Agreement, mine ? 1 : 0);
  return std::any_of(all.begin(), all.end(), [](const Header& header) { return header[4] != 0; });
}

void RankGroup::RequireSame(std::size_t hash) const
{
  const std::vector<Header> all = this->Meet(Exchange::Agreement, static_cast<vtkTypeInt64>(hash));
  const auto other = std::find_if(
    all.begin(), all.end(), [&](const Header& header) { return header[4] != all.front()[4]; });
  if (other != all.end())
  {
    this->EndWith({ "expected the same model and sequences on every rank, found others on rank " +
                      std::to_string(other - all.begin()) + " than on rank 0.",
      false });
  }
}

void RankGroup::Finish() const
{
  if (this->Exchanges > 0 && !this->Over)
  {
    this->Meet(Exchange::End);
    this->Over = End();
  }
}

std::optional<std::string> RankGroup::Leave(const std::optional<std::string>& error) const
{
  try
  {
    if (!this->Over)
    {
      const std::size_t length = error ? std::max(error->size(), std::size_t{ 1 }) : 0;
      this->Exchanged({ static_cast<vtkTypeInt64>(Exchange::End), this->Exchanges,
                        static_cast<vtkTypeInt64>(length), error ? 0 : 1, 0, 0 },
        error);
    }
  }
  catch (const std::exception& e)
  {
    if (!this->Over) // nothing could be sent
    {
      return e.what();
    }
  }
  return this->Over ? this->Over->error : error;
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
  this->Meet(Exchange::Rows);
  if (this->Controller == nullptr)
  {
    return;
  }
  for (const atlas::Recording* part : atlas::WithParts(recording))
  {
    const auto rowOf = [&](std::int64_t sequence) { return part->sequenceOffsets[sequence]; };
    for (const atlas::SharedMatrix& matrix : atlas::TokenMatrices(*part))
    {
      for (int rank = 0; rank < this->Count(); ++rank)
      {
        const atlas::SequenceRange& range = ranges[rank];
        const std::int64_t begin = rowOf(range.first);
        this->Send(matrix.Row(begin), (rowOf(range.end) - begin) * matrix.columns, rank);
      }
    }
  }
}

std::vector<std::vector<char>> RankGroup::Share(std::vector<char> mine) const
{
  const std::vector<Header> headers = this->Meet(Exchange::Bytes, 0, mine.size());
  std::vector<std::vector<char>> all(headers.size());
  all[this->Rank()] = std::move(mine);
  for (std::size_t rank = 0; rank < all.size() && this->Controller != nullptr; ++rank)
  {
    all[rank].resize(headers[rank][5]);
    this->Send(all[rank].data(), headers[rank][5], static_cast<int>(rank));
  }
  return all;
}

}
