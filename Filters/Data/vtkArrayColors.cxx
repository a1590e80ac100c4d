#include "vtkArrayColors.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "Drawing/ClassPalette.h"
#include "Drawing/ColorLegend.h"
#include "Drawing/ColoredArray.h"

#include <vtkCellData.h>
#include <vtkDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>

#include <algorithm>
#include <vector>

namespace
{

/// The class numbers with their colors.
std::string ClassLegend(const atlas::ColoredArray& shown)
{
  atlas::ColorLegend legend(shown.array);
  for (int k = 0; k < std::min(shown.classes, atlas::MaximumLegend); ++k)
  {
    legend.Add(atlas::ClassColor(k), std::to_string(k));
  }
  return legend.Text();
}

}

vtkStandardNewMacro(vtkArrayColors);

vtkArrayColors::vtkArrayColors()
  : Scale(vtkSmartPointer<vtkDoubleArray>::New())
{
  this->Scale->SetNumberOfComponents(4);
}

vtkArrayColors::~vtkArrayColors() = default;

vtkDoubleArray* vtkArrayColors::GetScale() const
{
  return this->Scale;
}

bool vtkArrayColors::Read(vtkDataSet* data, int association, const std::string& name, bool isOurs)
{
  vtkFieldData* fields = data->GetFieldData();
  vtkDataArray* values = data->GetAttributesAsFieldData(association)->GetArray(name.c_str());
  atlas::ColoredArray shown;
  shown.array = name;
  if (values != nullptr)
  {
    shown.components = values->GetNumberOfComponents();
    shown.hasBytes = values->GetDataType() == VTK_UNSIGNED_CHAR;
    const double* range = values->GetRange(0);
    shown.low = range[0];
    shown.high = range[1];
  }
  if (vtkDataArray* count = fields->GetArray("VocabularySize"))
  {
    shown.classes = static_cast<int>(count->GetRange(0)[1]);
  }
  shown.onPlaces = fields->GetAbstractArray(AttentionAtlas::ArrayNames::TokenBinding) != nullptr;
  shown.onRibbon = data->GetPointData()->HasArray("backbone") != 0;
  shown.hasWords =
    data->GetPointData()->GetAbstractArray(AttentionAtlas::ArrayNames::Token) != nullptr;
  shown.Explain(AttentionAtlas::FieldText(fields, (name + " Legend").c_str()), isOurs);

  this->Colors = shown.ShowsColors();
  this->Legend = shown.HasLegend() ? shown.legend : shown.ShowsClasses() ? ClassLegend(shown) : "";
  const std::vector<double> points = shown.Scale(shown.LargestMagnitude());
  this->Scale->SetNumberOfTuples(static_cast<vtkIdType>(points.size() / 4));
  std::copy(points.begin(), points.end(), this->Scale->GetPointer(0));
  return values != nullptr;
}
