#include "DeformedChart.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Error.h"
#include "Execution.h"
#include "ListArrays.h"

#include <vtkCellArray.h>
#include <vtkIdList.h>
#include <vtkImageData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace AttentionAtlas
{
namespace
{

using atlas::GridPiece;
using atlas::TorusGrid;

/// The angles along an axis of a chart, each in [-pi, pi).
std::vector<double> AnglesAlong(vtkImageData* chart, int axis, int count)
{
  const vtkIdType step = axis == 0 ? 1 : chart->GetDimensions()[0];
  std::vector<double> angles;
  for (vtkIdType i = 0; i < count; ++i)
  {
    double point[3];
    chart->GetPoint(i * step, point);
    if (!std::isfinite(point[axis]))
    {
      throw std::runtime_error(atlas::Concat(
        "expected finite angles, found (", point[0], ", ", point[1], ") at point ", i * step, "."));
    }
    angles.push_back(atlas::WrapAngle(point[axis]));
  }
  return angles;
}

vtkSmartPointer<vtkFloatArray> TakeVectors(ArrayPool& pool, const char* name, vtkIdType count)
{
  vtkSmartPointer<vtkFloatArray> array =
    vtkFloatArray::SafeDownCast(pool.Take(VTK_FLOAT, 3, count));
  array->SetName(name);
  return array;
}

void SetPoints(vtkFloatArray* coordinates, vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  points->SetData(coordinates);
  output->SetPoints(points);
}

/// The quads of a part, row by row.
vtkSmartPointer<vtkCellArray> QuadsOf(const GridPiece& piece, const TorusGrid& grid)
{
  vtkNew<vtkIdTypeArray> corners;
  vtkNew<vtkIdTypeArray> offsets;
  corners->SetNumberOfValues(4 * piece.QuadCount());
  offsets->SetNumberOfValues(piece.QuadCount() + 1);
  const vtkIdType columns = grid.columns - 1;
  ParallelFor(0, piece.LastRow() - piece.FirstRow(),
    [&](vtkIdType begin, vtkIdType end)
    {
      vtkIdType* corner = corners->GetPointer(4 * begin * columns);
      for (vtkIdType r = begin; r < end; ++r)
      {
        const int row = piece.FirstRow() + static_cast<int>(r);
        for (int column = 0; column < columns; ++column)
        {
          *corner++ = piece.Point(column, row);
          *corner++ = piece.Point(column + 1, row);
          *corner++ = piece.Point(column + 1, row + 1);
          *corner++ = piece.Point(column, row + 1);
        }
      }
      for (vtkIdType i = begin * columns; i < end * columns; ++i)
      {
        offsets->SetValue(i, 4 * i);
      }
    });
  offsets->SetValue(piece.QuadCount(), 4 * piece.QuadCount());
  auto quads = vtkSmartPointer<vtkCellArray>::New();
  quads->SetData(offsets, corners);
  return quads;
}

/// Copies tuples of arrays, with which of them are active.
template<class Copy>
void CopyAttributes(vtkDataSetAttributes* from, const Copy& copyOf, vtkDataSetAttributes* to)
{
  to->Initialize();
  for (int i = 0; i < from->GetNumberOfArrays(); ++i)
  {
    to->AddArray(copyOf(from->GetAbstractArray(i)));
  }
  std::array<int, vtkDataSetAttributes::NUM_ATTRIBUTES> active = {};
  from->GetAttributeIndices(active.data());
  for (int type = 0; type < vtkDataSetAttributes::NUM_ATTRIBUTES; ++type)
  {
    if (active.at(type) >= 0)
    {
      to->SetActiveAttribute(active.at(type), type);
    }
  }
}

void CopyDescription(vtkAbstractArray* from, vtkAbstractArray* to)
{
  to->SetName(from->GetName());
  to->CopyComponentNames(from);
  if (from->HasInformation())
  {
    to->CopyInformation(from->GetInformation(), 1);
  }
}

/// The tuples `ids` of an array of any type.
vtkSmartPointer<vtkAbstractArray> CopyTuples(vtkAbstractArray* from, vtkIdList* ids)
{
  const auto to = vtkSmartPointer<vtkAbstractArray>::Take(from->NewInstance());
  to->SetNumberOfComponents(from->GetNumberOfComponents());
  to->SetNumberOfTuples(ids->GetNumberOfIds());
  from->GetTuples(ids, to);
  CopyDescription(from, to);
  return to;
}

/// Whether the pool knows when arrays of this type are free, and their values are in one piece.
bool IsPlain(vtkAbstractArray* array)
{
  return vtkFloatArray::SafeDownCast(array) != nullptr ||
         vtkIntArray::SafeDownCast(array) != nullptr ||
         vtkUnsignedCharArray::SafeDownCast(array) != nullptr;
}

vtkSmartPointer<vtkIdList> IdList(vtkIdType count)
{
  auto ids = vtkSmartPointer<vtkIdList>::New();
  ids->SetNumberOfIds(count);
  return ids;
}

}

bool DeformedChart::Part::operator==(const Part& other) const
{
  return this->columns == other.columns && this->rows == other.rows && this->piece == other.piece &&
         this->pieces == other.pieces && this->theta1 == other.theta1 &&
         this->theta2 == other.theta2;
}

vtkIdType DeformedChart::PointCount() const
{
  return this->RowCount * this->Grid.DistinctColumns();
}

void DeformedChart::Begin(
  vtkImageData* chart, const TorusGrid& grid, int piece, int pieces, vtkPolyData* output)
{
  const Part part{ grid.columns, grid.rows, piece, pieces,
    AnglesAlong(chart, 0, grid.DistinctColumns()), AnglesAlong(chart, 1, grid.DistinctRows()) };
  if (this->Quads == nullptr || !(this->Known == part))
  {
    this->Known = part;
    this->Grid = grid;
    this->Quads = nullptr; // until all is made
    this->Copied = nullptr;
    this->MakeQuads();
  }
  if (this->Copied != chart || this->CopyTime != TimeOf(chart))
  {
    this->Copied = nullptr; // until all are copied
    this->CopyArrays(chart);
    this->Copied = chart;
    this->CopyTime = TimeOf(chart);
  }
  output->SetPolys(this->Quads);
  output->GetPointData()->ShallowCopy(this->OfPoints);
  output->GetCellData()->ShallowCopy(this->OfCells);
  output->GetPointData()->AddArray(this->Angles1);
  output->GetPointData()->AddArray(this->Angles2);
}

void DeformedChart::MakeQuads()
{
  const GridPiece piece(this->Grid, this->Known.piece, this->Known.pieces);
  this->FirstRow = piece.FirstRow();
  this->RowCount = this->Known.pieces == 1              ? this->Grid.DistinctRows()
                   : piece.FirstRow() < piece.LastRow() ? piece.LastRow() - piece.FirstRow() + 1
                                                        : 0;
  this->DonutNormals = nullptr;
  const auto columns = static_cast<vtkIdType>(this->Known.theta1.size());
  this->Angles1 = NewArray<vtkFloatArray>(ArrayNames::Theta1, this->PointCount());
  this->Angles2 = NewArray<vtkFloatArray>(ArrayNames::Theta2, this->PointCount());
  RangeCollector ranges({ this->Angles1, this->Angles2 });
  ParallelFor(0, this->RowCount,
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType row = begin; row < end; ++row)
      {
        const double theta2 =
          this->Known
            .theta2[static_cast<std::size_t>(this->FirstRow + row) % this->Known.theta2.size()];
        std::transform(this->Known.theta1.begin(), this->Known.theta1.end(),
          this->Angles1->GetPointer(row * columns),
          [](double theta) { return static_cast<float>(theta); });
        std::fill_n(this->Angles2->GetPointer(row * columns), columns, static_cast<float>(theta2));
      }
      ranges.Add(begin * columns, end * columns);
    });
  ranges.Store();
  this->Quads = QuadsOf(piece, this->Grid);
}

