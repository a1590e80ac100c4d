#include "PackedSequences.h"

#include "Base/Error.h"
#include "Base/Index.h"

#include <algorithm>
#include <numeric>

namespace atlas
{
namespace
{

/// The most rows of sequences that share matrix products; a longer sequence runs alone.
constexpr std::int64_t GroupRows = 1024;

SequenceRange RangeToRun(const std::optional<SequenceRange>& given, std::int64_t count)
{
  const SequenceRange range = given.value_or(SequenceRange{ 0, count });
  ThrowIf<OptionError>(range.first < 0 || range.end < range.first || range.end > count,
    "expected a range of the ", count, " sequences, found ", range.first, " to ", range.end, ".");
  return range;
}

RowGroup MakeGroup(std::int64_t begin, const std::vector<std::int64_t>& lengths)
{
  RowGroup group;
  group.begin = begin;
  group.offsets = SequenceOffsets(lengths);
  group.end = begin + group.offsets.back();
  for (const std::int64_t length : lengths)
  {
    const auto first = group.positions.insert(group.positions.end(), ToIndex(length), 0);
    std::iota(first, group.positions.end(), std::int64_t{ 0 });
    group.lengths.insert(group.lengths.end(), ToIndex(length), length);
  }
  return group;
}

}

PackedSequences::PackedSequences(
  const std::vector<std::int64_t>& lengths, const std::optional<SequenceRange>& range)
  : PackedSequences(lengths, range, std::vector<std::int64_t>(lengths.size(), 0))
{
}

PackedSequences::PackedSequences(const std::vector<std::int64_t>& lengths,
  const std::optional<SequenceRange>& range, const std::vector<std::int64_t>& sources)
  : offsets(SequenceOffsets(lengths))
  , run(RangeToRun(range, lengths.size()))
{
  std::int64_t s = this->run.first;
  while (s < this->run.end)
  {
    const std::int64_t begin = this->offsets[s];
    std::int64_t sourceRows = 0;
    std::vector<std::int64_t> together;
    do
    {
      together.push_back(lengths[s]);
      sourceRows += sources[s];
      ++s;
    } while (s < this->run.end && this->offsets[s + 1] - begin <= GroupRows &&
             sourceRows + sources[s] <= GroupRows);
    this->groups.push_back(MakeGroup(begin, together));
  }
}

PackedSequences PackedSequences::Sources(const std::vector<std::int64_t>& lengths) const
{
  PackedSequences sources(lengths, SequenceRange{ 0, 0 }); // groups are made here
  sources.run = this->run;
  auto first = lengths.begin() + this->run.first;
  for (const RowGroup& group : this->groups)
  {
    const auto end = first + static_cast<std::ptrdiff_t>(group.offsets.size()) - 1;
    const std::int64_t begin = sources.offsets[first - lengths.begin()];
    sources.groups.push_back(MakeGroup(begin, { first, end }));
    first = end;
  }
  return sources;
}

PackedSequences PackedSequences::Continue(std::int64_t past, std::int64_t rows)
{
  PackedSequences sequences({ rows }, std::nullopt);
  sequences.past = past;
  for (RowGroup& group : sequences.groups)
  {
    group.past = past;
    std::iota(group.positions.begin(), group.positions.end(), past);
    std::fill(group.lengths.begin(), group.lengths.end(), past + rows);
  }
  return sequences;
}

void PackedSequences::SetPlaces(const std::vector<RotaryPlace>& places)
{
  for (RowGroup& group : this->groups)
  {
    group.places.assign(places.begin() + group.begin, places.begin() + group.end);
  }
}

void PackedSequences::SetKeyEnds(const std::vector<std::int32_t>& ends)
{
  for (RowGroup& group : this->groups)
  {
    group.keyEnds.assign(ends.begin() + group.begin, ends.begin() + group.end);
  }
}

std::int64_t PackedSequences::SequenceAt(std::int64_t row) const
{
  const auto next = std::upper_bound(this->offsets.begin(), this->offsets.end(), row);
  return std::distance(this->offsets.begin(), next) - 1;
}

std::int64_t PackedSequences::Longest() const
{
  std::int64_t longest = 0;
  for (std::int64_t s = this->run.first; s < this->run.end; ++s)
  {
    longest = std::max(longest, this->Length(s));
  }
  return longest;
}

std::int64_t PackedSequences::LongestOfAll() const
{
  std::int64_t longest = 0;
  for (std::int64_t s = 0; s + 1 < static_cast<std::int64_t>(this->offsets.size()); ++s)
  {
    longest = std::max(longest, this->Length(s));
  }
  return longest;
}

std::int64_t PackedSequences::LargestGroup() const
{
  std::int64_t rows = 0;
  for (const RowGroup& group : this->groups)
  {
    rows = std::max(rows, group.Rows());
  }
  return rows;
}

}
