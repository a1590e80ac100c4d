#include "StridedCopy.h"

#include <cstring>

namespace atlas
{
namespace
{

/// Copies `count` elements that are `step` bytes apart.
template<std::size_t Bytes>
void CopyStrided(const std::byte* from, std::uint64_t step, std::uint64_t count, std::byte* to)
{
  for (std::uint64_t i = 0; i < count; ++i)
  {
    std::memcpy(to + i * Bytes, from + i * step, Bytes);
  }
}

void CopyRow(
  std::size_t bytes, const std::byte* from, std::uint64_t step, std::uint64_t count, std::byte* to)
{
  switch (bytes)
  {
    case 1:
      return CopyStrided<1>(from, step, count, to);
    case 2:
      return CopyStrided<2>(from, step, count, to);
    case 4:
      return CopyStrided<4>(from, step, count, to);
    default:
      return CopyStrided<8>(from, step, count, to);
  }
}

/// An axis of a tensor, or several that are one step apart throughout.
struct MergedAxis
{
  std::uint64_t count = 0;
  std::uint64_t step = 0; ///< in bytes
  std::uint64_t index = 0;
};

/// The axes of more than one element, as few as possible; at least one.
std::vector<MergedAxis> MergeAxes(const Shape& shape, const Shape& stride, std::size_t bytes)
{
  std::vector<MergedAxis> axes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
  {
    const auto count = static_cast<std::uint64_t>(shape[axis]);
    const std::uint64_t step = static_cast<std::uint64_t>(stride[axis]) * bytes;
    if (!axes.empty() && axes.back().step == step * count)
    {
      axes.back() = { axes.back().count * count, step };
    }
    else if (count > 1) // the stride of another may be any
    {
      axes.push_back({ count, step });
    }
  }
  return axes.empty() ? std::vector<MergedAxis>{ { 1, bytes } } : axes;
}

}

std::vector<std::byte> PackedCopy(
  const std::byte* data, const Shape& shape, const Shape& stride, std::size_t bytes)
{
  const std::uint64_t count = ElementCount(shape).value_or(0);
  std::vector<std::byte> copy(count * bytes);
  std::vector<MergedAxis> outer = MergeAxes(shape, stride, bytes);
  const MergedAxis columns = outer.back();
  outer.pop_back();
  const std::byte* row = data;
  for (std::uint64_t done = 0; done < count; done += columns.count)
  {
    CopyRow(bytes, row, columns.step, columns.count, copy.data() + done * bytes);
    for (auto axis = outer.rbegin(); axis != outer.rend(); ++axis)
    {
      row += axis->step;
      if (++axis->index < axis->count)
      {
        break;
      }
      row -= axis->step * axis->count;
      axis->index = 0;
    }
  }
  return copy;
}

}
