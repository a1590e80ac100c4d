#include "LabelCandidates.h"

#include "Drawing/LabelPlacement.h"
#include "Text/ScreenText.h"

#include <vtkDataArray.h>
#include <vtkDataSet.h>
#include <vtkPointData.h>
#include <vtkStringArray.h>

#include <algorithm>
#include <utility>

namespace AttentionAtlas
{
namespace
{

/// Whether a point has a number other than 0 in an array, which may be missing.
bool IsSet(vtkDataArray* array, vtkIdType point)
{
  return array != nullptr && array->GetComponent(point, 0) != 0;
}

/// Where the label of a point is by its Side: 0 left, 1 right, 4 below, 5 above, 6 around; 2 or any
/// other: to the upper right. Without a Side: free.
Anchor AnchorOf(vtkDataArray* side, vtkIdType point)
{
  constexpr std::array<Anchor, 7> anchors = { Anchor::Left, Anchor::Right, Anchor::UpperRight,
    Anchor::UpperRight, Anchor::Below, Anchor::Above, Anchor::Around };
  if (side == nullptr)
  {
    return Anchor::Free;
  }
  const double value = side->GetComponent(point, 0);
  return value >= 0 && value < anchors.size() ? anchors.at(static_cast<std::size_t>(value))
                                              : Anchor::UpperRight;
}

}

std::array<int, 2> CornerOf(
  Anchor anchor, std::array<int, 2> point, std::array<int, 2> size, std::array<int, 2> gap)
{
  const bool isCentered = anchor == Anchor::Below || anchor == Anchor::Above;
  const bool isInRow = anchor == Anchor::Left || anchor == Anchor::Right;
  const int x = isCentered ? -size[0] / 2 : anchor == Anchor::Left ? -size[0] - gap[0] : gap[0];
  const int y = isInRow ? -size[1] / 2 : anchor == Anchor::Below ? -size[1] - gap[1] : gap[1];
  return { point[0] + x, point[1] + y };
}

void AddCandidates(
  vtkDataSet* data, bool isMatch, std::size_t most, std::vector<Candidate>& candidates)
{
  vtkPointData* arrays = data->GetPointData();
  auto* tokens = vtkStringArray::SafeDownCast(arrays->GetAbstractArray("Token"));
  vtkDataArray* match = arrays->GetArray("Match");
  vtkDataArray* side = arrays->GetArray("Side");
  vtkDataArray* hidden = arrays->GetArray("Hidden");
  vtkDataArray* radius = arrays->GetArray("Radius");
  vtkDataArray* marks = arrays->GetArray("MarkColor");
  vtkDataArray* kind = arrays->GetArray("Kind");
  if (tokens == nullptr || (match == nullptr && isMatch))
  {
    return;
  }
  const bool isMarked = kind != nullptr && marks != nullptr && marks->GetNumberOfComponents() == 3;
  for (const std::int64_t i : atlas::SpreadOrder(data->GetNumberOfPoints()))
  {
    if (candidates.size() >= most)
    {
      return;
    }
    if (match == nullptr || IsSet(match, i) == isMatch)
    {
      Candidate candidate;
      data->GetPoint(i, candidate.point.data());
      candidate.token = tokens->GetValue(i);
      candidate.anchor = AnchorOf(side, i);
      candidate.isHidden = IsSet(hidden, i);
      candidate.radius = radius != nullptr ? radius->GetComponent(i, 0) : 0;
      candidate.number = i;
      if (isMarked && kind->GetComponent(i, 0) >= 0)
      {
        Rgb& back = candidate.back.emplace();
        marks->GetTuple(i, back.data());
        std::for_each(back.begin(), back.end(), [](double& channel) { channel /= 255; });
      }
      candidates.push_back(std::move(candidate));
    }
  }
}

Steps StepsAlong(const std::vector<const Candidate*>& points, std::size_t axis)
{
  Steps steps;
  for (const Candidate* point : points)
  {
    steps[point->point.at(axis)] = 0;
  }
  std::size_t before = 0;
  for (auto& step : steps)
  {
    step.second = axis == 0 ? before : steps.size() - 1 - before;
    ++before;
  }
  return steps;
}

void FindRepeated(std::vector<Candidate>& candidates)
{
  std::map<double, std::vector<Candidate*>> rows;
  for (Candidate& candidate : candidates)
  {
    if (candidate.anchor == Anchor::UpperRight)
    {
      rows[candidate.point[1]].push_back(&candidate);
    }
  }
  for (const auto& [place, row] : rows)
  {
    const Candidate* first = *std::min_element(row.begin(), row.end(),
      [](const Candidate* a, const Candidate* b) { return a->point[0] < b->point[0]; });
    const std::size_t word = first->token.find(' ') + 1;
    const bool isRepeated = std::all_of(row.begin(), row.end(),
      [&](const Candidate* title)
      {
        return title->token.size() > word &&
               title->token.compare(0, word, first->token, 0, word) == 0;
      });
    for (Candidate* title : row)
    {
      title->said = isRepeated ? word : 0;
      title->isFirst = title == first;
    }
  }
}

bool AreRows(const std::vector<Candidate>& candidates)
{
  return std::any_of(candidates.begin(), candidates.end(), [](const Candidate& candidate)
    { return candidate.back.has_value() && candidate.anchor != Anchor::Free; });
}

bool AreColumns(const std::vector<Candidate>& candidates)
{
  const auto count = [&](Anchor anchor)
  {
    return std::count_if(candidates.begin(), candidates.end(),
      [anchor](const Candidate& candidate) { return candidate.anchor == anchor; });
  };
  const auto queries = count(Anchor::Left);
  const auto keys = count(Anchor::Right);
  return queries > 0 && keys > 0 && static_cast<std::size_t>(queries + keys) == candidates.size();
}

std::vector<Row> RowsOf(const std::vector<Candidate>& candidates)
{
  std::map<double, Row> byPlace;
  for (const Candidate& candidate : candidates)
  {
    byPlace[-candidate.point[1]].push_back(&candidate);
  }
  std::vector<Row> rows;
  rows.reserve(byPlace.size());
  for (auto& [place, row] : byPlace)
  {
    std::sort(row.begin(), row.end(),
      [](const Candidate* a, const Candidate* b) { return a->number < b->number; });
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<double> FittedWidths(
  const std::vector<double>& widths, const std::vector<bool>& isMarked, double room)
{
  std::vector<double> fitted(widths.size(), 0);
  for (const bool ofMarked : { true, false })
  {
    std::vector<std::size_t> rising;
    for (std::size_t i = 0; i < widths.size(); ++i)
    {
      if (isMarked[i] == ofMarked)
      {
        rising.push_back(i);
      }
    }
    std::sort(rising.begin(), rising.end(),
      [&widths](std::size_t a, std::size_t b) { return widths[a] < widths[b]; });
    for (std::size_t n = 0; n < rising.size(); ++n)
    {
      double& width = fitted[rising[n]];
      width = std::min(widths[rising[n]], room / static_cast<double>(rising.size() - n));
      room -= width;
    }
  }
  return fitted;
}

std::array<double, 2> ReachOf(const Candidate& candidate, LabelFonts& fonts)
{
  const double width = atlas::LabelWidth(fonts.Choose(atlas::ScreenLabel(candidate.token)).text);
  const Anchor anchor = candidate.anchor;
  return anchor == Anchor::Left ? std::array<double, 2>{ width, 0 }
         : anchor == Anchor::Below || anchor == Anchor::Above
           ? std::array<double, 2>{ width / 2, width / 2 }
           : std::array<double, 2>{ 0, width };
}

std::array<double, 2> WidthsOf(const std::vector<Candidate>& candidates, LabelFonts& fonts)
{
  std::array<double, 2> widths = { 0, 0 };
  for (const Candidate& candidate : candidates)
  {
    const auto [left, right] = ReachOf(candidate, fonts);
    widths = { std::max(widths[0], left), std::max(widths[1], right) };
  }
  return widths;
}

}
