#include "vtkTokenLabelsRepresentation.h"

#include "Ink.h"
#include "LabelFonts.h"
#include "LabelPlacement.h"
#include "ScreenText.h"
#include "ShownPiece.h"

#include <vtkCamera.h>
#include <vtkCommand.h>
#include <vtkCoordinate.h>
#include <vtkDataArray.h>
#include <vtkInformation.h>
#include <vtkMPIMoveData.h>
#include <vtkMath.h>
#include <vtkMatrix4x4.h>
#include <vtkMultiProcessController.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPVLODActor.h>
#include <vtkPointData.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkSmartPointer.h>
#include <vtkStringArray.h>
#include <vtkTextActor.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>
#include <vtkWeakPointer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace
{

/// The distance of a label from its point, and the room around it, in pixels.
constexpr int GapInPixels = 4;
constexpr int Room = 1;

/// The points on the screen that are tried before a rendering goes on without further labels.
constexpr int MaximumTries = 20000;

/// The smallest letters that are read, in points.
constexpr int SmallestFont = 5;
/// The height of letters in that of a line of text.
constexpr double LetterHeight = 0.76;

/// Where a label is.
enum class Anchor
{
  Left,
  Right,
  UpperRight,
  Below,
  Above
};

/// A point that can have a label.
struct Candidate
{
  std::array<double, 3> point;
  std::string token;
  Anchor anchor;
  bool isHidden;
};

/// Whether a point has a number other than 0 in an array, which may be missing.
bool IsSet(vtkDataArray* array, vtkIdType point)
{
  return array != nullptr && array->GetComponent(point, 0) != 0;
}

/// Where the label of a point is by its Side: 0 left, 1 right, 4 below, 5 above; 2 or any other: to
/// the upper right.
Anchor AnchorOf(vtkDataArray* side, vtkIdType point)
{
  constexpr std::array<Anchor, 6> anchors = { Anchor::Left, Anchor::Right, Anchor::UpperRight,
    Anchor::UpperRight, Anchor::Below, Anchor::Above };
  const double value = side != nullptr ? side->GetComponent(point, 0) : -1;
  return value >= 0 && value < anchors.size() ? anchors.at(static_cast<std::size_t>(value))
                                              : Anchor::UpperRight;
}

/// The lower left corner of a label of some size with an anchor at a point, from which it has a
/// gap.
std::array<int, 2> CornerOf(
  Anchor anchor, std::array<int, 2> point, std::array<int, 2> size, std::array<int, 2> gap)
{
  switch (anchor)
  {
    case Anchor::Left:
      return { point[0] - size[0] - gap[0], point[1] - size[1] / 2 };
    case Anchor::Right:
      return { point[0] + gap[0], point[1] - size[1] / 2 };
    case Anchor::Below:
      return { point[0] - size[0] / 2, point[1] - size[1] - gap[1] };
    case Anchor::Above:
      return { point[0] - size[0] / 2, point[1] + gap[1] };
    case Anchor::UpperRight:
      break;
  }
  return { point[0] + gap[0], point[1] + gap[1] };
}

/// Adds the points of a dataset that have this Match, in an even order, until there are enough.
void AddCandidates(vtkDataSet* data, bool isMatch, std::vector<Candidate>& candidates)
{
  auto* tokens = vtkStringArray::SafeDownCast(data->GetPointData()->GetAbstractArray("Token"));
  vtkDataArray* match = data->GetPointData()->GetArray("Match");
  vtkDataArray* side = data->GetPointData()->GetArray("Side");
  vtkDataArray* hidden = data->GetPointData()->GetArray("Hidden");
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
      candidates.push_back(std::move(candidate));
    }
  }
}

/// Whether a point is between the planes of the camera, with x and y from 0 to 1.
bool IsOnScreen(const std::array<double, 4>& place)
{
  const double w = place[3];
  return w > 0 && place[0] >= 0 && place[0] <= w && place[1] >= 0 && place[1] <= w &&
         std::abs(place[2]) <= w;
}

}

/// The labels of a view.
struct vtkTokenLabelsRepresentation::Labels
{
  vtkTokenLabelsRepresentation* owner;
  vtkWeakPointer<vtkRenderer> renderer;           ///< of what lies over the scene
  vtkWeakPointer<vtkRenderer> backgroundRenderer; ///< of the scene
  unsigned long observer = 0;
  std::vector<Candidate> candidates; ///< the most important first
  vtkMTimeType dataTime = 0;         ///< of the data that these belong to
  std::vector<vtkSmartPointer<vtkTextActor>> actors;
  std::size_t used = 0; ///< of the actors
  std::array<double, 3> ink = { 0, 0, 0 };
  std::array<double, 3> faint = { 0.5, 0.5, 0.5 }; ///< of hidden tokens
  AttentionAtlas::LabelFonts fonts;

