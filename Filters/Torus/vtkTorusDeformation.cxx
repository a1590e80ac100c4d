#include "vtkTorusDeformation.h"

#include "ArrayNames.h"
#include "AttentionOnly/Deformation.h"
#include "AttentionOnly/TorusGrid.h"
#include "AttentionOnly/TorusSurface.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "DeformedChart.h"
#include "ListArrays.h"
#include "Task.h"

#include <vtkDataSetSurfaceFilter.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkPolyDataNormals.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

using atlas::Rows3;
using atlas::TorusGrid;

/// A generous estimate of the bytes per point, temporary and in the output: angles, vectors, points
/// and normals in double and in float, and its quad.
constexpr double BytesPerMovedPoint = 250;

/// Calls function(i) for all 0 <= i < count, on several threads.
template<class Function>
void ForEach(std::size_t count, Function&& function)
{
  ParallelFor(0, static_cast<vtkIdType>(count),
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType i = begin; i < end; ++i)
      {
        function(i);
      }
    });
}

/// The grid of a chart; an empty grid for any other dataset.
TorusGrid FindGrid(vtkDataSet* data)
{
  auto* image = vtkImageData::SafeDownCast(data);
  const int* dimensions = image != nullptr ? image->GetDimensions() : nullptr;
  const bool named = image != nullptr && image->GetPointData()->HasArray(Names::Theta1) != 0 &&
                     image->GetPointData()->HasArray(Names::Theta2) != 0;
  if (image == nullptr || named || dimensions[0] < 2 || dimensions[1] < 2 || dimensions[2] != 1)
  {
    return {};
  }
  const double* bounds = image->GetBounds();
  return { dimensions[0], dimensions[1], { bounds[0], bounds[1] }, { bounds[2], bounds[3] } };
}

