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

#include <array>
#include <cmath>
#include <cstddef>

namespace AttentionAtlas
{
namespace
{

void SetComponentRanges(vtkInformation* information, vtkInformationInformationVectorKey* key,
  const atlas::ValueRanges& ranges)
{
  vtkNew<vtkInformationVector> components;
  components->SetNumberOfInformationObjects(static_cast<int>(ranges.least.size()));
  for (std::size_t c = 0; c < ranges.least.size(); ++c)
  {
    const std::array<double, 2> range = { ranges.least[c], ranges.largest[c] };
    components->GetInformationObject(static_cast<int>(c))
      ->Set(vtkDataArray::COMPONENT_RANGE(), range.data(), 2);
  }
  information->Set(key, components);
}

/// The ranges of the tuples begin <= i < end; none for an array of another type.
atlas::ValueRanges RangesOf(vtkDataArray* array, vtkIdType begin, vtkIdType end)
{
  const int components = array->GetNumberOfComponents();
  if (begin >= end || components == 0)
  {
    return {};
  }
  const vtkIdType first = begin * components;
  if (auto* floats = vtkFloatArray::SafeDownCast(array))
  {
    return atlas::RangesOf(floats->GetPointer(first), components, end - begin);
  }
  if (auto* integers = vtkIntArray::SafeDownCast(array))
  {
    return atlas::RangesOf(integers->GetPointer(first), components, end - begin);
  }
  if (auto* bytes = vtkUnsignedCharArray::SafeDownCast(array))
  {
    return atlas::RangesOf(bytes->GetPointer(first), components, end - begin);
  }
  return {};
}

void StoreRanges(vtkDataArray* array, const atlas::ValueRanges& ranges)
{
  if (ranges.least.empty())
  {
    return;
  }
  vtkInformation* information = array->GetInformation();
  SetComponentRanges(information, vtkAbstractArray::PER_COMPONENT(), ranges);
  SetComponentRanges(information, vtkAbstractArray::PER_FINITE_COMPONENT(), ranges);
  if (array->GetNumberOfComponents() > 1)
  {
    const std::array<double, 2> length = { std::sqrt(ranges.leastSquare),
      std::sqrt(ranges.largestSquare) };
    information->Set(vtkDataArray::L2_NORM_RANGE(), length.data(), 2);
    information->Set(vtkDataArray::L2_NORM_FINITE_RANGE(), length.data(), 2);
  }
}

}

RangeCollector::RangeCollector(const std::vector<vtkDataArray*>& arrays)
  : Arrays(arrays)
  , Ranges(arrays.size())
{
}

void RangeCollector::Add(vtkIdType begin, vtkIdType end)
{
  std::vector<atlas::ValueRanges> parts;
  parts.reserve(this->Arrays.size());
  for (vtkDataArray* array : this->Arrays)
  {
    parts.push_back(RangesOf(array, begin, end));
  }
  const std::lock_guard<std::mutex> lock(this->Mutex);
  for (std::size_t i = 0; i < parts.size(); ++i)
  {
    this->Ranges[i].Join(parts[i]);
  }
}

void RangeCollector::Store() const
{
  for (std::size_t i = 0; i < this->Arrays.size(); ++i)
  {
    StoreRanges(this->Arrays[i], this->Ranges[i]);
  }
}

void CacheRanges(vtkDataSetAttributes* attributes)
{
  for (int i = 0; i < attributes->GetNumberOfArrays(); ++i)
  {
    if (vtkDataArray* array = attributes->GetArray(i))
    {
      constexpr vtkIdType few = 16384; // sooner done than other threads are awake
      RangeCollector ranges({ array });
      const vtkIdType tuples = array->GetNumberOfTuples();
      if (tuples <= few)
      {
        ranges.Add(0, tuples);
      }
      else
      {
        ParallelFor(0, tuples, [&](vtkIdType begin, vtkIdType end) { ranges.Add(begin, end); });
      }
      ranges.Store();
    }
  }
}

}
