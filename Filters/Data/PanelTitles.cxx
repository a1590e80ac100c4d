#include "PanelTitles.h"

#include "ArrayNames.h"
#include "DataFormat.h"

#include <vtkPointData.h>
#include <vtkPolyData.h>

namespace AttentionAtlas
{

PanelTitles::PanelTitles()
{
  this->Texts->SetName(ArrayNames::Token);
  this->Sides->SetName(ArrayNames::Side);
  this->Radii->SetName(ArrayNames::Radius);
}

void PanelTitles::Add(
  double x, double y, const std::string& text, unsigned char side, double radius)
{
  const vtkIdType point = this->Points->InsertNextPoint(x, y, 0);
  this->Vertices->InsertNextCell(1, &point);
  this->Texts->InsertNextValue(text);
  this->Sides->InsertNextValue(side);
  this->Radii->InsertNextValue(radius);
}

void PanelTitles::Add(double x, double y, const std::string& text)
{
  this->Add(x, y, text, 2);
}

void PanelTitles::AddToTheLeft(double x, double y, const std::string& text)
{
  this->Add(x, y, text, 0);
}

void PanelTitles::AddBelow(double x, double y, const std::string& text)
{
  this->Add(x, y, text, 4);
}

void PanelTitles::AddAround(double x, double y, double radius, const std::string& text)
{
  this->Add(x + radius, y, text, 6, radius);
}

void PanelTitles::MoveTo(vtkPolyData* output, const char* format)
{
  output->SetPoints(this->Points);
  output->SetVerts(this->Vertices);
  output->GetPointData()->AddArray(this->Texts);
  output->GetPointData()->AddArray(this->Sides);
  if (this->Radii->GetRange()[1] > 0)
  {
    output->GetPointData()->AddArray(this->Radii);
  }
  SetFormat(output, format);
}

}
