#include "Padding.h"

#include "ForeignNames.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// The mask, with one number per row.
std::vector<double> ReadMask(RecordingArrays& arrays, const std::vector<std::int64_t>& offsets)
{
  const char* name = ForeignNames::PaddingMask;
  const std::int64_t rows = offsets.back();
  const auto sequences = static_cast<std::int64_t>(offsets.size()) - 1;
  std::int64_t s = 0;
  const bool isEven = std::all_of(offsets.begin(), offsets.end(),
    [&](std::int64_t first) { return first * sequences == s++ * rows; });
  const bool hasAxis = arrays.Find(name)->shape.size() != 1;
  const Shape shape =
    hasAxis && isEven && sequences > 0 ? Shape{ sequences, rows / sequences } : Shape{ rows };
  std::vector<double> mask = arrays.Load(name, shape).view.ToDouble();
  const auto other =
    std::find_if(mask.begin(), mask.end(), [](double value) { return value != 0 && value != 1; });
  if (other != mask.end())
  {
    arrays.Fail(name, "expected 1 at tokens and 0 at padding, found ", *other, ".");
  }
  return mask;
}

}

std::vector<RowRange> ReadPadding(RecordingArrays& arrays, const std::vector<std::int64_t>& offsets)
{
  std::vector<RowRange> tokens;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
  {
    tokens.push_back({ offsets[s], offsets[s + 1] });
  }
  if (!arrays.Has(ForeignNames::PaddingMask))
  {
    return tokens;
  }
  const std::vector<double> mask = ReadMask(arrays, offsets);
  for (std::size_t s = 0; s < tokens.size(); ++s)
  {
    auto& [first, end] = tokens[s];
    const std::string sequence = "sequence " + std::to_string(s);
    while (first < end && mask[first] == 0)
    {
      ++first;
    }
    while (first < end && mask[end - 1] == 0)
    {
      --end;
    }
    arrays.FailIf(first == end && offsets[s] < offsets[s + 1], ForeignNames::PaddingMask, sequence,
      ": expected tokens, found padding alone.");
    const auto hole = std::find(mask.begin() + first, mask.begin() + end, 0);
    if (hole != mask.begin() + end)
    {
      arrays.Fail(ForeignNames::PaddingMask, sequence,
        ": expected padding at its ends alone, found some between tokens, at ",
        hole - mask.begin() - offsets[s], ".");
    }
  }
  return tokens;
}

}
