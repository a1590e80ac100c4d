#include "vtkHarmonicHead.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "AttentionOnly/Harmonics.h"
#include "Base/Error.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Task.h"
#include "TorusChart.h"

#include <vtkDataObject.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

constexpr int HarmonicCount = static_cast<int>(atlas::HarmonicCount);
static_assert(vtkHarmonicHead::PARAMETER == vtkHarmonicHead::COEFFICIENT + HarmonicCount);

/// The requested time, clamped to the sweep.
double RequestedTime(vtkInformation* info)
{
  const double time =
    info->Has(SDDP::UPDATE_TIME_STEP()) != 0 ? info->Get(SDDP::UPDATE_TIME_STEP()) : 0;
  return std::clamp(time, 0., 1.);
}

}

vtkStandardNewMacro(vtkHarmonicHead);

vtkHarmonicHead::vtkHarmonicHead()
  : vtkTaskAlgorithm({}, { "vtkImageData" })
{
}

void vtkHarmonicHead::SetCoefficient(int harmonic, double coefficient)
{
  if (harmonic < 0 || harmonic >= HarmonicCount)
  {
    vtkErrorMacro("SetCoefficient: expected a harmonic from 0 to "
                  << HarmonicCount - 1 << ", found " << harmonic << ".");
    return;
  }
  if (this->Coefficients[harmonic] != coefficient)
  {
    this->Coefficients[harmonic] = coefficient;
    this->Modified();
  }
}

double vtkHarmonicHead::GetCoefficient(int harmonic) const
{
  return harmonic >= 0 && harmonic < HarmonicCount ? this->Coefficients[harmonic] : 0;
}

double vtkHarmonicHead::SweptValueAt(double time) const
{
  return (1 - time) * this->SweepRange[0] + time * this->SweepRange[1];
}

/// Throws std::runtime_error if the score does not depend on the swept parameter.
void vtkHarmonicHead::CheckSweep() const
{
  const bool isCoefficient =
    this->SweptParameter >= COEFFICIENT && this->SweptParameter < PARAMETER;
  const bool isOfProduct = this->SweptParameter >= PARAMETER;
  atlas::ThrowIf<std::runtime_error>((isCoefficient && this->Parametrization == PRODUCT) ||
                                       (isOfProduct && this->Parametrization == COEFFICIENTS),
    atlas::Concat("SweptParameter: expected a parameter of the Parametrization ",
      (isOfProduct ? "Coefficients, found one of the Product." : "Product, found a coefficient.")));
  if (!isCoefficient || !this->Ties)
  {
    return;
  }
  const auto harmonic = static_cast<atlas::Harmonic>(this->SweptParameter - COEFFICIENT);
  if (harmonic == atlas::Harmonic::CosTwiceT2 || harmonic == atlas::Harmonic::SinTwiceT2)
  {
    const std::string sum = harmonic == atlas::Harmonic::CosTwiceT2 ? "cos(t1+t2)" : "sin(t1+t2)";
    throw std::runtime_error(
      "SweptParameter: expected a free coefficient, found one that Ties makes follow from " + sum +
      ": sweep that, or switch Ties off.");
  }
}

atlas::HarmonicCoefficients vtkHarmonicHead::CoefficientsAt(double time) const
{
  atlas::HarmonicCoefficients coefficients;
  std::copy(std::begin(this->Coefficients), std::end(this->Coefficients), coefficients.begin());
  atlas::ProductParameters product = { this->A, this->Alpha, this->B, this->C, this->Gamma,
    this->D };
  this->CheckSweep();
  if (this->SweptParameter >= PARAMETER)
  {
    double* const parameters[] = { &product.a, &product.alpha, &product.b, &product.c,
      &product.gamma, &product.d };
    *parameters[this->SweptParameter - PARAMETER] = this->SweptValueAt(time);
  }
  else if (this->IsSwept())
  {
    coefficients[this->SweptParameter - COEFFICIENT] = this->SweptValueAt(time);
  }
  if (this->Parametrization == PRODUCT)
  {
    return atlas::ProductHarmonics(product);
  }
  if (this->Ties)
  {
    atlas::ApplyTies(coefficients);
  }
  return coefficients;
}

int vtkHarmonicHead::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkInformation* info = outputVector->GetInformationObject(0);
  DescribeChart(this->Resolution, info);
  std::vector<double> times;
  for (int step = 0; this->IsSwept() && step < this->SweepSteps; ++step)
  {
    times.push_back(static_cast<double>(step) / (this->SweepSteps - 1));
  }
  SetTimeSteps(info, times);
  return 1;
}

void vtkHarmonicHead::Execute(Task& task)
{
  vtkInformation* info = task.OutputInformation();
  auto* output = task.Output<vtkImageData>();
  const int* extent = info->Get(SDDP::UPDATE_EXTENT());
  PrepareChart(this->Resolution, extent, output);
  const double columns = extent[1] - extent[0] + 1.;
  const double rows = extent[3] - extent[2] + 1.;
  // Two arrays, and tables for the angles of the columns.
  RequireMemory(columns * (2 * sizeof(float) * rows + 4 * sizeof(double)),
    "Resolution: a chart of " + std::to_string(extent[1] - extent[0] + 1) + " x " +
      std::to_string(extent[3] - extent[2] + 1) + " points with 2 arrays",
    "lower Resolution.");
  const double time = RequestedTime(info);
  const atlas::HarmonicCoefficients coefficients = this->CoefficientsAt(time);
  std::vector<double> theta1;
  for (int i = extent[0]; i <= extent[1]; ++i)
  {
    theta1.push_back(ChartAngle(i, this->Resolution[0]));
  }
  this->Evaluate({ coefficients, static_cast<atlas::Pattern>(this->Pattern), theta1 }, task);
  SetFormat(output, Formats::HarmonicHead);
  output->GetFieldData()->AddArray(MakeArray<vtkDoubleArray>(Names::Coefficients, coefficients));
  if (this->IsSwept())
  {
    AddField(output->GetFieldData(), Names::SweptValue, this->SweptValueAt(time));
    output->GetInformation()->Set(vtkDataObject::DATA_TIME_STEP(), time);
  }
}

/// Computes the arrays of the part of the chart that is asked for.
void vtkHarmonicHead::Evaluate(const atlas::HarmonicField& field, const Task& task) const
{
  const int* extent = task.OutputInformation()->Get(SDDP::UPDATE_EXTENT());
  const vtkIdType columns = extent[1] - extent[0] + 1;
  const vtkIdType rows = extent[3] - extent[2] + 1;
  const auto score = NewArray<vtkFloatArray>(Names::Score, columns * rows);
  const auto attention = NewArray<vtkFloatArray>(Names::Attention, columns * rows);
  ParallelSteps(rows, rows / 8 + 1, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType row = begin; row < end; ++row)
      {
        const int index = extent[2] + static_cast<int>(row);
        field.EvaluateRow(ChartAngle(index, this->Resolution[1]), score->GetPointer(row * columns),
          attention->GetPointer(row * columns));
      }
    });
  auto* output = task.Output<vtkImageData>();
  output->GetPointData()->AddArray(score);
  output->GetPointData()->AddArray(attention);
  output->GetPointData()->SetActiveScalars(Names::Score);
  CacheRanges(output->GetPointData());
}
