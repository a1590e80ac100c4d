#include "vtkDiagramView.h"

#include "Text/ScreenText.h"
#include "ViewTexts.h"

#include <vtkObjectFactory.h>
#include <vtkPVDataRepresentation.h>
#include <vtkPVRenderViewDataDeliveryManager.h>

#include <algorithm>
#include <sstream>

namespace
{

/// The size of the letters and the room around them, in points; the height of the title with its
/// room, and of a line below it.
constexpr int TitleFontSize = 13;
constexpr double TitleRoom = 6;
constexpr double TitleHeight = 26;
constexpr int SignsFontSize = 11;
constexpr double SignsHeight = 16;

std::array<double, 6> BoundsOf(const vtkBoundingBox& box)
{
  std::array<double, 6> bounds;
  box.GetBounds(bounds.data());
  return bounds;
}

}

vtkStandardNewMacro(vtkDiagramView);

vtkDiagramView::vtkDiagramView()
  : OwnTexts(std::make_unique<AttentionAtlas::ViewTexts>())
{
  this->OwnTexts->Enter(this, [this] { this->PlaceTitle(); });
}

vtkDiagramView::~vtkDiagramView()
{
  this->OwnTexts->Leave();
}

void vtkDiagramView::SetTitle(const char* title)
{
  this->Title = title != nullptr ? title : "";
}

void vtkDiagramView::SetSigns(const char* signs)
{
  this->Signs = signs != nullptr ? signs : "";
}

double vtkDiagramView::GetTitleHeight(double width)
{
  return TitleHeight + SignsHeight * static_cast<double>(this->LinesOfSigns(width).size());
}

/// The lines of the signs in a view of this width in points. A line is broken between words.
std::vector<std::string> vtkDiagramView::LinesOfSigns(double width)
{
  const double room = (width - 2 * TitleRoom) / this->OwnTexts->GetPoint();
  std::vector<std::string> lines;
  std::istringstream words(this->Signs);
  for (std::string word; words >> word;)
  {
    const bool goesOn = !lines.empty() && (lines.size() == MostLines ||
                                            this->OwnTexts->Measure(
                                              lines.back() + " " + word, SignsFontSize)[0] <= room);
    if (goesOn)
    {
      lines.back() += " " + word;
    }
    else
    {
      lines.push_back(word);
    }
  }
  for (std::string& line : lines)
  {
    line = this->OwnTexts->Cut(line, SignsFontSize, room);
  }
  return lines;
}

std::array<double, 6> vtkDiagramView::GetShownBounds() const
{
  return BoundsOf(this->GeometryBounds);
}

std::array<double, 6> vtkDiagramView::GetDataBounds() const
{
  return BoundsOf(this->DataBounds);
}

vtkDiagramView::Room vtkDiagramView::GetTextRoom() const
{
  if (!this->TextRoom.IsValid())
  {
    return {};
  }
  const double* least = this->TextRoom.GetMinPoint();
  const double* most = this->TextRoom.GetMaxPoint();
  return { -least[0], most[0], -least[1], most[1] };
}

void vtkDiagramView::AddTextRoom(const Room& room)
{
  this->TextRoom.AddPoint(-room.left, -room.bottom, 0);
  this->TextRoom.AddPoint(room.right, room.top, 0);
}

double vtkDiagramView::GetLargestScale() const
{
  return this->UnitsPerPoint.IsValid() ? 1 / this->UnitsPerPoint.GetMaxPoint()[0] : 0;
}

void vtkDiagramView::LimitScale(double pointsPerUnit)
{
  this->UnitsPerPoint.AddPoint(1 / pointsPerUnit, 0, 0);
}

void vtkDiagramView::Update()
{
  this->TextRoom.Reset();
  this->UnitsPerPoint.Reset();
  this->Superclass::Update();
  vtkBoundingBox bounds;
  auto* delivery = vtkPVRenderViewDataDeliveryManager::SafeDownCast(this->GetDeliveryManager());
  for (int i = 0; i < this->GetNumberOfRepresentations(); ++i)
  {
    auto* shown = vtkPVDataRepresentation::SafeDownCast(this->GetRepresentation(i));
    const bool isVisible = shown != nullptr && shown->GetVisibility();
    for (int port = 0; isVisible && port < delivery->GetNumberOfPorts(shown); ++port)
    {
      bounds.AddBox(delivery->GetTransformedGeometryBounds(shown, port));
    }
  }
  this->DataBounds.Reset();
  this->AllReduce(bounds, this->DataBounds);
  for (vtkBoundingBox* ofAll : { &this->TextRoom, &this->UnitsPerPoint })
  {
    const vtkBoundingBox own = *ofAll;
    this->AllReduce(own, *ofAll);
  }
}

void vtkDiagramView::PlaceTitle()
{
  using Texts = AttentionAtlas::ViewTexts;
  if (this->Title.empty())
  {
    return;
  }
  const auto size = this->OwnTexts->GetSize();
  const auto tiles = this->OwnTexts->GetTiles();
  const double point = this->OwnTexts->GetPoint();
  const double width = static_cast<double>(size[0]) / tiles[0];
  const auto show = [&](const std::string& text, int fontSize, double below)
  {
    this->OwnTexts->Show(atlas::ScreenText(text),
      { fontSize, Texts::Along::Left, Texts::Across::Top },
      { TitleRoom / point * tiles[0], size[1] - below / point * tiles[1] });
  };
  const double room = width - 2 * TitleRoom / point;
  show(this->OwnTexts->Cut(this->Title, TitleFontSize, room), TitleFontSize, TitleRoom);
  double below = TitleHeight;
  for (const std::string& line : this->LinesOfSigns(width * point))
  {
    show(line, SignsFontSize, below);
    below += SignsHeight;
  }
}
