#pragma once

#include "Core/HandModel.h"
#include "Pipeline.h"
#include "vtkAttentionTorus.h"

#include <vtkDataArraySelection.h>

#include <Eigen/Core>

namespace atlas::test
{

inline const double Pi = std::acos(-1.0);

/// An AttentionTorus with a model to evaluate.
class Torus : public On<vtkAttentionTorus>
{
public:
  explicit Torus(const AttentionOnlyModel& model)
    : On(DataSetOf(model))
  {
  }

  /// Of these quantities alone.
  void Choose(std::initializer_list<const char*> quantities)
  {
    this->Get()->DisableAllQuantities();
    for (const char* name : quantities)
    {
      this->Get()->SetQuantityArrayStatus(name, 1);
    }
  }
  void ChooseAll() { this->Get()->GetQuantities()->EnableAllArrays(); }

  void SetPoints(vtkDataSet* points) { Connect(this->Get(), 1, points); }

  vtkDataSet* Update() { return this->Output(); }
  vtkDataSet* GetOutput() { return OutputOf<vtkDataSet>(this->Get()); }
};

/// Name, type and components of each array, if several: "Output float 3".
inline std::set<std::string> TypesOf(vtkFieldData* fields)
{
  std::set<std::string> types;
  for (int i = 0; i < fields->GetNumberOfArrays(); ++i)
  {
    vtkAbstractArray* array = fields->GetAbstractArray(i);
    const int components = array->GetNumberOfComponents();
    types.insert(std::string(array->GetName()) + " " + array->GetDataTypeAsString() +
                 (components > 1 ? " " + std::to_string(components) : ""));
  }
  return types;
}

inline Eigen::Vector3d PointOf(vtkPolyData* data, vtkIdType id)
{
  return Eigen::Vector3d(data->GetPoint(id));
}

/// The ids of the points of each cell.
inline std::vector<std::vector<std::int64_t>> CellsOf(vtkCellArray* array)
{
  std::vector<std::vector<std::int64_t>> cells;
  for (vtkIdType c = 0; c < array->GetNumberOfCells(); ++c)
  {
    vtkIdType size = 0;
    const vtkIdType* ids = nullptr;
    array->GetCellAtId(c, size, ids);
    cells.emplace_back(ids, ids + size);
  }
  return cells;
}

/// The angles along one axis of a chart.
inline std::vector<double> Axis(int resolution)
{
  std::vector<double> angles;
  for (int i = 0; i < resolution; ++i)
  {
    angles.push_back(-Pi + 2 * Pi * i / (resolution - 1));
  }
  return angles;
}

/// Points of a torus in the order of an image, or any others: theta_1 and theta_2 of each.
struct Angles
{
  std::vector<double> theta1;
  std::vector<double> theta2;

  void Add(double first, double second)
  {
    this->theta1.push_back(first);
    this->theta2.push_back(second);
  }
  std::size_t Count() const { return this->theta1.size(); }
  vtkSmartPointer<vtkPolyData> AsPoints() const { return PointsAt(this->theta1, this->theta2); }
};

inline Angles Grid(int columns, int rows)
{
  Angles grid;
  for (const double theta2 : Axis(rows))
  {
    for (const double theta1 : Axis(columns))
    {
      grid.Add(theta1, theta2);
    }
  }
  return grid;
}

/// `count` points that cover the torus evenly.
inline Angles Lattice(int count)
{
  const double golden = (std::sqrt(5.0) - 1) / 2;
  Angles lattice;
  for (int i = 0; i < count; ++i)
  {
    double whole = 0;
    lattice.Add(-Pi + 2 * Pi * i / count, -Pi + 2 * Pi * std::modf(i * golden, &whole));
  }
  return lattice;
}

}
