#include "LabelPlacement.h"

#include "Base/Utf8Text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace atlas
{
namespace
{

bool Overlap(const LabelBox& a, const LabelBox& b)
{
  return a.left < b.right && b.left < a.right && a.bottom < b.top && b.bottom < a.top;
}

}

double LabelWidth(std::string_view label)
{
  // Blocks of characters that are as wide as high: Hangul, Han, kana, full-width forms and emoji.
  constexpr std::array<std::pair<char32_t, char32_t>, 8> wide = { { { 0x1100, 0x115F },
    { 0x2E80, 0xA4CF }, { 0xA960, 0xA97C }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF },
    { 0xFE30, 0xFE6F }, { 0xFF00, 0xFFE6 }, { 0x1F300, 0x3FFFD } } };
  double width = 0;
  for (std::size_t position = 0; position < label.size();)
  {
    const char32_t c = NextCharacter(label, position);
    const bool isWide = std::any_of(wide.begin(), wide.end(),
      [c](const auto& block) { return c >= block.first && c <= block.second; });
    width += isWide ? 0.9 : 0.45;
  }
  return width;
}

std::vector<std::int64_t> SpreadOrder(std::int64_t count)
{
  int bits = 0;
  while ((std::int64_t{ 1 } << bits) < count)
  {
    ++bits;
  }
  std::vector<std::int64_t> order;
  order.reserve(count);
  for (std::int64_t i = 0; i < std::int64_t{ 1 } << bits; ++i)
  {
    std::int64_t reversed = 0;
    for (int b = 0; b < bits; ++b)
    {
      reversed |= (i >> b & 1) << (bits - 1 - b);
    }
    if (reversed < count)
    {
      order.push_back(reversed);
    }
  }
  return order;
}

LabelBoxes::LabelBoxes(int width, int height)
  : Width(width)
  , Height(height)
  , Columns(width / CellSize + 1)
  , Cells(static_cast<std::size_t>(this->Columns) * static_cast<std::size_t>(height / CellSize + 1))
{
}

/// Calls visit(boxes) for each cell that a box touches, until one returns false.
template<class Visit>
bool LabelBoxes::EachCell(const LabelBox& box, const Visit& visit)
{
  for (int y = box.bottom / CellSize; y <= (box.top - 1) / CellSize; ++y)
  {
    for (int x = box.left / CellSize; x <= (box.right - 1) / CellSize; ++x)
    {
      const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(this->Columns);
      if (!visit(this->Cells[row + static_cast<std::size_t>(x)]))
      {
        return false;
      }
    }
  }
  return true;
}

bool LabelBoxes::Place(const LabelBox& box)
{
  if (box.left < 0 || box.bottom < 0 || box.right > this->Width || box.top > this->Height ||
      box.left >= box.right || box.bottom >= box.top)
  {
    return false;
  }
  const bool isFree = this->EachCell(box,
    [&box](const std::vector<LabelBox>& placed)
    {
      return std::none_of(placed.begin(), placed.end(),
        [&box](const LabelBox& other) { return Overlap(box, other); });
    });
  if (isFree)
  {
    this->Block(box);
  }
  return isFree;
}

void LabelBoxes::Block(LabelBox box)
{
  box = { std::max(box.left, 0), std::max(box.bottom, 0), std::min(box.right, this->Width),
    std::min(box.top, this->Height) };
  if (box.left < box.right && box.bottom < box.top)
  {
    this->EachCell(box,
      [&box](std::vector<LabelBox>& placed)
      {
        placed.push_back(box);
        return true;
      });
  }
}

}
