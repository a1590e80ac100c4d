#include "vtkTokenLabelsRepresentation.h"

#include "Drawing/LabelPlacement.h"
#include "ShownPiece.h"
#include "Text/ScreenText.h"
#include "ViewTexts.h"
#include "vtkDiagramView.h"

#include <vtkDataArray.h>
#include <vtkInformation.h>
#include <vtkMPIMoveData.h>
#include <vtkMath.h>
#include <vtkMatrix4x4.h>
#include <vtkObjectFactory.h>
#include <vtkPVLODActor.h>
#include <vtkPointData.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace
{

/// The distance of a label from its point, and the room around it, in pixels.
constexpr int GapInPixels = 4;
constexpr int Room = 1;

/// The points on the screen that are tried before a rendering goes on without further labels.
constexpr int MaximumTries = 20000;

/// The smallest letters, in points; of the words of a text, all of which are shown.
constexpr int SmallestFont = 6;
constexpr int SmallestWords = 5;
/// The height of letters in that of a line of text.
constexpr double LetterHeight = 0.76;

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

/// A point that can have a label.
struct Candidate
{
  std::array<double, 3> point;
  std::string token;
  Anchor anchor;
  bool isHidden;
  double radius; ///< of the disc whose rightmost point this is
};

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

/// The lower left corner of a label of some size with an anchor at a point, from which it has a
/// gap.
std::array<int, 2> CornerOf(
  Anchor anchor, std::array<int, 2> point, std::array<int, 2> size, std::array<int, 2> gap)
{
  const bool isCentered = anchor == Anchor::Below || anchor == Anchor::Above;
  const bool isInRow = anchor == Anchor::Left || anchor == Anchor::Right;
  const int x = isCentered ? -size[0] / 2 : anchor == Anchor::Left ? -size[0] - gap[0] : gap[0];
  const int y = isInRow ? -size[1] / 2 : anchor == Anchor::Below ? -size[1] - gap[1] : gap[1];
  return { point[0] + x, point[1] + y };
}

/// Adds the points of a dataset that have this Match, in an even order, until there are enough.
void AddCandidates(vtkDataSet* data, bool isMatch, std::vector<Candidate>& candidates)
{
  vtkPointData* arrays = data->GetPointData();
  auto* tokens = vtkStringArray::SafeDownCast(arrays->GetAbstractArray("Token"));
  vtkDataArray* match = arrays->GetArray("Match");
  vtkDataArray* side = arrays->GetArray("Side");
  vtkDataArray* hidden = arrays->GetArray("Hidden");
  vtkDataArray* radius = arrays->GetArray("Radius");
  if (tokens == nullptr || (match == nullptr && isMatch))
  {
    return;
  }
  const std::size_t most = vtkTokenLabelsRepresentation::MaximumCandidates;
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
      candidates.push_back(std::move(candidate));
    }
  }
}

/// The coordinates of points along an axis, numbered from the left or from the top.
using Steps = std::map<double, std::size_t>;
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

/// Whether labels are the words of a text: at the right of their points, anywhere in their rows.
bool AreWords(const std::vector<Candidate>& candidates)
{
  std::vector<const Candidate*> points;
  for (const Candidate& candidate : candidates)
  {
    if (candidate.anchor == Anchor::Right)
    {
      points.push_back(&candidate);
    }
  }
  return StepsAlong(points, 0).size() * StepsAlong(points, 1).size() > points.size();
}

/// A point on the screen: x and y from 0 to 1, and whether it is between the planes of the camera.
struct Spot
{
  double x;
  double y;
  bool isSeen;

  Spot(vtkMatrix4x4* toScreen, const std::array<double, 3>& point)
  {
    std::array<double, 4> at = { point[0], point[1], point[2], 1 };
    toScreen->MultiplyPoint(at.data(), at.data());
    const double w = at[3];
    this->x = at[0] / w;
    this->y = at[1] / w;
    this->isSeen =
      w > 0 && at[0] >= 0 && at[0] <= w && at[1] >= 0 && at[1] <= w && std::abs(at[2]) <= w;
  }
};

}

