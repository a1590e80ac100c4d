#include "ArrayPool.h"

#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkIntArray.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>

namespace AttentionAtlas
{
namespace
{

/// KiB of all arrays that are kept.
constexpr unsigned long Limit = 512UL * 1024;

/// The memory of an array, which a shallow copy of the array shares.
template<class Array>
struct BufferOf : Array
{
  static auto Member() { return &BufferOf::Buffer; }
};

template<class Array>
bool OwnsItsBuffer(vtkDataArray* array)
{
  auto* typed = Array::SafeDownCast(array);
  return typed == nullptr || (typed->*BufferOf<Array>::Member())->GetReferenceCount() == 1;
}

/// Whether nobody else holds the array or its memory.
bool IsFree(const vtkSmartPointer<vtkDataArray>& array)
{
  return array->GetReferenceCount() == 1 && OwnsItsBuffer<vtkFloatArray>(array) &&
         OwnsItsBuffer<vtkIntArray>(array) && OwnsItsBuffer<vtkUnsignedCharArray>(array);
}

}

vtkSmartPointer<vtkDataArray> ArrayPool::Take(int type, int components, vtkIdType tuples)
{
  const auto free = std::find_if(this->Arrays.begin(), this->Arrays.end(),
    [&](const vtkSmartPointer<vtkDataArray>& array)
    {
      return IsFree(array) && array->GetDataType() == type &&
             array->GetNumberOfComponents() == components && array->GetNumberOfTuples() == tuples;
    });
  if (free != this->Arrays.end())
  {
    (*free)->SetName(nullptr);
    (*free)->GetInformation()->Clear();
    (*free)->Modified();
    return *free;
  }
  const auto array = vtkSmartPointer<vtkDataArray>::Take(vtkDataArray::CreateDataArray(type));
  array->SetNumberOfComponents(components);
  array->SetNumberOfTuples(tuples);
  this->Arrays.push_back(array);
  return array;
}

void ArrayPool::ForgetFree()
{
  this->Arrays.erase(
    std::remove_if(this->Arrays.begin(), this->Arrays.end(), IsFree), this->Arrays.end());
  unsigned long size = 0;
  for (const vtkSmartPointer<vtkDataArray>& array : this->Arrays)
  {
    size += array->GetActualMemorySize();
  }
  if (size > Limit)
  {
    this->Arrays.clear();
  }
}

}
