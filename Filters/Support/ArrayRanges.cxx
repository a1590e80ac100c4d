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

/// Extends ranges by the tuples begin <= i < end, if the array is of one of three types.
void AddTuples(atlas::ValueRanges& ranges, vtkDataArray* array, vtkIdType begin, vtkIdType end)
{
  const int components = array->GetNumberOfComponents();
  if (begin >= end || components == 0)
  {
    return;
  }
  const auto add = [&](auto* values)
  {
    if (values != nullptr)
    {
      ranges.Add(values->GetPointer(begin * components), components, end - begin);
    }
  };
  add(vtkFloatArray::FastDownCast(array));
  add(vtkIntArray::FastDownCast(array));
  add(vtkUnsignedCharArray::FastDownCast(array));
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
  Part(*this).Add(begin, end);
}

RangeCollector::Part::Part(RangeCollector& all)
  : All(all)
  , Ranges(all.Arrays.size())
{
}

RangeCollector::Part::~Part()
{
  const std::lock_guard<std::mutex> lock(this->All.Mutex);
  for (std::size_t i = 0; i < this->Ranges.size(); ++i)
  {
    this->All.Ranges[i].Join(this->Ranges[i]);
  }
}

void RangeCollector::Part::Add(vtkIdType begin, vtkIdType end)
{
  for (std::size_t i = 0; i < this->Ranges.size(); ++i)
  {
    AddTuples(this->Ranges[i], this->All.Arrays[i], begin, end);
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
      const auto add = [&](vtkIdType begin, vtkIdType end) { ranges.Add(begin, end); };
      tuples <= few ? add(0, tuples) : ParallelFor(0, tuples, add);
      ranges.Store();
    }
  }
}

}