/// The labels of a view.
struct vtkTokenLabelsRepresentation::Labels
{
  vtkTokenLabelsRepresentation* owner;
  AttentionAtlas::ViewTexts texts;
  std::vector<Candidate> candidates; ///< the most important first
  bool areWords = false;             ///< of a text, one behind another
  vtkMTimeType dataTime = 0;         ///< of the data that these belong to

  /// A label, and its rectangle on the screen.
  struct Placed
  {
    const Candidate* candidate;
    Anchor anchor;
    std::string text;
    int fontSize;
    atlas::LabelBox box;
  };

  explicit Labels(vtkTokenLabelsRepresentation* representation)
    : owner(representation)
  {
  }

  void Read(vtkDataObject* data)
  {
    if (data == nullptr || data->GetMTime() == this->dataTime)
    {
      return;
    }
    this->dataTime = data->GetMTime();
    this->candidates.clear();
    for (const bool isMatch : { true, false })
    {
      for (vtkDataSet* leaf : AttentionAtlas::LeavesOf(data))
      {
        AddCandidates(leaf, isMatch, this->candidates);
      }
    }
    this->areWords = AreWords(this->candidates);
  }

  /// The size of letters that have LabelHeight at a place of the screen.
  int FontSizeAt(const Candidate& candidate, vtkMatrix4x4* toScreen, double placeY) const
  {
    const int largest = this->owner->LabelFontSize;
    if (this->owner->LabelHeight <= 0)
    {
      return largest;
    }
    std::array<double, 3> above = candidate.point;
    above[1] += this->owner->LabelHeight;
    const double pixels = std::abs(Spot(toScreen, above).y - placeY) * this->texts.GetSize()[1] /
                          this->texts.GetTiles()[1];
    const double points = LetterHeight * pixels * this->texts.GetPoint();
    const int smallest = this->areWords ? SmallestWords : SmallestFont;
    return std::clamp(static_cast<int>(points), std::min(smallest, largest), largest);
  }

  /// Where the label of a point would be; its fontSize is 0 if the point is not on the screen.
  Placed PlaceOf(const Candidate& candidate, vtkMatrix4x4* toScreen)
  {
    const Anchor anchor =
      candidate.anchor == Anchor::Around ? Anchor::Right : candidate.anchor; // the first tried
    const Spot place(toScreen, candidate.point);
    if (!place.isSeen)
    {
      return { &candidate, anchor, {}, 0, {} };
    }
    const auto size = this->texts.GetSize();
    const auto tiles = this->texts.GetTiles(); // also the scale of letters
    const int fontSize = this->FontSizeAt(candidate, toScreen, place.y);
    std::string text = atlas::ScreenLabel(candidate.token);
    const auto extent = this->texts.Measure(text, fontSize);
    const int width = extent[0] * tiles[0];
    const int height = extent[1] * tiles[1];
    const auto [x, y] =
      CornerOf(anchor, { static_cast<int>(place.x * size[0]), static_cast<int>(place.y * size[1]) },
        { width, height }, { GapInPixels * tiles[0], GapInPixels * tiles[1] });
    const bool isInRow = anchor == Anchor::Left || anchor == Anchor::Right;
    const int above = isInRow ? 0 : Room; // rows have their own
    return { &candidate, anchor, std::move(text), fontSize,
      { x - Room, y - above, x + width + Room, y + height + above } };
  }