  /// How a token is written.
  struct Written
  {
    AttentionAtlas::DrawnText drawn;
    std::array<int, 2> extent = { 0, 0 }; ///< width and height in pixels
    int fontSize = 0;                     ///< for which that is
  };
  std::unordered_map<std::string, Written> written; ///< by token
  int dpi = 0;                                      ///< for which the extents are

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
  }

  static void SetStyle(vtkTextProperty* style, const std::string& font, int fontSize)
  {
    style->SetVerticalJustificationToBottom();
    style->SetFontSize(fontSize);
    if (font.empty())
    {
      style->SetFontFamilyToArial();
    }
    else
    {
      style->SetFontFile(font.c_str());
      style->SetFontFamily(VTK_FONT_FILE);
    }
  }

  const Written& WrittenOf(const std::string& token, int fontSize)
  {
    const auto [entry, isNew] = this->written.try_emplace(token);
    Written& text = entry->second;
    if (isNew)
    {
      text.drawn = this->fonts.Choose(atlas::ScreenLabel(token));
    }
    if (text.fontSize != fontSize)
    {
      text.fontSize = fontSize;
      vtkNew<vtkTextProperty> style;
      SetStyle(style, text.drawn.font, fontSize);
      std::array<int, 4> box = { 0, -1, 0, -1 };
      vtkTextRenderer::GetInstance()->GetBoundingBox(style, text.drawn.text, box.data(), this->dpi);
      text.extent = { box[1] - box[0] + 1, box[3] - box[2] + 1 };
    }
    return text;
  }

  /// Shows a text with its lower left corner at a place of the screen.
  void Show(const Written& text, bool isHidden, int x, int y)
  {
    if (this->used == this->actors.size())
    {
      const auto actor = vtkSmartPointer<vtkTextActor>::New();
      actor->GetPositionCoordinate()->SetCoordinateSystemToViewport();
      actor->PickableOff();
      this->renderer->AddActor(actor);
      this->actors.push_back(actor);
    }
    vtkTextActor* actor = this->actors[this->used++];
    SetStyle(actor->GetTextProperty(), text.drawn.font, text.fontSize);
    actor->GetTextProperty()->SetColor(isHidden ? this->faint.data() : this->ink.data());
    actor->SetInput(text.drawn.text.c_str());
    actor->SetPosition(x, y);
    actor->VisibilityOn();
  }

  void HideFrom(std::size_t first)
  {
    this->used = std::min(this->used, first);
    for (std::size_t i = first; i < this->actors.size(); ++i)
    {
      this->actors[i]->VisibilityOff();
    }
  }

  /// Before each rendering. A larger picture is rendered tile by tile, all with the labels of the
  /// first, at the lower left.
  void Place()
  {
    if (this->renderer == nullptr || this->renderer->GetRenderWindow()->GetTileViewport()[0] > 0 ||
        this->renderer->GetRenderWindow()->GetTileViewport()[1] > 0)
    {
      return;
    }
    this->used = 0;
    if (this->owner->GetVisibility() && this->backgroundRenderer != nullptr)
    {
      this->ChooseInk();
      this->PlaceOnScreen();
    }
    this->HideFrom(this->used);
  }

  void ChooseInk()
  {
    std::array<double, 3> back;
    this->backgroundRenderer->GetBackground(back.data());
    const double gray = AttentionAtlas::InkOn(back.data());
    this->ink.fill(gray);
    this->faint.fill(gray == 0 ? 0.6 : 0.65);
  }

  /// From the scene to the screen, x and y from 0 to 1. The camera is that of a tile.
  vtkSmartPointer<vtkMatrix4x4> ToScreen() const
  {
    auto matrix = vtkSmartPointer<vtkMatrix4x4>::New();
    matrix->DeepCopy(this->renderer->GetActiveCamera()->GetCompositeProjectionTransformMatrix(
      this->renderer->GetTiledAspectRatio(), -1, 1));
    vtkMatrix4x4::Multiply4x4(matrix, this->owner->Actor->GetMatrix(), matrix);
    const double* tile = this->renderer->GetRenderWindow()->GetTileViewport();
    vtkNew<vtkMatrix4x4> place;
    for (int axis : { 0, 1 })
    {
      const double half = (tile[axis + 2] - tile[axis]) / 2;
      place->SetElement(axis, axis, half);
      place->SetElement(axis, 3, tile[axis] + half);
    }
    vtkMatrix4x4::Multiply4x4(place, matrix, matrix);
    return matrix;
  }

  /// The size of letters that have LabelHeight at a place of the screen.
  int FontSizeAt(const Candidate& candidate, vtkMatrix4x4* toScreen, double placeY) const
  {
    const int largest = this->owner->LabelFontSize;
    if (this->owner->LabelHeight <= 0)
    {
      return largest;
    }
    std::array<double, 4> above = { candidate.point[0],
      candidate.point[1] + this->owner->LabelHeight, candidate.point[2], 1 };
    toScreen->MultiplyPoint(above.data(), above.data());
    const double pixels = std::abs(above[1] / above[3] - placeY) * this->renderer->GetSize()[1] /
                          this->renderer->GetRenderWindow()->GetTileScale()[1];
    constexpr double pointsPerInch = 72;
    const double points = LetterHeight * pixels * pointsPerInch / this->dpi;
    return std::clamp(static_cast<int>(points), std::min(SmallestFont, largest), largest);
  }

  void PlaceOnScreen()
  {
    const int* size = this->renderer->GetSize();
    const int* scale = this->renderer->GetRenderWindow()->GetTileScale(); // also that of letters
    if (this->dpi != this->renderer->GetRenderWindow()->GetDPI())
    {
      this->dpi = this->renderer->GetRenderWindow()->GetDPI();
      this->written.clear();
    }
    const auto toScreen = this->ToScreen();
    atlas::LabelBoxes boxes(size[0], size[1]);
    int tries = 0;
    for (const Candidate& candidate : this->candidates)
    {
      if (this->used >= static_cast<std::size_t>(this->owner->MaximumLabels) ||
          tries >= MaximumTries)
      {
        return;
      }
      std::array<double, 4> place = { candidate.point[0], candidate.point[1], candidate.point[2],
        1 };
      toScreen->MultiplyPoint(place.data(), place.data());
      if (!IsOnScreen(place))
      {
        continue;
      }
      ++tries;
      const Written& text = this->WrittenOf(
        candidate.token, this->FontSizeAt(candidate, toScreen, place[1] / place[3]));
      const int width = text.extent[0] * scale[0];
      const int height = text.extent[1] * scale[1];
      const auto [x, y] = CornerOf(candidate.anchor,
        { static_cast<int>(place[0] / place[3] * size[0]),
          static_cast<int>(place[1] / place[3] * size[1]) },
        { width, height }, { GapInPixels * scale[0], GapInPixels * scale[1] });
      const bool isInRow = candidate.anchor == Anchor::Left || candidate.anchor == Anchor::Right;
      const int above = isInRow ? 0 : Room; // rows have their own
      if (boxes.Place({ x - Room, y - above, x + width + Room, y + height + above }))
      {
        this->Show(text, candidate.isHidden, x, y);
      }
    }
  }

  void Leave()
  {
    if (this->renderer != nullptr)
    {
      this->renderer->RemoveObserver(this->observer);
      for (const auto& actor : this->actors)
      {
        this->renderer->RemoveActor(actor);
      }
    }
    this->actors.clear();
    this->used = 0;
    this->renderer = nullptr;
  }
};