/// The ids of the points of a dataset that are distinct points of the torus.
std::vector<vtkIdType> DistinctPoints(vtkDataSet* data, const TorusGrid& grid)
{
  if (grid.columns > 0)
  {
    const std::vector<std::int64_t> points = grid.DistinctPoints();
    return { points.begin(), points.end() };
  }
  // An empty image may have a negative number of points.
  std::vector<vtkIdType> ids(std::max<vtkIdType>(data->GetNumberOfPoints(), 0));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// theta_1 and theta_2 in [-pi, pi) at some points.
struct Angles
{
  std::vector<double> theta1;
  std::vector<double> theta2;

  Angles(vtkDataSet* data, const std::vector<vtkIdType>& ids)
    : theta1(ids.size())
    , theta2(ids.size())
  {
    vtkDataArray* first = data->GetPointData()->GetArray(Names::Theta1);
    vtkDataArray* second = data->GetPointData()->GetArray(Names::Theta2);
    const bool named = first != nullptr && second != nullptr &&
                       first->GetNumberOfComponents() == 1 && second->GetNumberOfComponents() == 1;
    ForEach(ids.size(),
      [&](std::size_t i)
      {
        double point[3];
        data->GetPoint(ids[i], point);
        this->theta1[i] = named ? first->GetComponent(ids[i], 0) : point[0];
        this->theta2[i] = named ? second->GetComponent(ids[i], 0) : point[1];
      });
    this->CheckFinite(ids);
    ForEach(ids.size(),
      [&](std::size_t i)
      {
        this->theta1[i] = atlas::WrapAngle(this->theta1[i]);
        this->theta2[i] = atlas::WrapAngle(this->theta2[i]);
      });
  }

private:
  /// Throws std::runtime_error with the first point whose angles are not finite.
  void CheckFinite(const std::vector<vtkIdType>& ids) const
  {
    for (std::size_t i = 0; i < ids.size(); ++i)
    {
      if (!std::isfinite(this->theta1[i]) || !std::isfinite(this->theta2[i]))
      {
        throw std::runtime_error(atlas::Concat("expected finite angles, found (", this->theta1[i],
          ", ", this->theta2[i], ") at point ", ids[i], "."));
      }
    }
  }
};

/// The array of vectors for the shape, or nullptr if there is none of this name. Throws if its
/// tuples are not vectors.
vtkDataArray* FindVectors(vtkDataSet* data, const std::string& name)
{
  vtkDataArray* array = data != nullptr ? data->GetPointData()->GetArray(name.c_str()) : nullptr;
  if (array != nullptr &&
      (array->GetNumberOfComponents() != 3 || array->GetDataType() == VTK_UNSIGNED_CHAR))
  {
    throw std::runtime_error("Vectors: expected a point array of 3 components, found '" + name +
                             "' with " + std::to_string(array->GetNumberOfComponents()) +
                             " components of " + array->GetDataTypeAsString() + ".");
  }
  return array;
}

/// Rows function(theta_1, theta_2) at some points.
template<class Function>
Rows3 MakeRows(const Angles& angles, Function&& function)
{
  Rows3 rows(angles.theta1.size(), 3);
  ForEach(angles.theta1.size(),
    [&](std::int64_t i) { rows.row(i) = function(angles.theta1[i], angles.theta2[i]); });
  return rows;
}

/// The vectors of an array at some points.
Rows3 VectorsAt(vtkDataArray* array, const std::vector<vtkIdType>& ids)
{
  Rows3 vectors(ids.size(), 3);
  ForEach(ids.size(), [&](std::int64_t i) { array->GetTuple(ids[i], vectors.row(i).data()); });
  return vectors;
}

/// Interpolates the vectors of a chart bilinearly between its points.
Rows3 InterpolateChart(
  vtkDataSet* chart, const TorusGrid& grid, vtkDataArray* array, const Angles& angles)
{
  std::array<double, 4> bounds;
  std::copy_n(chart->GetBounds(), bounds.size(), bounds.begin());
  return MakeRows(angles,
    [&](double theta1, double theta2)
    {
      Eigen::RowVector3d sum = Eigen::RowVector3d::Zero();
      for (const atlas::GridCorner& corner : atlas::BilinearCorners(grid, bounds, theta1, theta2))
      {
        Eigen::RowVector3d value;
        array->GetTuple(corner.point, value.data());
        sum += corner.weight * value;
      }
      return sum;
    });
}

/// Rows of numbers as an array of floats.
vtkSmartPointer<vtkFloatArray> ToArray(const char* name, const Rows3& rows)
{
  const auto array = NewTuples<vtkFloatArray>(name, 3, rows.rows());
  ForEach(rows.rows(), [&](std::int64_t i) { array->SetTuple(i, rows.row(i).data()); });
  return array;
}

/// The outer surface of a dataset that is not a chart; vertices and lines are kept.
vtkSmartPointer<vtkPolyData> SurfaceOf(vtkDataSet* data)
{
  auto surface = vtkSmartPointer<vtkPolyData>::New();
  if (auto* polyData = vtkPolyData::SafeDownCast(data))
  {
    surface->ShallowCopy(polyData);
    return surface;
  }
  vtkNew<vtkDataSetSurfaceFilter> filter;
  filter->SetInputData(data);
  filter->Update();
  surface->ShallowCopy(filter->GetOutput());
  return surface;
}

/// Computes normals of arbitrary polygons, for which there is no formula.
void ComputeNormals(vtkPolyData* surface)
{
  vtkNew<vtkPolyDataNormals> filter;
  filter->SetInputData(surface);
  filter->SplittingOff();
  filter->ConsistencyOff();
  filter->Update();
  surface->GetPointData()->SetNormals(filter->GetOutput()->GetPointData()->GetNormals());
}

/// Requests the whole input on each rank.
void RequestWhole(vtkInformation* info)
{
  if (info == nullptr)
  {
    return;
  }
  if (info->Has(SDDP::WHOLE_EXTENT()))
  {
    info->Set(SDDP::UPDATE_EXTENT(), info->Get(SDDP::WHOLE_EXTENT()), 6);
  }
  info->Set(SDDP::UPDATE_PIECE_NUMBER(), 0);
  info->Set(SDDP::UPDATE_NUMBER_OF_PIECES(), 1);
  info->Set(SDDP::UPDATE_NUMBER_OF_GHOST_LEVELS(), 0);
}

/// The data from which the shape is computed.
struct Form
{
  bool isDonut = true;
  atlas::Donut donut;
  atlas::Normalization normalization = atlas::Normalization::None;
  std::string vectors;
  vtkDataSet* reference = nullptr;

  /// The arrays of vectors, of which one may be missing.
  struct Arrays
  {
    vtkDataArray* own;
    vtkDataArray* others; ///< of the reference
    TorusGrid grid;       ///< of the reference, if it is a chart
  };

  Arrays FindArrays(vtkDataSet* data) const
  {
    const Arrays arrays = { FindVectors(data, this->vectors),
      FindVectors(this->reference, this->vectors), FindGrid(this->reference) };
    if (arrays.own == nullptr && (arrays.others == nullptr || arrays.grid.columns == 0))
    {
      throw std::runtime_error("Vectors: expected a point array of 3 components in the input, or "
                               "in a chart as Reference, found none named '" +
                               this->vectors +
                               "'. Output and the like are Quantities of Attention Torus.");
    }
    if (this->reference != nullptr && arrays.others == nullptr)
    {
      throw std::runtime_error(
        "Reference: expected the point array '" + this->vectors + "', which is in the input.");
    }
    return arrays;
  }

  Rows3 Points(vtkDataSet* data, const std::vector<vtkIdType>& ids, const Angles& angles) const
  {
    if (this->isDonut)
    {
      return MakeRows(
        angles, [this](double theta1, double theta2) { return this->donut.Point(theta1, theta2); });
    }
    const Arrays arrays = this->FindArrays(data);
    const Rows3 own = arrays.own != nullptr
                        ? VectorsAt(arrays.own, ids)
                        : InterpolateChart(this->reference, arrays.grid, arrays.others, angles);
    return atlas::Normalize(own,
      arrays.others != nullptr
        ? VectorsAt(arrays.others, DistinctPoints(this->reference, arrays.grid))
        : own,
      this->normalization);
  }
};

/// Reads the vectors of the distinct rows of a chart.
atlas::PointRow RowsOf(vtkDataArray* array, const TorusGrid& grid)
{
  const vtkIdType columns = grid.DistinctColumns();
  const vtkIdType step = grid.columns;
  if (auto* floats = vtkFloatArray::SafeDownCast(array))
  {
    const float* values = floats->GetPointer(0);
    return [=](std::int64_t row, double* points)
    { std::copy_n(values + 3 * row * step, 3 * columns, points); };
  }
  return [=](std::int64_t row, double* points)
  {
    for (vtkIdType i = 0; i < columns; ++i)
    {
      array->GetTuple(row * step + i, points + 3 * i);
    }
  };
}

/// Reads rows of vectors that are in memory, `perRow` at a time.
atlas::VectorBlocks BlocksOf(const Rows3& vectors, std::int64_t perBlock)
{
  return { vectors.rows(), perBlock, [&vectors, perBlock](std::int64_t block, double* values)
    {
      const std::int64_t first = block * perBlock;
      const std::int64_t count = std::min<std::int64_t>(perBlock, vectors.rows() - first);
      std::copy_n(vectors.data() + 3 * first, 3 * count, values);
    } };
}

/// Places the points of a chart at its vectors, or at those of the reference.
void PlaceVectors(const Form& form, const TorusGrid& grid, vtkDataSet* input, DeformedChart& chart,
  vtkPolyData* output)
{
  const Form::Arrays arrays = form.FindArrays(input);
  Rows3 interpolated;
  atlas::PointRow read;
  const std::int64_t columns = grid.DistinctColumns();
  if (arrays.own != nullptr)
  {
    read = RowsOf(arrays.own, grid);
  }
  else
  {
    interpolated = InterpolateChart(
      form.reference, arrays.grid, arrays.others, Angles(input, DistinctPoints(input, grid)));
    read = BlocksOf(interpolated, columns).read;
  }
  Rows3 others;
  atlas::VectorBlocks reference;
  if (arrays.others != nullptr)
  {
    constexpr std::int64_t perBlock = 4096;
    others = VectorsAt(arrays.others, DistinctPoints(form.reference, arrays.grid));
    reference = BlocksOf(others, perBlock);
  }
  const atlas::VectorNormalizer normalizer({ columns * grid.DistinctRows(), columns, read },
    arrays.others != nullptr ? &reference : nullptr, form.normalization, ThreadLimit());
  chart.PlaceVectors(
    [&](std::int64_t row, double* points)
    {
      read(row, points);
      normalizer.Apply(points, columns);
    },
    output);
}

/// Deforms data that is not a chart: token pairs, contour lines, any surface.
void DeformOther(
  const Form& form, vtkDataSet* input, const atlas::Progress& progress, vtkPolyData* output)
{
  const vtkSmartPointer<vtkPolyData> surface = SurfaceOf(input);
  progress(0.3);
  const std::vector<vtkIdType> ids = DistinctPoints(surface, TorusGrid());
  const Angles angles(surface, ids);
  output->ShallowCopy(surface);
  if (ids.empty())
  {
    return;
  }
  vtkNew<vtkPoints> moved;
  moved->SetData(ToArray("Points", form.Points(surface, ids, angles)));
  output->SetPoints(moved);
  ListArrays(angles.theta1, output->GetPointData()).Float(Names::Theta1);
  ListArrays(angles.theta2, output->GetPointData()).Float(Names::Theta2);
  progress(0.6);
  if (output->GetNumberOfPolys() + output->GetNumberOfStrips() == 0)
  {
    return;
  }
  if (form.isDonut)
  {
    const auto normal = [&](double theta1, double theta2)
    { return form.donut.Normal(theta1, theta2); };
    output->GetPointData()->SetNormals(ToArray("Normals", MakeRows(angles, normal)));
  }
  else
  {
    ComputeNormals(output);
  }
}

}