  /// The rectangle on the screen of a disc with a label, without the corners that it leaves free.
  atlas::LabelBox DiscOf(const Candidate& candidate, vtkMatrix4x4* toScreen) const
  {
    constexpr double Share = 0.85;
    const auto size = this->texts.GetSize();
    const auto pixelOf = [&](double dx, double dy) -> std::array<int, 2>
    {
      const Spot place(
        toScreen, { candidate.point[0] + candidate.radius * (dx - 1),
                    candidate.point[1] + candidate.radius * dy, candidate.point[2] });
      return { static_cast<int>(std::clamp(place.x, -1., 2.) * size[0]),
        static_cast<int>(std::clamp(place.y, -1., 2.) * size[1]) };
    };
    const auto [left, bottom] = pixelOf(-Share, -Share);
    const auto [right, top] = pixelOf(Share, Share);
    return { left, bottom, right, top };
  }

  /// Places the label of a disc where there is room: right, left, above, below, or at a corner.
  bool PlaceAround(Placed& label, const atlas::LabelBox& disc, atlas::LabelBoxes& boxes) const
  {
    const int width = label.box.right - label.box.left;
    const int height = label.box.top - label.box.bottom;
    const int gap = GapInPixels * this->texts.GetTiles()[0];
    const int middleX = (disc.left + disc.right - width) / 2;
    const int middleY = (disc.bottom + disc.top - height) / 2;
    const std::array<std::array<int, 2>, 8> corners = { { { disc.right + gap, middleY },
      { disc.left - width - gap, middleY }, { middleX, disc.top + gap },
      { middleX, disc.bottom - height - gap }, { disc.right, disc.top },
      { disc.right, disc.bottom - height }, { disc.left - width, disc.top },
      { disc.left - width, disc.bottom - height } } };
    return std::any_of(corners.begin(), corners.end(),
      [&](const std::array<int, 2>& corner)
      {
        label.box = { corner[0], corner[1], corner[0] + width, corner[1] + height };
        return boxes.Place(label.box);
      });
  }

  void Show(const Placed& label)
  {
    using Texts = AttentionAtlas::ViewTexts;
    const atlas::LabelBox& box = label.box;
    const Anchor anchor = label.anchor;
    const bool isInRow = anchor == Anchor::Left || anchor == Anchor::Right;
    const bool isCentered = anchor == Anchor::Above || anchor == Anchor::Below;
    const double x = isCentered               ? (box.left + box.right) / 2.
                     : anchor == Anchor::Left ? box.right - Room
                                              : box.left + Room;
    this->texts.Show(label.text,
      { label.fontSize,
        isCentered               ? Texts::Along::Middle
        : anchor == Anchor::Left ? Texts::Along::Right
                                 : Texts::Along::Left,
        isInRow ? Texts::Across::Middle : Texts::Across::Bottom, false, label.candidate->isHidden },
      { x, isInRow ? (box.bottom + box.top) / 2. : 1. * box.bottom + Room });
  }

  /// Before each rendering.
  void Place()
  {
    if (!this->owner->GetVisibility())
    {
      return;
    }
    const auto toScreen = this->texts.ToScreen(this->owner->Actor->GetMatrix());
    const auto size = this->texts.GetSize();
    atlas::LabelBoxes boxes(size[0], size[1]);
    for (const Candidate& candidate : this->candidates)
    {
      if (candidate.anchor == Anchor::Around)
      {
        boxes.Block(this->DiscOf(candidate, toScreen));
      }
    }
    int tries = 0;
    int shown = 0;
    for (const Candidate* candidate : this->Thinned(toScreen))
    {
      if (shown >= this->owner->MaximumLabels || tries >= MaximumTries)
      {
        return;
      }
      Placed label = this->PlaceOf(*candidate, toScreen);
      if (label.fontSize == 0)
      {
        continue;
      }
      ++tries;
      if (candidate->anchor == Anchor::Around
            ? this->PlaceAround(label, this->DiscOf(*candidate, toScreen), boxes)
            : boxes.Place(label.box))
      {
        this->Show(label);
        ++shown;
      }
    }
  }

