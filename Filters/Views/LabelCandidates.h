#pragma once

#include "LabelFonts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

class vtkDataSet;

/// The points of a dataset that can have labels.
namespace AttentionAtlas
{

/// Where a label is.
enum class Anchor
{
  Free, ///< to the upper right of points that may be anywhere
  Left,
  Right,
  UpperRight,
  Below,
  Above,
  Around ///< where there is room around a disc
};

using Rgb = std::array<double, 3>;

/// A point that can have a label.
struct Candidate
{
  std::array<double, 3> point;
  std::string token;
  Anchor anchor;
  bool isHidden;
  double radius; ///< of the disc whose rightmost point this is
  std::int64_t number;
  std::optional<Rgb> back; ///< the color behind a marked word of a row, or a free one
  std::size_t said = 0;    ///< the bytes at its beginning that all titles in its row have
  bool isFirst = false;    ///< of these
};

/// The lower left corner of a label of some size with an anchor at a point, from which it has a
/// gap.
std::array<int, 2> CornerOf(
  Anchor anchor, std::array<int, 2> point, std::array<int, 2> size, std::array<int, 2> gap);

/// Adds the points of a dataset that have this Match, in an even order, until there are so many.
void AddCandidates(
  vtkDataSet* data, bool isMatch, std::size_t most, std::vector<Candidate>& candidates);

/// The coordinates of points along an axis, numbered from the left or from the top.
using Steps = std::map<double, std::size_t>;
Steps StepsAlong(const std::vector<const Candidate*>& points, std::size_t axis);

/// Notes what all titles of panels in a row begin with, up to a space: the first one says it for
/// all, at its left, where there is little room.
void FindRepeated(std::vector<Candidate>& candidates);

/// Whether labels are texts one below another, of which some words are marked.
bool AreRows(const std::vector<Candidate>& candidates);

/// Whether labels are words in columns, queries at the left of their points and keys at the right.
bool AreColumns(const std::vector<Candidate>& candidates);

/// The pieces of each text, from the highest on, as they follow each other.
using Row = std::vector<const Candidate*>;
std::vector<Row> RowsOf(const std::vector<Candidate>& candidates);

/// The widths of parts of a line so that they fit, those that are marked first; the others share
/// what is left, so that what is short is whole.
std::vector<double> FittedWidths(
  const std::vector<double>& widths, const std::vector<bool>& isMarked, double room);

/// How far the label of a point is to its left and to its right, in heights of a line.
std::array<double, 2> ReachOf(const Candidate& candidate, LabelFonts& fonts);

/// The width of the widest label to the left of its point, and of the widest to the right.
std::array<double, 2> WidthsOf(const std::vector<Candidate>& candidates, LabelFonts& fonts);

}
