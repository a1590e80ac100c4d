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
}

void PanelTitles::Add(double x, double y, const std::string& text)
{
  const vtkIdType point = this->Points->InsertNextPoint(x, y, 0);
  this->Vertices->InsertNextCell(1, &point);
  this->Texts->InsertNextValue(text);
}

void PanelTitles::MoveTo(vtkPolyData* output, const char* format)
{
  output->SetPoints(this->Points);
  output->SetVerts(this->Vertices);
  output->GetPointData()->AddArray(this->Texts);
  SetFormat(output, format);
}

}