  /// The points whose labels are placed: all, but of the titles of panels and of points in one row
  /// or column, every so many that they do not overlap.
  std::vector<const Candidate*> Thinned(vtkMatrix4x4* toScreen)
  {
    std::map<Anchor, std::vector<const Candidate*>> sides;
    for (const Candidate& candidate : this->candidates)
    {
      sides[candidate.anchor].push_back(&candidate);
    }
    std::vector<const Candidate*> all;
    for (auto& [anchor, points] : sides)
    {
      std::array<Steps, 2> steps = { StepsAlong(points, 0), StepsAlong(points, 1) };
      const std::size_t cells = steps[0].size() * steps[1].size();
      const bool isLine = steps[0].size() == 1 || steps[1].size() == 1;
      if ((isLine || (anchor == Anchor::UpperRight && cells <= points.size())) &&
          anchor != Anchor::Free && anchor != Anchor::Around && points.size() <= MaximumTries)
      {
        for (const std::size_t axis : { 0, 1 })
        {
          const std::size_t every = this->EveryAlong(points, axis, steps.at(axis), toScreen);
          const auto isLeftOut = [&](const Candidate* point)
          { return steps.at(axis)[point->point.at(axis)] % every != 0; };
          points.erase(std::remove_if(points.begin(), points.end(), isLeftOut), points.end());
        }
      }
      all.insert(all.end(), points.begin(), points.end());
    }
    return all;
  }

  /// The least number n so that the labels of every n-th step of an axis do not overlap.
  std::size_t EveryAlong(const std::vector<const Candidate*>& points, std::size_t axis,
    const Steps& steps, vtkMatrix4x4* toScreen)
  {
    std::map<double, std::map<std::size_t, std::array<int, 2>>> lines; // ends by step
    for (const Candidate* point : points)
    {
      const Placed label = this->PlaceOf(*point, toScreen);
      if (label.fontSize > 0)
      {
        lines[point->point.at(1 - axis)][steps.at(point->point.at(axis))] =
          axis == 0 ? std::array<int, 2>{ label.box.left, label.box.right + GapInPixels }
                    : std::array<int, 2>{ -label.box.top, -label.box.bottom };
      }
    }
    const auto overlap = [&lines](std::size_t every)
    {
      return std::any_of(lines.begin(), lines.end(),
        [every](const auto& line)
        {
          int end = std::numeric_limits<int>::min();
          bool isOver = false;
          for (const auto& [step, ends] : line.second)
          {
            const bool isKept = step % every == 0;
            isOver = isOver || (isKept && ends[0] < end);
            end = isKept ? ends[1] : end;
          }
          return isOver;
        });
    };
    std::size_t every = 1;
    while (every < steps.size() && overlap(every))
    {
      ++every;
    }
    return every;
  }
};

vtkStandardNewMacro(vtkTokenLabelsRepresentation);

vtkTokenLabelsRepresentation::vtkTokenLabelsRepresentation()
  : Shown(std::make_unique<Labels>(this))
{
}

vtkTokenLabelsRepresentation::~vtkTokenLabelsRepresentation()
{
  this->Shown->texts.Leave();
}

void vtkTokenLabelsRepresentation::SetMaximumLabels(int count)
{
  this->MaximumLabels = std::max(count, 0);
}

void vtkTokenLabelsRepresentation::SetLabelFontSize(int size)
{
  this->LabelFontSize = std::max(size, 1);
}

void vtkTokenLabelsRepresentation::SetLabelHeight(double height)
{
  if (this->LabelHeight != std::max(height, 0.))
  {
    this->LabelHeight = std::max(height, 0.);
    this->MarkModified(); // the bounds change
  }
}

void vtkTokenLabelsRepresentation::SetFontFile(const char* file)
{
  const std::string name = file != nullptr ? file : "";
  if (name == this->FontFile)
  {
    return;
  }
  this->FontFile = name;
  if (!this->Shown->texts.SetFontFile(name))
  {
    vtkErrorMacro(<< "FontFile: expected a TrueType or OpenType font, found '" << name
                  << "', which is none.");
  }
}

