#include "vtkTokenLabelsRepresentation.h"

#include "Base/TextEnds.h"
#include "Drawing/LabelPlacement.h"
#include "LabelCandidates.h"
#include "ShownPiece.h"
#include "Text/ScreenText.h"
#include "ViewTexts.h"
#include "vtkDiagramView.h"

#include <vtkDataSet.h>
#include <vtkInformation.h>
#include <vtkMPIMoveData.h>
#include <vtkMath.h>
#include <vtkMatrix4x4.h>
#include <vtkObjectFactory.h>
#include <vtkPVLODActor.h>
#include <vtkSmartPointer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace AttentionAtlas;

namespace
{

/// The distance of a label from its point, and the room around it, in pixels.
constexpr int GapInPixels = 4;
constexpr int Room = 1;

/// The points on the screen that are tried before a rendering goes on without further labels.
constexpr int MaximumTries = 20000;

/// The smallest letters, in points.
constexpr int SmallestFont = 9;
/// The least width of a word that is cut, in sizes of letters; it may then lie over what is beside
/// it.
constexpr double LeastLetters = 4;
/// The height of letters in that of a line of text.
constexpr double LetterHeight = 0.76;

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
  ViewTexts texts;
  std::vector<Candidate> candidates;       ///< the most important first
  std::vector<Row> rows;                   ///< if they are texts one below another
  bool areColumns = false;                 ///< of words, if they have a LabelHeight
  std::size_t everyWord = 1;               ///< every so many of these have labels
  bool areShort = false;                   ///< the titles of panels, but for the first of a row
  std::array<double, 2> widths = { 0, 0 }; ///< that columns have to the left and the right
  vtkMTimeType dataTime = 0;               ///< of the data that these belong to

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
      for (vtkDataSet* leaf : LeavesOf(data))
      {
        AddCandidates(leaf, isMatch, MaximumCandidates, this->candidates);
      }
    }
    FindRepeated(this->candidates);
    this->rows = AreRows(this->candidates) ? RowsOf(this->candidates) : std::vector<Row>();
    this->areColumns = this->rows.empty() && AreColumns(this->candidates);
    this->widths = WidthsOf(this->candidates, this->texts.GetFonts());
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
    return std::clamp(static_cast<int>(points), std::min(SmallestFont, largest), largest);
  }

  bool AreFittedColumns() const { return this->areColumns && this->owner->LabelHeight > 0; }

  /// The text of a label; in a column no wider than the room that it has there.
  std::string TextOf(const Candidate& candidate, vtkMatrix4x4* toScreen, int fontSize)
  {
    std::string text = atlas::ScreenLabel(this->areShort && !candidate.isFirst
                                            ? candidate.token.substr(candidate.said)
                                            : candidate.token);
    if (!this->AreFittedColumns())
    {
      return text;
    }
    std::array<double, 3> end = candidate.point;
    const double width = this->widths.at(candidate.anchor == Anchor::Left ? 0 : 1);
    end[0] += this->owner->LabelHeight * (width + 1); // with the space before what is beside it
    const double room = (Spot(toScreen, end).x - Spot(toScreen, candidate.point).x) *
                          this->texts.GetSize()[0] / this->texts.GetTiles()[0] -
                        GapInPixels;
    return this->texts.Cut(text, fontSize, std::max(room, LeastLetters * fontSize));
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
    std::string text = this->TextOf(candidate, toScreen, fontSize);
    const auto extent = this->texts.Measure(text, fontSize);
    const int width = extent[0] * tiles[0];
    const int height = extent[1] * tiles[1];
    const auto [x, y] =
      CornerOf(anchor, { static_cast<int>(place.x * size[0]), static_cast<int>(place.y * size[1]) },
        { width, height }, { GapInPixels * tiles[0], GapInPixels * tiles[1] });
    const bool isInRow = anchor == Anchor::Left || anchor == Anchor::Right;
    const int above = isInRow ? 0 : Room; // rows have their own
    const int before =
      !this->areShort || !candidate.isFirst
        ? 0
        : tiles[0] * (extent[0] -
                       this->texts.Measure(
                         atlas::ScreenLabel(candidate.token.substr(candidate.said)), fontSize)[0]);
    return { &candidate, anchor, std::move(text), fontSize,
      { x - before - Room, y - above, x - before + width + Room, y + height + above } };
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

  /// Places the label of a disc where there is room, also around the label: right, left, above,
  /// below, or at a corner, and not left of or below `all`.
  bool PlaceAround(Placed& label, const atlas::LabelBox& disc, const atlas::LabelBox& all,
    atlas::LabelBoxes& boxes) const
  {
    const int width = label.box.right - label.box.left;
    const int height = label.box.top - label.box.bottom;
    const int gap = GapInPixels * this->texts.GetTiles()[0];
    const int middleX = (disc.left + disc.right - width) / 2;
    const int middleY = (disc.bottom + disc.top - height) / 2;
    const std::array<std::array<int, 2>, 8> corners = { { { disc.right + gap, middleY },
      { disc.left - width - gap, middleY }, { middleX, disc.top + gap },
      { middleX, disc.bottom - height - gap }, { disc.right + gap, disc.top },
      { disc.right + gap, disc.bottom - height }, { disc.left - width - gap, disc.top },
      { disc.left - width - gap, disc.bottom - height } } };
    return std::any_of(corners.begin(), corners.end(),
      [&](const std::array<int, 2>& corner)
      {
        label.box = { corner[0], corner[1], corner[0] + width, corner[1] + height };
        return corner[0] >= all.left && corner[1] >= all.bottom - height / 2 &&
               boxes.Place({ corner[0] - gap, corner[1], corner[0] + width + gap, label.box.top });
      });
  }

  void Show(const Placed& label)
  {
    using Texts = ViewTexts;
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
        isInRow ? Texts::Across::Middle : Texts::Across::Bottom, false, label.candidate->isHidden,
        label.candidate->back },
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
    const bool hasAxes = std::any_of(this->candidates.begin(), this->candidates.end(),
      [](const Candidate& candidate) { return candidate.anchor != Anchor::Around; });
    // Axes have their texts at the left of all discs and below.
    atlas::LabelBox discs =
      hasAxes ? atlas::LabelBox{ size[0], size[1], 0, 0 } : atlas::LabelBox{ 0, 0, 0, 0 };
    for (const Candidate& candidate : this->candidates)
    {
      if (candidate.anchor == Anchor::Around)
      {
        const atlas::LabelBox disc = this->DiscOf(candidate, toScreen);
        boxes.Block(disc);
        discs = { std::min(discs.left, disc.left), std::min(discs.bottom, disc.bottom),
          std::max(discs.right, disc.right), std::max(discs.top, disc.top) };
      }
    }
    if (!this->rows.empty())
    {
      this->PlaceRows(toScreen);
      return;
    }
    int tries = 0;
    int shown = 0;
    const std::vector<const Candidate*> thinned = this->Thinned(toScreen);
    auto* diagram = vtkDiagramView::SafeDownCast(this->owner->GetView());
    if (this->everyWord > 1 && diagram != nullptr && diagram->GetMargins())
    {
      this->texts.ShowNote("Room for one word in " + std::to_string(this->everyWord));
    }
    for (const Candidate* candidate : thinned)
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
            ? this->PlaceAround(label, this->DiscOf(*candidate, toScreen), discs, boxes)
            : boxes.Place(label.box))
      {
        this->Show(label);
        ++shown;
      }
    }
  }

  /// The width of the widest first piece of a row, behind which the others begin, and those of all
  /// others together, in pixels.
  std::pair<double, double> WidestOf(const std::vector<Row>& all, int fontSize)
  {
    const auto widthOf = [&](const Candidate* piece) -> double
    { return this->texts.Measure(atlas::ScreenLabel(piece->token), fontSize)[0]; };
    double first = 0;
    double others = 0;
    for (const Row& row : all)
    {
      double width = 0;
      for (std::size_t i = 1; i < row.size(); ++i)
      {
        width += widthOf(row[i]) + 1;
      }
      first = std::max(first, widthOf(row[0]) + fontSize);
      others = std::max(others, width);
    }
    return { first, others };
  }

  /// Places the texts of rows, each piece right behind the one before. Where there is no room for
  /// all of a text, what is farthest from its marked words is cut; rows for which there is no room
  /// are counted in a note.
  void PlaceRows(vtkMatrix4x4* toScreen)
  {
    const auto size = this->texts.GetSize();
    const auto tiles = this->texts.GetTiles();
    const double pixel = tiles[0] / this->texts.GetPoint(); // of a point
    auto* diagram = vtkDiagramView::SafeDownCast(this->owner->GetView());
    const auto margins = diagram != nullptr ? diagram->GetMargins() : std::nullopt;
    const double right = size[0] - (margins ? margins->right : GapInPixels) * pixel;
    const double bottom = margins ? margins->bottom * pixel : 0;
    const Candidate& corner = *this->rows[0][0];
    const int fontSize = this->FontSizeAt(corner, toScreen, Spot(toScreen, corner.point).y);
    const double column = this->WidestOf(this->rows, fontSize).first * tiles[0];
    std::size_t seen = 0;
    for (const Row& row : this->rows)
    {
      const Spot place(toScreen, row[0]->point);
      const double y = place.y * size[1];
      if (y - fontSize * pixel / 2 < bottom || y > size[1])
      {
        continue;
      }
      ++seen;
      const double x = place.x * size[0];
      this->ShowPiece(*row[0], atlas::ScreenLabel(row[0]->token), fontSize, { x, y });
      this->PlaceTexts(row, fontSize, { x + column, y }, right);
    }
    if (margins && seen < this->rows.size())
    {
      this->texts.ShowNote(
        "Room for " + std::to_string(seen) + " of " + std::to_string(this->rows.size()) + " texts");
    }
  }

  /// Places the pieces of a text behind its number.
  void PlaceTexts(const Row& row, int fontSize, std::array<double, 2> at, double right)
  {
    const double tile = this->texts.GetTiles()[0];
    std::vector<std::string> pieces;
    std::vector<double> whole;
    std::vector<bool> isMarked;
    for (std::size_t i = 1; i < row.size(); ++i)
    {
      pieces.push_back(atlas::ScreenLabel(row[i]->token));
      whole.push_back(this->texts.Measure(pieces.back(), fontSize)[0]);
      isMarked.push_back(row[i]->back.has_value());
    }
    const double room = (right - at[0]) / tile - static_cast<double>(pieces.size());
    const std::vector<double> fitted = FittedWidths(whole, isMarked, room);
    bool isAfterCut = false;
    for (std::size_t i = 0; i < pieces.size(); ++i)
    {
      const bool isBeforeCut = i + 1 == pieces.size() || atlas::EndsWith(pieces[i], Ellipsis);
      const KeptPart kept = isMarked[i] || (isBeforeCut && i > 0) ? KeptPart::Begin
                            : i == 0 || isAfterCut                ? KeptPart::End
                                                                  : KeptPart::Both;
      std::string text = this->texts.Cut(pieces[i], fontSize, fitted[i], kept);
      if (isAfterCut && text != pieces[i] && kept == KeptPart::End)
      {
        text.erase(0, std::string(Ellipsis).size()); // one is there
      }
      isAfterCut = atlas::EndsWith(text, Ellipsis);
      this->ShowPiece(*row[i + 1], text, fontSize, at);
      at[0] += (this->texts.Measure(text, fontSize)[0] + 1) * tile;
    }
  }

  void ShowPiece(
    const Candidate& piece, const std::string& text, int fontSize, const std::array<double, 2>& at)
  {
    using Texts = ViewTexts;
    this->texts.Show(text,
      { fontSize, Texts::Along::Left, Texts::Across::Middle, false, piece.isHidden, piece.back },
      at);
  }

  /// The points whose labels are placed: all, but of the titles of panels, of points in one row or
  /// column and of columns of words, every so many that they do not overlap.
  std::vector<const Candidate*> Thinned(vtkMatrix4x4* toScreen)
  {
    std::map<Anchor, std::vector<const Candidate*>> sides;
    for (const Candidate& candidate : this->candidates)
    {
      sides[candidate.anchor].push_back(&candidate);
    }
    std::vector<const Candidate*> all;
    this->everyWord = 1;
    this->areShort = false;
    for (auto& [anchor, points] : sides)
    {
      std::array<Steps, 2> steps = { StepsAlong(points, 0), StepsAlong(points, 1) };
      const std::size_t cells = steps[0].size() * steps[1].size();
      const bool isLine = steps[0].size() == 1 || steps[1].size() == 1 || this->AreFittedColumns();
      if ((isLine || (anchor == Anchor::UpperRight && cells <= points.size())) &&
          anchor != Anchor::Free && anchor != Anchor::Around && points.size() <= MaximumTries)
      {
        for (const std::size_t axis : { 0, 1 })
        {
          const bool isFitted = this->AreFittedColumns();
          std::size_t every =
            isFitted && axis == 0 ? 1 : this->EveryAlong(points, axis, steps.at(axis), toScreen);
          if (every > 1 && axis == 0 && points.front()->said > 0)
          {
            this->areShort = true;
            every = this->EveryAlong(points, axis, steps.at(axis), toScreen);
          }
          this->everyWord = isFitted ? std::max(this->everyWord, every) : 1;
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
    this->Shown->Read(ShownPiece(input, this));
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
  std::vector<Candidate> candidates;
  for (vtkDataSet* leaf : LeavesOf(this->GetRenderedDataObject(0)))
  {
    AddCandidates(leaf, false, MaximumCandidates, candidates);
  }
  ViewTexts& texts = this->Shown->texts;
  std::array<double, 6> bounds;
  std::copy_n(this->VisibleDataBounds, bounds.size(), bounds.begin());
  for (const Candidate& candidate : candidates)
  {
    const auto [left, right] = ReachOf(candidate, texts.GetFonts());
    bounds[0] = std::min(bounds[0], candidate.point[0] - this->LabelHeight * left);
    bounds[1] = std::max(bounds[1], candidate.point[0] + this->LabelHeight * right);
  }
  bounds[2] -= this->LabelHeight;
  bounds[3] += this->LabelHeight;
  auto* diagram = vtkDiagramView::SafeDownCast(this->GetView());
  if (diagram != nullptr && AreRows(candidates))
  {
    const double perPoint = 1 / LetterHeight / this->LabelHeight;
    const auto [first, others] = this->Shown->WidestOf(RowsOf(candidates), this->LabelFontSize);
    bounds[0] = this->VisibleDataBounds[0];
    bounds[1] = bounds[0] + (first + others) * texts.GetPoint() / (this->LabelFontSize * perPoint);
    const double size = this->LabelFontSize;
    diagram->LimitScale(std::min<double>(SmallestFont, size) * perPoint, size * perPoint);
  }
  AddViewBounds(this->GetRenderedDataObject(0), bounds);
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
