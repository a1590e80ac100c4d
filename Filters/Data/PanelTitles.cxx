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
}

void PanelTitles::Add(double x, double y, const std::string& text, unsigned char side)
{
  const vtkIdType point = this->Points->InsertNextPoint(x, y, 0);
  this->Vertices->InsertNextCell(1, &point);
  this->Texts->InsertNextValue(text);
  this->Sides->InsertNextValue(side);
}

void PanelTitles::Add(double x, double y, const std::string& text)
{
  this->Add(x, y, text, 2);
}

void PanelTitles::AddToTheRight(double x, double y, const std::string& text)
{
  this->Add(x, y, text, 1);
}

void PanelTitles::AddToTheLeft(double x, double y, const std::string& text)
{
  this->Add(x, y, text, 0);
}

void PanelTitles::MoveTo(vtkPolyData* output, const char* format)
{
  output->SetPoints(this->Points);
  output->SetVerts(this->Vertices);
  output->GetPointData()->AddArray(this->Texts);
  output->GetPointData()->AddArray(this->Sides);
  SetFormat(output, format);
}

}