void vtkTokenLabelsRepresentation::SetVisibility(bool visible)
{
  this->Superclass::SetVisibility(visible);
  if (!visible)
  {
    this->Shown->texts.Hide();
  }
}

int vtkTokenLabelsRepresentation::ProcessViewRequest(
  vtkInformationRequestKey* request, vtkInformation* input, vtkInformation* output)
{
  if (this->Superclass::ProcessViewRequest(request, input, output) == 0)
  {
    return 0;
  }
  if (request == vtkPVView::REQUEST_UPDATE())
  {
    vtkPVRenderView::SetForceDataDistributionMode(input, vtkMPIMoveData::COLLECT);
    this->UpdateBounds(input);
  }
  if (request == vtkPVView::REQUEST_RENDER())
  {
    // Points of labels that name something else would be specks.
    this->Actor->SetVisibility(this->GetVisibility() && this->Property->GetPointSize() > 1);
    this->Shown->Read(AttentionAtlas::ShownPiece(input, this));
    this->WarnOfMissingFonts();
  }
  return 1;
}

/// Makes room for labels that have a height in the scene.
void vtkTokenLabelsRepresentation::UpdateBounds(vtkInformation* input)
{
  if (this->LabelHeight <= 0 || !vtkMath::AreBoundsInitialized(this->VisibleDataBounds))
  {
    return;
  }
  std::array<double, 2> widths = { 0, 0 }; // to the left, to the right
  bool areWords = false;
  for (vtkDataSet* leaf : AttentionAtlas::LeavesOf(this->GetRenderedDataObject(0)))
  {
    std::vector<Candidate> candidates;
    AddCandidates(leaf, false, candidates);
    areWords = areWords || AreWords(candidates);
    for (const Candidate& candidate : candidates)
    {
      double& width = widths.at(candidate.anchor == Anchor::Left ? 0 : 1);
      const std::string text =
        this->Shown->texts.GetFonts().Choose(atlas::ScreenLabel(candidate.token)).text;
      width = std::max(width, atlas::LabelWidth(text));
    }
  }
  std::array<double, 6> bounds;
  std::copy_n(this->VisibleDataBounds, bounds.size(), bounds.begin());
  bounds[0] -= this->LabelHeight * widths[0];
  bounds[1] += this->LabelHeight * widths[1];
  bounds[2] -= this->LabelHeight;
  bounds[3] += this->LabelHeight;
  auto* diagram = vtkDiagramView::SafeDownCast(this->GetView());
  if (diagram != nullptr && areWords)
  {
    diagram->LimitScale(this->LabelFontSize / LetterHeight / this->LabelHeight);
  }
  AttentionAtlas::AddViewBounds(this->GetRenderedDataObject(0), bounds);
  vtkPVRenderView::SetGeometryBounds(input, this, bounds.data(), this->Actor->GetMatrix());
}

/// Names the packages of fonts that were missing in the last rendering, each once.
void vtkTokenLabelsRepresentation::WarnOfMissingFonts()
{
  for (const std::string& package : this->Shown->texts.GetFonts().MissingPackages())
  {
    if (this->NamedPackages.insert(package).second)
    {
      vtkWarningMacro(<< "No font has some letters of the tokens, which are shown as \\u{...}. "
                         "Install one, such as Debian's package "
                      << package << ", or choose a FontFile.");
    }
  }
}

bool vtkTokenLabelsRepresentation::AddToView(vtkView* view)
{
  if (!this->Superclass::AddToView(view))
  {
    return false;
  }
  this->Shown->texts.Enter(vtkPVRenderView::SafeDownCast(view), [this] { this->Shown->Place(); });
  return true;
}

bool vtkTokenLabelsRepresentation::RemoveFromView(vtkView* view)
{
  this->Shown->texts.Leave();
  return this->Superclass::RemoveFromView(view);
}