void DeformedChart::CopyArrays(vtkImageData* chart)
{
  const vtkIdType columns = this->Grid.DistinctColumns();
  const auto rowOfChart = [this](vtkIdType row)
  { return (this->FirstRow + row) % this->Grid.DistinctRows() * this->Grid.columns; };
  const auto copyRows = [&](vtkAbstractArray* from) -> vtkSmartPointer<vtkAbstractArray>
  {
    if (!IsPlain(from) || from->HasAComponentName())
    {
      const auto ids = IdList(this->PointCount());
      for (vtkIdType i = 0; i < this->PointCount(); ++i)
      {
        ids->SetId(i, rowOfChart(i / columns) + i % columns);
      }
      return CopyTuples(from, ids);
    }
    const auto to =
      this->Pool.Take(from->GetDataType(), from->GetNumberOfComponents(), this->PointCount());
    const auto bytes = static_cast<std::size_t>(from->GetNumberOfComponents()) *
                       static_cast<std::size_t>(from->GetDataTypeSize());
    const auto* source = static_cast<const char*>(from->GetVoidPointer(0));
    auto* target = static_cast<char*>(to->GetVoidPointer(0));
    ParallelFor(0, this->RowCount,
      [&](vtkIdType begin, vtkIdType end)
      {
        for (vtkIdType row = begin; row < end; ++row)
        {
          std::memcpy(target + static_cast<std::size_t>(row * columns) * bytes,
            source + static_cast<std::size_t>(rowOfChart(row)) * bytes,
            static_cast<std::size_t>(columns) * bytes);
        }
      });
    CopyDescription(from, to);
    return to;
  };
  CopyAttributes(chart->GetPointData(), copyRows, this->OfPoints);
  const auto copyCells = [&](vtkAbstractArray* from)
  {
    const vtkIdType count = this->Quads->GetNumberOfCells();
    const auto ids = IdList(count);
    for (vtkIdType i = 0; i < count; ++i)
    {
      ids->SetId(i, this->FirstRow * (this->Grid.columns - 1) + i);
    }
    return CopyTuples(from, ids);
  };
  CopyAttributes(chart->GetCellData(), copyCells, this->OfCells);
}

