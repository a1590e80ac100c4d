#include "vtkDiagramView.h"

#include "Ink.h"

#include <vtkCommand.h>
#include <vtkCoordinate.h>
#include <vtkObjectFactory.h>
#include <vtkPVDataRepresentation.h>
#include <vtkPVRenderViewDataDeliveryManager.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkStdString.h>
#include <vtkTextActor.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>

#include <algorithm>

namespace
{

/// The size of the letters and the room around them, in points.
constexpr int TitleFontSize = 13;
constexpr double TitleRoom = 6;

/// The width of a text in pixels.
int WidthOf(vtkTextProperty* style, const std::string& text, int dpi)
{
  std::array<int, 4> box = { 0, -1, 0, -1 };
  vtkTextRenderer::GetInstance()->GetBoundingBox(style, vtkStdString(text), box.data(), dpi);
  return box[1] - box[0] + 1;
}

/// A text in UTF-8, cut after its last whole character with which it is at most `width` pixels
/// wide, and an ellipsis; found by bisection, since titles may be of any length.
std::string Cut(vtkTextProperty* style, const std::string& text, int dpi, double width)
{
  if (WidthOf(style, text, dpi) <= width)
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
    (WidthOf(style, cut(middle), dpi) <= width ? fits : above) = middle;
  }
  return cut(fits);
}

}

vtkStandardNewMacro(vtkDiagramView);

vtkDiagramView::vtkDiagramView()
{
  this->TitleActor->PickableOff();
  this->TitleActor->VisibilityOff();
  this->TitleActor->GetPositionCoordinate()->SetCoordinateSystemToNormalizedViewport();
  this->TitleActor->GetTextProperty()->SetFontFamilyToArial();
  this->TitleActor->GetTextProperty()->SetFontSize(TitleFontSize);
  this->TitleActor->GetTextProperty()->SetVerticalJustificationToTop();
  vtkRenderer* renderer = this->GetNonCompositedRenderer();
  renderer->AddActor(this->TitleActor);
  renderer->AddObserver(vtkCommand::StartEvent, this, &vtkDiagramView::PlaceTitle);
}

vtkDiagramView::~vtkDiagramView() = default;

void vtkDiagramView::SetTitle(const char* title)
{
  this->Title = title != nullptr ? title : "";
}

std::array<double, 6> vtkDiagramView::GetShownBounds() const
{
  std::array<double, 6> bounds;
  this->GeometryBounds.GetBounds(bounds.data());
  return bounds;
}

std::array<double, 6> vtkDiagramView::GetDataBounds() const
{
  std::array<double, 6> bounds;
  this->DataBounds.GetBounds(bounds.data());
  return bounds;
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

void vtkDiagramView::Update()
{
  this->TextRoom.Reset();
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
  const vtkBoundingBox room = this->TextRoom;
  this->AllReduce(room, this->TextRoom);
}

void vtkDiagramView::PlaceTitle()
{
  vtkTextProperty* style = this->TitleActor->GetTextProperty();
  const int dpi = this->GetRenderWindow()->GetDPI();
  const double room = TitleRoom * dpi / 72;
  const int* size = this->GetRenderWindow()->GetActualSize();
  const double width = std::max(size[0], 1);
  const double height = std::max(size[1], 1);
  const std::string title =
    this->Title.empty() ? this->Title : Cut(style, this->Title, dpi, width - 2 * room);
  this->TitleActor->SetVisibility(title.empty() ? 0 : 1);
  this->TitleActor->SetInput(title.c_str());
  this->TitleActor->SetPosition(room / width, 1 - room / height);
  std::array<double, 3> back;
  this->GetRenderer()->GetBackground(back.data());
  const double ink = AttentionAtlas::InkOn(back.data());
  style->SetColor(ink, ink, ink);
}

void vtkDiagramView::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Title: " << this->Title << "\n";
}
