#include "vtkDiagramView.h"

#include "Titles.h"
#include "ViewTexts.h"
#include "vtkSquaresRepresentation.h"
#include "vtkViewGrowth.h"

#include <vtkCompositeRepresentation.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPVDataRepresentation.h>
#include <vtkPVRenderViewDataDeliveryManager.h>

namespace
{

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
  this->OwnTexts->Enter(this, [this] { this->Lines().Show(*this->OwnTexts); });
  vtkNew<vtkViewGrowth> growth;
  growth->SetOn(true);
  growth->SetView(this);
}

vtkDiagramView::~vtkDiagramView()
{
  this->OwnTexts->Leave();
}

void vtkDiagramView::SetTitle(const char* title)
{
  this->Title = title != nullptr ? title : "";
}

void vtkDiagramView::SetExplanation(const char* explanation)
{
  this->Explanation = explanation != nullptr ? explanation : "";
}

AttentionAtlas::TitleLines vtkDiagramView::Lines() const
{
  return { *this->OwnTexts, this->Title, this->Explanation, this->RoomBesideTitle };
}

double vtkDiagramView::GetTitleHeight() const
{
  return this->Lines().Height();
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

std::array<double, 2> vtkDiagramView::GetScales() const
{
  if (!this->UnitsPerPoint.IsValid())
  {
    return { 0, 0 };
  }
  return { 1 / this->UnitsPerPoint.GetMinPoint()[1], 1 / this->UnitsPerPoint.GetMaxPoint()[0] };
}

void vtkDiagramView::LimitScale(double leastPointsPerUnit, double mostPointsPerUnit)
{
  this->UnitsPerPoint.AddPoint(1 / mostPointsPerUnit, 1 / leastPointsPerUnit, 0);
}

void vtkDiagramView::SetUseFXAA(bool isSmooth)
{
  this->IsSmooth = isSmooth;
  this->Superclass::SetUseFXAA(isSmooth && !this->HasSquares());
}

bool vtkDiagramView::HasSquares()
{
  for (int i = 0; i < this->GetNumberOfRepresentations(); ++i)
  {
    auto* shown = vtkCompositeRepresentation::SafeDownCast(this->GetRepresentation(i));
    if (shown != nullptr && shown->GetVisibility() &&
        vtkSquaresRepresentation::SafeDownCast(shown->GetActiveRepresentation()) != nullptr)
    {
      return true;
    }
  }
  return false;
}

void vtkDiagramView::Update()
{
  this->TextRoom.Reset();
  this->UnitsPerPoint.Reset();
  this->Superclass::Update();
  this->UseFXAA = this->IsSmooth && !this->HasSquares();
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
