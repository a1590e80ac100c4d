#include "MapFrames.h"

#include "ArrayNames.h"
#include "DataFields.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkType.h>
#include <vtkUnsignedCharArray.h>

#include <array>

namespace AttentionAtlas
{
namespace
{

namespace Names = ArrayNames;

/// Lines are in front of the image that they mark.
constexpr double Front = 0.01;

/// Orange, green and purple of Okabe and Ito's palette, by kind.
constexpr std::array<std::array<unsigned char, 3>, 3> KindColors = { {
  { 230, 159, 0 },
  { 0, 158, 115 },
  { 204, 121, 167 },
} };

/// 0: another key, 1: the query's own position, 2: the first token.
unsigned char KindOf(const StrongestKey& strongest, bool isOneText)
{
  if (isOneText && strongest.key == strongest.query)
  {
    return 1;
  }
  return strongest.key == 0 ? 2 : 0;
}

}

void FrameStrongestKeys(
  const std::vector<StrongestKey>& keys, const char* name, bool isOneText, vtkPolyData* output)
{
  const auto kindOf = [isOneText](const StrongestKey& strongest)
  { return KindOf(strongest, isOneText); };
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> lines;
  vtkNew<vtkUnsignedCharArray> colors;
  colors->SetName(Names::KindColor);
  colors->SetNumberOfComponents(3);
  for (const StrongestKey& strongest : keys)
  {
    const double x = strongest.key;
    const double y = -strongest.query;
    const vtkIdType first = points->InsertNextPoint(x - 0.5, y - 0.5, Front);
    points->InsertNextPoint(x + 0.5, y - 0.5, Front);
    points->InsertNextPoint(x + 0.5, y + 0.5, Front);
    points->InsertNextPoint(x - 0.5, y + 0.5, Front);
    lines->InsertNextCell({ first, first + 1, first + 2, first + 3, first });
    colors->InsertNextTypedTuple(KindColors.at(kindOf(strongest)).data());
  }
  output->SetPoints(points);
  output->SetLines(lines);
  vtkCellData* arrays = output->GetCellData();
  arrays->AddArray(MakeArray<vtkUnsignedCharArray>(Names::Kind, keys, kindOf));
  arrays->AddArray(colors);
  arrays->AddArray(MakeArray<vtkIntArray>(
    Names::Query, keys, [](const StrongestKey& strongest) { return strongest.query; }));
  arrays->AddArray(MakeArray<vtkIntArray>(
    Names::Key, keys, [](const StrongestKey& strongest) { return strongest.key; }));
  arrays->AddArray(MakeArray<vtkFloatArray>(
    name, keys, [](const StrongestKey& strongest) { return strongest.value; }));
}

void AddQueryTokens(const std::vector<StrongestKey>& keys, std::int64_t first, vtkPolyData* output)
{
  vtkCellData* arrays = output->GetCellData();
  arrays->AddArray(MakeArray<vtkIdTypeArray>(Names::TokenIndex, keys,
    [first](const StrongestKey& strongest) { return vtkIdType{ first } + strongest.query; }));
  arrays->SetPedigreeIds(arrays->GetAbstractArray(Names::TokenIndex));
}

}
