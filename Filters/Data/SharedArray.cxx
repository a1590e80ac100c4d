#include "SharedArray.h"

#include <iterator>
#include <map>
#include <memory>
#include <mutex>

namespace AttentionAtlas
{
namespace
{

/// The owners of memory that VTK arrays point to. An array frees its memory through a function that
/// receives only the address.
class Owners
{
public:
  static Owners& Get()
  {
    static auto* owners = new Owners; // never destroyed, as arrays may live as long as the process
    return *owners;
  }

  void Add(const std::shared_ptr<void>& memory)
  {
    const std::lock_guard<std::mutex> lock(this->Mutex);
    this->Memory.emplace(memory.get(), memory);
  }

  /// Removes one owner of this address, the last one: there is one per array that points to it, and
  /// an owner may be a matrix that keeps an earlier array alive.
  void Remove(void* address)
  {
    std::shared_ptr<void> last; // released after the lock
    const std::lock_guard<std::mutex> lock(this->Mutex);
    const auto [first, end] = this->Memory.equal_range(address);
    if (first != end)
    {
      const auto found = std::prev(end);
      last = found->second;
      this->Memory.erase(found);
    }
  }

private:
  std::mutex Mutex;
  std::multimap<void*, std::shared_ptr<void>> Memory;
};

/// An array of this many values in the memory, which it keeps alive.
template<class Array, class Value>
vtkSmartPointer<Array> ShareMemory(const std::shared_ptr<Value>& memory, std::size_t count,
  std::int64_t components, const char* name)
{
  auto array = vtkSmartPointer<Array>::New();
  array->SetName(name);
  array->SetNumberOfComponents(static_cast<int>(components));
  if (count > 0)
  {
    Owners::Get().Add(memory);
    array->SetArray(memory.get(), static_cast<vtkIdType>(count), 0,
      vtkAbstractArray::VTK_DATA_ARRAY_USER_DEFINED);
    array->SetArrayFreeFunction([](void* address) { Owners::Get().Remove(address); });
  }
  return array;
}

/// The memory of an array, which keeps it alive.
template<class Array>
auto MemoryOf(Array* array)
{
  const vtkSmartPointer<Array> owner = array;
  using Value = typename Array::ValueType;
  return std::shared_ptr<Value>(array->GetPointer(0), [owner](Value*) {});
}

}

vtkSmartPointer<vtkFloatArray> ToArray(const atlas::SharedMatrix& matrix, const char* name)
{
  return ShareMemory<vtkFloatArray>(matrix.values, matrix.Count(), matrix.columns, name);
}

vtkSmartPointer<vtkUnsignedCharArray> ToArray(
  const std::shared_ptr<std::uint8_t>& bytes, std::int64_t tuples, int components, const char* name)
{
  const auto count = static_cast<std::size_t>(tuples) * static_cast<std::size_t>(components);
  return ShareMemory<vtkUnsignedCharArray>(bytes, count, components, name);
}

atlas::SharedMatrix ToMatrix(vtkFloatArray* array)
{
  return { array->GetNumberOfTuples(), array->GetNumberOfComponents(), MemoryOf(array) };
}

std::shared_ptr<std::uint8_t> ToBytes(vtkUnsignedCharArray* array)
{
  return MemoryOf(array);
}

}
