#include "vtkHeadAccuracySimplex.h"

#include "ArrayNames.h"
#include "AttentionOnly/AttentionOnlyModel.h"
#include "AttentionOnly/HeadAccuracy.h"
#include "AttentionOnly/MixtureRegions.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "PolyOutput.h"
#include "Task.h"

#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// A generous estimate of the bytes per point without target arrays: its position, its weights, two
/// cells.
constexpr double BytesPerPoint = 250;
/// A generous estimate of the bytes per pair during evaluation: its vectors and polygons.
constexpr double BytesPerPair = 400;

/// Where a mixture is in the plane of the triangle.
Eigen::Vector3d PlaceOf(const Eigen::Vector3d& weights)
{
  return { weights[0] + weights[1] / 2, weights[1] * std::sqrt(3.0) / 2, 0 };
}

/// The corners of the triangle, with the names of their heads.
void SetCorners(const int* heads, vtkPolyData* output)
{
  constexpr int below = 4; // as vtkTokenLabelsRepresentation has it
  constexpr int above = 5;
  vtkNew<vtkPoints> points;
  vtkNew<vtkStringArray> names;
  names->SetName(Names::Token);
  for (int c = 0; c < 3; ++c)
  {
    points->InsertNextPoint(PlaceOf(Eigen::Vector3d::Unit(c)).data());
    names->InsertNextValue("Head " + std::to_string(heads[c]));
  }
  output->SetPoints(points);
  output->SetVerts(Vertices(3));
  vtkPointData* data = output->GetPointData();
  ListArrays(std::array{ heads[0], heads[1], heads[2] }, data).Int(Names::Head);
  data->AddArray(names);
  ListArrays(std::array{ below, above, below }, data).Int(Names::Side);
}

/// The points of the triangle and their arrays. Rows may be written concurrently.
class SimplexTable
{
public:
  /// `pair`: the selected pair t1 N + t2, or -1 for none.
  SimplexTable(const atlas::HeadMixture& mixture, int segments, vtkIdType pair, int pairTarget)
    : Mixture(mixture)
    , Regions(mixture)
    , Segments(segments)
    , Pair(pair)
    , PairTarget(pairTarget)
    , Weights(atlas::SimplexGrid(segments))
    , Accuracy(NewTuples<vtkFloatArray>(Names::Accuracy, 1, this->Size()))
    , Barycentric(NewTuples<vtkFloatArray>(Names::Barycentric, 3, this->Size()))
  {
    this->Points->SetNumberOfPoints(this->Size());
    for (std::size_t k = 0; k < mixture.PairsByTarget().size(); ++k)
    {
      const std::string name = Names::AccuracyTarget + (" " + std::to_string(k));
      const bool occurs = mixture.PairsByTarget()[k] > 0;
      this->ByTarget.push_back(occurs ? NewTuples<vtkFloatArray>(name, 1, this->Size()) : nullptr);
    }
    if (pair >= 0)
    {
      this->CorrectPair = NewTuples<vtkIntArray>(Names::CorrectPair, 1, this->Size());
      this->Predicted = NewTuples<vtkIntArray>(Names::Predicted, 1, this->Size());
    }
  }

  vtkIdType Size() const { return static_cast<vtkIdType>(this->Weights.size()); }

  /// Sets the points c_1 = row / segments. `counts` only provides memory.
  void SetRow(int row, atlas::MixtureRow& counts)
  {
    this->Regions.EvaluateRow(this->Segments, row, counts);
    const vtkIdType length = this->Segments - row + 1;
    const vtkIdType begin = this->Size() - length * (length + 1) / 2;
    for (vtkIdType i = 0; i < length; ++i)
    {
      this->SetPoint(begin + i);
    }
    SetShares(this->Accuracy, begin, counts.correct.data(), length, this->Mixture.PairCount());
    for (std::size_t k = 0; k < this->ByTarget.size(); ++k)
    {
      if (this->ByTarget[k] != nullptr)
      {
        SetShares(this->ByTarget[k], begin,
          counts.correctByTarget.data() + k * static_cast<std::size_t>(length), length,
          this->Mixture.PairsByTarget()[k]);
      }
    }
  }

