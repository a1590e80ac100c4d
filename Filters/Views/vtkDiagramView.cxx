#include "vtkDiagramView.h"

#include "Text/ScreenText.h"
#include "ViewTexts.h"

#include <vtkObjectFactory.h>
#include <vtkPVDataRepresentation.h>
#include <vtkPVRenderViewDataDeliveryManager.h>

#include <algorithm>

namespace
{

/// The size of the letters and the room around them, in points.
constexpr int TitleFontSize = 13;
constexpr double TitleRoom = 6;

/// A text in UTF-8, cut after its last whole character with which it is at most `width` pixels
/// wide, and an ellipsis; found by bisection, since titles may be of any length.
std::string Cut(AttentionAtlas::ViewTexts& texts, const std::string& text, double width)
{
  if (texts.Measure(text, TitleFontSize)[0] <= width)
  {
    return text;
  }
  const auto cut = [&text](std::size_t size)
  {
    // All bytes of a character but the first begin with the bits 10.
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U)
    {
      --size;
    }
    return text.substr(0, size) + "\u2026";
  };
  std::size_t fits = 0;
  for (std::size_t above = text.size(); above - fits > 1;)
  {
    const std::size_t middle = fits + (above - fits) / 2;
    (texts.Measure(cut(middle), TitleFontSize)[0] <= width ? fits : above) = middle;
  }
  return cut(fits);
}

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
  const double room = TitleRoom / this->OwnTexts->GetPoint();
  const std::string title =
    Cut(*this->OwnTexts, this->Title, static_cast<double>(size[0]) / tiles[0] - 2 * room);
  this->OwnTexts->Show(atlas::ScreenText(title),
    { TitleFontSize, Texts::Along::Left, Texts::Across::Top },
    { room * tiles[0], size[1] - room * tiles[1] });
}
