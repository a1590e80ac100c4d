#include "ArrayRanges.h"

#include "Execution.h"

#include <vtkDataArray.h>
#include <vtkDataSetAttributes.h>
#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationDoubleVectorKey.h>
#include <vtkInformationInformationVectorKey.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <vector>

#include <Eigen/Core>

namespace AttentionAtlas
{
namespace
{

/// Least and largest value of each component, and of the squared length of tuples.
struct Ranges
{
  Eigen::ArrayXd least;
  Eigen::ArrayXd largest;
  double leastSquare = 0;
  double largestSquare = 0;

  void Join(const Ranges& other)
  {
    if (this->least.size() == 0)
    {
      *this = other;
      return;
    }
    this->least = this->least.min(other.least);
    this->largest = this->largest.max(other.largest);
    this->leastSquare = std::min(this->leastSquare, other.leastSquare);
    this->largestSquare = std::max(this->largestSquare, other.largestSquare);
  }
};

template<class Value>
Ranges RangesOf(const Value* values, Eigen::Index components, Eigen::Index tuples)
{
  Ranges ranges;
  if (components == 1)
  {
    const Eigen::Map<const Eigen::Array<Value, Eigen::Dynamic, 1>> all(values, tuples);
    ranges.least.setConstant(1, static_cast<double>(all.minCoeff()));
    ranges.largest.setConstant(1, static_cast<double>(all.maxCoeff()));
    return ranges;
  }
  const Eigen::Map<const Eigen::Array<Value, Eigen::Dynamic, Eigen::Dynamic>> all(
    values, components, tuples);
  Eigen::Array<Value, Eigen::Dynamic, 1> least = all.col(0);
  Eigen::Array<Value, Eigen::Dynamic, 1> largest = all.col(0);
  ranges.leastSquare = ranges.largestSquare = all.col(0).template cast<double>().square().sum();
  for (Eigen::Index i = 1; i < tuples; ++i)
  {
    double square = 0;
    for (Eigen::Index c = 0; c < components; ++c)
    {
      const Value value = all(c, i);
      least[c] = std::min(least[c], value);
      largest[c] = std::max(largest[c], value);
      square += static_cast<double>(value) * static_cast<double>(value);
    }
    ranges.leastSquare = std::min(ranges.leastSquare, square);
    ranges.largestSquare = std::max(ranges.largestSquare, square);
  }
  ranges.least = least.template cast<double>();
  ranges.largest = largest.template cast<double>();
  return ranges;
}

void SetComponentRanges(
  vtkInformation* information, vtkInformationInformationVectorKey* key, const Ranges& ranges)
{
  vtkNew<vtkInformationVector> components;
  components->SetNumberOfInformationObjects(static_cast<int>(ranges.least.size()));
  for (Eigen::Index c = 0; c < ranges.least.size(); ++c)
  {
    const std::array<double, 2> range = { ranges.least[c], ranges.largest[c] };
    components->GetInformationObject(static_cast<int>(c))
      ->Set(vtkDataArray::COMPONENT_RANGE(), range.data(), 2);
  }
  information->Set(key, components);
}

template<class Array>
void CacheRangesOf(Array* array)
{
  const vtkIdType tuples = array->GetNumberOfTuples();
  const int components = array->GetNumberOfComponents();
  if (tuples == 0 || components == 0)
  {
    return;
  }
  Ranges ranges;
  std::mutex mutex;
  ParallelFor(0, tuples,
    [&](vtkIdType begin, vtkIdType end)
    {
      const Ranges part = RangesOf(array->GetPointer(begin * components), components, end - begin);
      const std::lock_guard<std::mutex> lock(mutex);
      ranges.Join(part);
    });
  vtkInformation* information = array->GetInformation();
  SetComponentRanges(information, vtkAbstractArray::PER_COMPONENT(), ranges);
  SetComponentRanges(information, vtkAbstractArray::PER_FINITE_COMPONENT(), ranges);
  if (components > 1)
  {
    const std::array<double, 2> length = { std::sqrt(ranges.leastSquare),
      std::sqrt(ranges.largestSquare) };
    information->Set(vtkDataArray::L2_NORM_RANGE(), length.data(), 2);
    information->Set(vtkDataArray::L2_NORM_FINITE_RANGE(), length.data(), 2);
  }
}

}

void CacheRanges(vtkDataSetAttributes* attributes)
{
  for (int i = 0; i < attributes->GetNumberOfArrays(); ++i)
  {
    vtkAbstractArray* array = attributes->GetAbstractArray(i);
    if (auto* floats = vtkFloatArray::SafeDownCast(array))
    {
      CacheRangesOf(floats);
    }
    else if (auto* integers = vtkIntArray::SafeDownCast(array))
    {
      CacheRangesOf(integers);
    }
    else if (auto* bytes = vtkUnsignedCharArray::SafeDownCast(array))
    {
      CacheRangesOf(bytes);
    }
  }
}

}
