#include "ArrayRanges.h"

#include "Execution.h"
#include "ValueRanges.h"

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
#include <mutex>

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

template<class Array>
void CacheRangesOf(Array* array)
{
  const vtkIdType tuples = array->GetNumberOfTuples();
  const int components = array->GetNumberOfComponents();
  if (tuples == 0 || components == 0)
  {
    return;
  }
  atlas::ValueRanges ranges;
  std::mutex mutex;
  ParallelFor(0, tuples,
    [&](vtkIdType begin, vtkIdType end)
    {
      const atlas::ValueRanges part =
        atlas::RangesOf(array->GetPointer(begin * components), components, end - begin);
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
