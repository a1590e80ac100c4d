#include "vtkWordCircle.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/TorusAngles.h"
#include "Base/Pi.h"
#include "DataFormat.h"
#include "Drawing/ClassPalette.h"
#include "PolyOutput.h"
#include "Task.h"

#include <vtkCellData.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using Eigen::Vector3d;

const double Radius = std::sqrt(3.0);
constexpr int Segments = 256;
/// The size of the square relative to what it has to contain.
constexpr double Margin = 1.25;
constexpr atlas::Rgb LineColor = { 0, 60, 160 };
constexpr atlas::Rgb PlaneColor = { 205, 232, 240 };

double Angle(const Vector3d& e)
{
  return atlas::AngleOfEmbedding(e, atlas::AngleMap::Isometric);
}

Vector3d OnCircle(double angle)
{
  return atlas::EmbeddingAtAngle(angle, atlas::AngleMap::Isometric);
}

void SetTokens(const atlas::Rows3& embeddings, vtkPolyData* output)
{
  const std::int64_t tokens = embeddings.rows();
  std::vector<Vector3d> positions;
  std::vector<double> angles;
  std::vector<int> token;
  std::vector<bool> normalized;
  for (const bool isNormalized : { false, true })
  {
    for (std::int64_t t = 0; t < tokens; ++t)
    {
      const Vector3d raw = embeddings.row(t).transpose();
      const Vector3d e = atlas::LayerNorm(raw);
      positions.push_back(isNormalized ? e : raw);
      angles.push_back(Angle(e));
      token.push_back(static_cast<int>(t));
      normalized.push_back(isNormalized);
    }
  }
  vtkNew<vtkCellArray> lines;
  for (vtkIdType t = 0; t < tokens; ++t)
  {
    lines->InsertNextCell({ t, tokens + t });
  }
  vtkNew<vtkPoints> points;
  SetPoints(points, positions);
  output->SetPoints(points);
  output->SetVerts(Vertices(2 * tokens));
  output->SetLines(lines);
  vtkPointData* data = output->GetPointData();
  ListArrays(token, data).Int(Names::Token);
  ListArrays(angles, data).Float(Names::Angle);
  ListArrays(normalized, data).Int(Names::Normalized);
  AddColors(data, Names::ClassColor, token, atlas::ClassColor);
}

/// Half the side of the square around the circle and the projections of the embeddings.
double HalfSide(const atlas::Rows3& embeddings)
{
  double half = Radius;
  for (std::int64_t t = 0; t < embeddings.rows(); ++t)
  {
    const Eigen::RowVector3d row = embeddings.row(t);
    half = std::max(half, (row.array() - row.mean()).matrix().stableNorm());
  }
  return Margin * half;
}

void SetCircle(double halfSide, vtkPolyData* output)
{
  std::vector<Vector3d> positions;
  std::vector<double> angles;
  vtkNew<vtkCellArray> lines;
  lines->InsertNextCell(Segments + 1);
  for (int i = 0; i <= Segments; ++i)
  {
    angles.push_back(-atlas::Pi + 2 * atlas::Pi * i / Segments);
    positions.push_back(i < Segments ? OnCircle(angles.back()) : positions.front());
    lines->InsertCellPoint(i);
  }
  vtkNew<vtkCellArray> polygons;
  polygons->InsertNextCell(4);
  for (const double corner :
    { -3 * atlas::Pi / 4, -atlas::Pi / 4, atlas::Pi / 4, 3 * atlas::Pi / 4 })
  {
    polygons->InsertCellPoint(static_cast<vtkIdType>(positions.size()));
    positions.emplace_back(std::sqrt(2.0) / Radius * halfSide * OnCircle(corner));
    angles.push_back(corner);
  }
  vtkNew<vtkPoints> points;
  SetPoints(points, positions);
  output->SetPoints(points);
  output->SetLines(lines);
  output->SetPolys(polygons);
  ListArrays(angles, output->GetPointData()).Float(Names::Angle);
  AddColors(output->GetCellData(), Names::CircleColor, std::array{ LineColor, PlaneColor });
}

}

vtkStandardNewMacro(vtkWordCircle);

vtkWordCircle::vtkWordCircle()
  : vtkModelAlgorithm({ "vtkPolyData", "vtkPolyData" })
{
}

void vtkWordCircle::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* tokens = task.Output<vtkPolyData>(TOKENS);
  auto* circle = task.Output<vtkPolyData>(CIRCLE);
  SetTokens(model.wordEmbedding, tokens);
  SetFormat(tokens, Formats::EmbeddingTokens);
  SetCircle(HalfSide(model.wordEmbedding), circle);
  SetFormat(circle, Formats::WordCircle);
}