  void MoveTo(vtkPolyData* output)
  {
    output->SetPoints(this->Points);
    vtkNew<vtkCellArray> triangles;
    for (const auto& [a, b, c] : atlas::SimplexTriangles(this->Segments))
    {
      triangles->InsertNextCell({ a, b, c });
    }
    output->SetPolys(triangles);
    vtkPointData* data = output->GetPointData();
    data->AddArray(this->Accuracy);
    for (vtkFloatArray* array : this->ByTarget)
    {
      if (array != nullptr)
      {
        data->AddArray(array);
      }
    }
    if (this->Pair >= 0)
    {
      data->AddArray(this->CorrectPair);
      data->AddArray(this->Predicted);
    }
    data->AddArray(this->Barycentric);
    data->SetActiveScalars(Names::Accuracy);
  }

private:
  static void SetShares(
    vtkFloatArray* array, vtkIdType begin, const int* parts, vtkIdType count, std::int64_t whole)
  {
    for (vtkIdType i = 0; i < count; ++i)
    {
      array->SetValue(begin + i, static_cast<float>(atlas::PairAccuracy(parts[i], whole)));
    }
  }

  /// Sets the arrays that are not computed by rows.
  void SetPoint(vtkIdType point)
  {
    const Eigen::Vector3d& weights = this->Weights[point];
    this->Points->SetPoint(point, PlaceOf(weights).data());
    for (int c = 0; c < 3; ++c)
    {
      this->Barycentric->SetTypedComponent(point, c, static_cast<float>(weights[c]));
    }
    if (this->Pair >= 0)
    {
      const int predicted = this->Mixture.Predict(weights, this->Pair);
      this->CorrectPair->SetValue(point, predicted == this->PairTarget ? 1 : 0);
      this->Predicted->SetValue(point, predicted);
    }
  }

  const atlas::HeadMixture& Mixture;
  atlas::MixtureRegions Regions;
  int Segments;
  vtkIdType Pair;
  int PairTarget;
  std::vector<Eigen::Vector3d> Weights;
  vtkNew<vtkPoints> Points;
  vtkSmartPointer<vtkFloatArray> Accuracy;
  vtkSmartPointer<vtkFloatArray> Barycentric;
  std::vector<vtkSmartPointer<vtkFloatArray>> ByTarget; ///< nullptr if a target does not occur
  vtkSmartPointer<vtkIntArray> CorrectPair;
  vtkSmartPointer<vtkIntArray> Predicted;
};

}

vtkStandardNewMacro(vtkHeadAccuracySimplex);

vtkHeadAccuracySimplex::vtkHeadAccuracySimplex()
  : vtkModelAlgorithm({ "vtkPolyData", "vtkPolyData" })
{
}

/// Throws std::runtime_error if Resolution or Pair is invalid or needs too much memory.
void vtkHeadAccuracySimplex::CheckProperties(vtkIdType tokens) const
{
  atlas::ThrowIf<std::runtime_error>(this->Resolution < 1,
    atlas::Concat(
      "Resolution: expected at least 1 segment along each edge, found ", this->Resolution, "."));
  const auto isToken = [&](int token) { return token >= 0 && token < tokens; };
  const bool none = this->Pair[0] == -1 && this->Pair[1] == -1;
  atlas::ThrowIf<std::runtime_error>(!none && !(isToken(this->Pair[0]) && isToken(this->Pair[1])),
    atlas::Concat("Pair: expected two tokens from 0 to ", tokens - 1,
      ", or -1 and -1 for none, found ", this->Pair[0], " and ", this->Pair[1], "."));
  const double segments = this->Resolution;
  const double points = (segments + 1) * (segments + 2) / 2;
  const auto n = static_cast<double>(tokens);
  RequireMemory(points * (BytesPerPoint + n * sizeof(float)) + n * n * BytesPerPair,
    "Resolution: a triangle of " + std::to_string(this->Resolution) + " segments along each edge",
    "lower Resolution.");
}

void vtkHeadAccuracySimplex::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* output = task.Output<vtkPolyData>(TRIANGLE);
  auto* corners = task.Output<vtkPolyData>(CORNERS);
  const vtkIdType tokens = model.VocabularySize();
  this->CheckProperties(tokens);
  const atlas::HeadMixture mixture(model,
    { this->HeadIndices[0], this->HeadIndices[1], this->HeadIndices[2] },
    static_cast<atlas::Residual>(this->Residual));
  const bool hasPair = this->Pair[0] >= 0;
  SimplexTable table(mixture, this->Resolution,
    hasPair ? this->Pair[0] * tokens + this->Pair[1] : -1,
    hasPair ? static_cast<int>(model.nextToken(this->Pair[0], this->Pair[1])) : -1);
  const vtkIdType rows = static_cast<vtkIdType>(this->Resolution) + 1;
  ParallelSteps(rows, rows / 20 + 1, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      atlas::MixtureRow counts;
      for (vtkIdType row = begin; row < end; ++row)
      {
        table.SetRow(static_cast<int>(row), counts);
      }
    });
  table.MoveTo(output);
  SetFormat(output, Formats::HeadAccuracySimplex);
  SetCorners(this->HeadIndices, corners);
  SetFormat(corners, Formats::HeadAccuracySimplexCorners);
}
