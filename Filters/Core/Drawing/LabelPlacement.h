#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace atlas
{

/// About how wide a label is, in heights of a line of text: 0.45 for a character, and 0.9 for one
/// of a wide script or an emoji (UAX 11). `label` must be UTF-8.
double LabelWidth(std::string_view label);

/// The numbers 0 ... count - 1 in an order of which every beginning is spread evenly: i-th is the
/// i-th of the reversed bits that is below `count` (van der Corput 1935).
std::vector<std::int64_t> SpreadOrder(std::int64_t count);

/// A rectangle of the screen, in pixels; the right and upper edges are not part of it.
struct LabelBox
{
  int left = 0;
  int bottom = 0;
  int right = 0;
  int top = 0;
};

/// Boxes on a screen that do not overlap: each is placed if there is still room.
class LabelBoxes
{
public:
  LabelBoxes(int width, int height);

  /// Places a box if all of it is on the screen and free. Returns whether it is.
  bool Place(const LabelBox& box);
  /// Takes the part of a box that is on the screen, whatever it overlaps.
  void Block(LabelBox box);

private:
  static constexpr int CellSize = 32;

  int Width;
  int Height;
  int Columns;
  std::vector<std::vector<LabelBox>> Cells; ///< the boxes in each square of the screen

  template<class Visit>
  bool EachCell(const LabelBox& box, const Visit& visit);
};

}
