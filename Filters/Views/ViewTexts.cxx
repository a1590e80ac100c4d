#include "ViewTexts.h"

#include <vtkCamera.h>
#include <vtkCommand.h>
#include <vtkCoordinate.h>
#include <vtkMatrix4x4.h>
#include <vtkNew.h>
#include <vtkPVRenderView.h>
#include <vtkRenderWindow.h>
#include <vtkRenderer.h>
#include <vtkStdString.h>
#include <vtkTextActor.h>
#include <vtkTextProperty.h>
#include <vtkTextRenderer.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace AttentionAtlas
{
namespace
{

constexpr double PointsPerInch = 72;

void SetFont(vtkTextProperty* style, const std::string& font, int fontSize)
{
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

}

void ViewTexts::Enter(vtkPVRenderView* view, std::function<void()> place)
{
  this->Renderer = view->GetRenderer(vtkPVRenderView::NON_COMPOSITED_RENDERER);
  this->Scene = view->GetRenderer();
  this->OnPlace = std::move(place);
  this->Observer = this->Renderer->AddObserver(vtkCommand::StartEvent, this, &ViewTexts::Place);
}

void ViewTexts::Leave()
{
  if (this->Renderer != nullptr)
  {
    this->Renderer->RemoveObserver(this->Observer);
    for (const auto& actor : this->Actors)
    {
      this->Renderer->RemoveActor(actor);
    }
  }
  this->Actors.clear();
  this->Used = 0;
  this->Renderer = nullptr;
}

bool ViewTexts::SetFontFile(const std::string& file)
{
  this->Texts.clear();
  return this->Fonts.SetFile(file);
}

const ViewTexts::Written& ViewTexts::Write(const std::string& text, int fontSize)
{
  const int dpi = this->Renderer->GetRenderWindow()->GetDPI();
  if (this->Dpi != dpi)
  {
    this->Dpi = dpi;
    this->Texts.clear();
  }
  const auto [entry, isNew] = this->Texts.try_emplace(text);
  Written& written = entry->second;
  if (isNew)
  {
    written.drawn = this->Fonts.Choose(text);
  }
  if (written.fontSize != fontSize)
  {
    written.fontSize = fontSize;
    vtkNew<vtkTextProperty> style;
    SetFont(style, written.drawn.font, fontSize);
    std::array<int, 4> box = { 0, -1, 0, -1 };
    vtkTextRenderer::GetInstance()->GetBoundingBox(
      style, vtkStdString(written.drawn.text), box.data(), dpi);
    written.extent = { box[1] - box[0] + 1, box[3] - box[2] + 1 };
  }
  return written;
}

std::array<int, 2> ViewTexts::Measure(const std::string& text, int fontSize)
{
  return this->Write(text, fontSize).extent;
}

std::string ViewTexts::Cut(const std::string& text, int fontSize, double width, KeptPart kept)
{
  return CutText(
    text, width,
    [&](const std::string& some) -> double { return this->Measure(some, fontSize)[0]; }, kept);
}

double ViewTexts::GetPoint() const
{
  return PointsPerInch / this->Renderer->GetRenderWindow()->GetDPI();
}

std::array<int, 2> ViewTexts::GetSize() const
{
  const int* size = this->Renderer->GetSize();
  return { size[0], size[1] };
}

std::array<int, 2> ViewTexts::GetTiles() const
{
  const int* tiles = this->Renderer->GetRenderWindow()->GetTileScale();
  return { tiles[0], tiles[1] };
}

vtkSmartPointer<vtkMatrix4x4> ViewTexts::ToScreen(vtkMatrix4x4* placed) const
{
  // The camera is that of a tile.
  auto matrix = vtkSmartPointer<vtkMatrix4x4>::New();
  matrix->DeepCopy(this->Renderer->GetActiveCamera()->GetCompositeProjectionTransformMatrix(
    this->Renderer->GetTiledAspectRatio(), -1, 1));
  vtkMatrix4x4::Multiply4x4(matrix, placed, matrix);
  const double* tile = this->Renderer->GetRenderWindow()->GetTileViewport();
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

void ViewTexts::Show(const std::string& text, const Style& style, const std::array<double, 2>& at)
{
  if (this->Used == this->Actors.size())
  {
    const auto actor = vtkSmartPointer<vtkTextActor>::New();
    actor->GetPositionCoordinate()->SetCoordinateSystemToViewport();
    actor->PickableOff();
    this->Renderer->AddActor(actor);
    this->Actors.push_back(actor);
  }
  const Written& written = this->Write(text, style.fontSize);
  vtkTextActor* actor = this->Actors[this->Used++];
  vtkTextProperty* look = actor->GetTextProperty();
  SetFont(look, written.drawn.font, style.fontSize);
  look->SetJustification(static_cast<int>(style.along));
  look->SetVerticalJustification(static_cast<int>(style.across));
  const std::array<double, 3> black = { 0, 0, 0 };
  look->SetColor(style.back ? black.data() : style.isFaint ? this->Faint.data() : this->Ink.data());
  look->SetBackgroundOpacity(style.back ? 1 : 0);
  look->SetBackgroundColor(style.back.value_or(black).data());
  look->SetOrientation(style.isUpwards ? 90 : 0);
  actor->SetInput(written.drawn.text.c_str());
  actor->SetPosition(std::round(at[0]), std::round(at[1]));
  actor->VisibilityOn();
}

void ViewTexts::ShowNote(const std::string& note)
{
  constexpr int size = 11;
  constexpr double gap = 4; // in pixels
  const auto tiles = this->GetTiles();
  this->Show(note, { size, Along::Left, Across::Bottom }, { gap * tiles[0], gap * tiles[1] });
}

void ViewTexts::HideFrom(std::size_t first)
{
  this->Used = std::min(this->Used, first);
  for (std::size_t i = first; i < this->Actors.size(); ++i)
  {
    this->Actors[i]->VisibilityOff();
  }
}

/// Before each rendering. A larger picture is rendered tile by tile, all with the texts of the
/// first, at the lower left.
void ViewTexts::Place()
{
  const double* tile = this->Renderer->GetRenderWindow()->GetTileViewport();
  if (tile[0] > 0 || tile[1] > 0 || this->Scene == nullptr)
  {
    return;
  }
  this->Used = 0;
  const double gray = InkOn(this->Scene->GetBackground()); // as shown by the view
  this->Ink.fill(gray);
  this->Faint.fill(gray == 0 ? 0.6 : 0.65);
  this->OnPlace();
  this->HideFrom(this->Used);
}

}