vtkStandardNewMacro(vtkTorusDeformation);

static_assert(vtkTorusDeformation::NONE == static_cast<int>(atlas::Normalization::None));
static_assert(vtkTorusDeformation::PER_AXIS == static_cast<int>(atlas::Normalization::PerAxis));
static_assert(vtkTorusDeformation::WHITENED == static_cast<int>(atlas::Normalization::Whitened));
static_assert(
  vtkTorusDeformation::UNIT_SPHERE == static_cast<int>(atlas::Normalization::UnitSphere));

vtkTorusDeformation::vtkTorusDeformation()
  : vtkTaskAlgorithm({ "vtkDataSet", "vtkDataSet?" }, { "vtkPolyData" })
  , Chart(std::make_unique<DeformedChart>())
{
  this->SetInputArrayToProcess(0, 0, 0, vtkDataObject::FIELD_ASSOCIATION_POINTS, Names::Output);
}

int vtkTorusDeformation::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  RequestWhole(inputVector[0]->GetInformationObject(0));
  RequestWhole(inputVector[1]->GetInformationObject(0));
  return 1;
}

void vtkTorusDeformation::Execute(Task& task)
{
  auto* input = task.Input<vtkDataSet>();
  auto* output = task.Output<vtkPolyData>();
  vtkInformation* info = task.OutputInformation();
  const int piece = info->Get(SDDP::UPDATE_PIECE_NUMBER());
  const int pieces = std::max(info->Get(SDDP::UPDATE_NUMBER_OF_PIECES()), 1);
  Form form;
  form.isDonut = this->Shape == DONUT;
  form.donut = { this->MajorRadius, this->MinorRadius };
  form.normalization = static_cast<atlas::Normalization>(this->Normalization);
  const char* name = this->GetInputArrayInformation(0)->Get(vtkDataObject::FIELD_NAME());
  form.vectors = name != nullptr ? name : "";
  form.reference = task.Input<vtkDataSet>(1);
  if (form.isDonut)
  {
    atlas::CheckDonut(form.donut);
  }
  const TorusGrid grid = FindGrid(input);
  RequireMemory(
    BytesPerMovedPoint * static_cast<double>(std::max<vtkIdType>(input->GetNumberOfPoints(), 0)),
    "the surface of " + std::to_string(input->GetNumberOfPoints()) + " points",
    "lower the Resolution of the chart.");
  if (grid.columns > 0)
  {
    this->Chart->Begin(vtkImageData::SafeDownCast(input), grid, piece, pieces, output);
    task.Progress()(0.5);
    if (form.isDonut)
    {
      this->Chart->PlaceDonut(form.donut, output);
    }
    else
    {
      PlaceVectors(form, grid, input, *this->Chart, output);
    }
  }
  else if (piece == 0)
  {
    DeformOther(form, input, task.Progress(), output);
  }
  output->GetFieldData()->PassData(input->GetFieldData());
  SetFormat(output, Formats::TorusDeformation);
}