vtkStandardNewMacro(vtkTokenLabelsRepresentation);

vtkTokenLabelsRepresentation::vtkTokenLabelsRepresentation()
  : Shown(std::make_unique<Labels>(this))
{
}

vtkTokenLabelsRepresentation::~vtkTokenLabelsRepresentation()
{
  this->Shown->Leave();
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
  this->Shown->written.clear();
  if (!this->Shown->fonts.SetFile(name))
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
    this->Shown->HideFrom(0);
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
  for (vtkDataSet* leaf : AttentionAtlas::LeavesOf(this->GetRenderedDataObject(0)))
  {
    std::vector<Candidate> candidates;
    AddCandidates(leaf, false, candidates);
    for (const Candidate& candidate : candidates)
    {
      double& width = widths.at(candidate.anchor == Anchor::Left ? 0 : 1);
      const std::string text = this->Shown->fonts.Choose(atlas::ScreenLabel(candidate.token)).text;
      width = std::max(width, atlas::LabelWidth(text));
    }
  }
  std::array<double, 6> bounds;
  std::copy_n(this->VisibleDataBounds, bounds.size(), bounds.begin());
  bounds[0] -= this->LabelHeight * widths[0];
  bounds[1] += this->LabelHeight * widths[1];
  bounds[2] -= this->LabelHeight;
  bounds[3] += this->LabelHeight;
  AttentionAtlas::AddViewBounds(this->GetRenderedDataObject(0), bounds);
  vtkPVRenderView::SetGeometryBounds(input, this, bounds.data(), this->Actor->GetMatrix());
}

/// Names the packages of fonts that were missing in the last rendering, each once.
void vtkTokenLabelsRepresentation::WarnOfMissingFonts()
{
  for (const std::string& package : this->Shown->fonts.MissingPackages())
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
  auto* shown = vtkPVRenderView::SafeDownCast(view);
  if (shown == nullptr || !this->Superclass::AddToView(view))
  {
    return false;
  }
  this->Shown->renderer = shown->GetRenderer(vtkPVRenderView::NON_COMPOSITED_RENDERER);
  this->Shown->backgroundRenderer = shown->GetRenderer();
  this->Shown->observer =
    this->Shown->renderer->AddObserver(vtkCommand::StartEvent, this->Shown.get(), &Labels::Place);
  return true;
}

bool vtkTokenLabelsRepresentation::RemoveFromView(vtkView* view)
{
  this->Shown->Leave();
  return this->Superclass::RemoveFromView(view);
}

void vtkTokenLabelsRepresentation::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "MaximumLabels: " << this->MaximumLabels << "\n";
  os << indent << "LabelFontSize: " << this->LabelFontSize << "\n";
  os << indent << "LabelHeight: " << this->LabelHeight << "\n";
  os << indent << "FontFile: " << this->FontFile << "\n";
}