void DeformedChart::PlaceDonut(const atlas::Donut& donut, vtkPolyData* output)
{
  const atlas::DonutGrid grid(this->Known.theta1, this->Known.theta2);
  const auto coordinates = TakeVectors(this->Pool, "Points", this->PointCount());
  const bool hasNormals = this->DonutNormals != nullptr;
  vtkSmartPointer<vtkFloatArray> normals = this->DonutNormals;
  if (!hasNormals)
  {
    normals = NewTuples<vtkFloatArray>("Normals", 3, this->PointCount());
  }
  RangeCollector ranges({ normals });
  const vtkIdType columns = this->Grid.DistinctColumns();
  ParallelFor(0, this->RowCount,
    [&](vtkIdType begin, vtkIdType end)
    {
      RangeCollector::Part part(ranges);
      for (vtkIdType row = begin; row < end; ++row)
      {
        const auto angle =
          static_cast<std::size_t>(this->FirstRow + row) % this->Known.theta2.size();
        grid.Points(donut, angle, coordinates->GetPointer(3 * row * columns));
        if (!hasNormals)
        {
          grid.Normals(angle, normals->GetPointer(3 * row * columns));
          part.Add(row * columns, (row + 1) * columns);
        }
      }
    });
  if (!hasNormals)
  {
    ranges.Store();
    this->DonutNormals = normals;
  }
  SetPoints(coordinates, output);
  output->GetPointData()->SetNormals(normals);
  this->Pool.ForgetFree();
}

void DeformedChart::PlaceVectors(const atlas::PointRow& read, vtkPolyData* output)
{
  const auto coordinates = TakeVectors(this->Pool, "Points", this->PointCount());
  const auto normals = TakeVectors(this->Pool, "Normals", this->PointCount());
  RangeCollector ranges({ normals });
  const vtkIdType columns = this->Grid.DistinctColumns();
  ParallelFor(0, this->RowCount,
    [&](vtkIdType begin, vtkIdType end)
    {
      atlas::EvaluateSurface(this->Grid, read, this->FirstRow + begin, this->FirstRow + end,
        coordinates->GetPointer(3 * begin * columns), normals->GetPointer(3 * begin * columns));
      ranges.Add(begin * columns, end * columns);
    });
  ranges.Store();
  SetPoints(coordinates, output);
  output->GetPointData()->SetNormals(normals);
  this->Pool.ForgetFree();
}

}
