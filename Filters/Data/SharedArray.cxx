#include "SharedArray.h"

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

  void Add(const std::shared_ptr<float>& memory)
  {
    const std::lock_guard<std::mutex> lock(this->Mutex);
    this->Memory.emplace(memory.get(), memory);
  }

  /// Removes one owner of this address. There is one per array that points to it.
  void Remove(void* address)
  {
    std::shared_ptr<float> last; // released after the lock
    const std::lock_guard<std::mutex> lock(this->Mutex);
    const auto found = this->Memory.find(address);
    if (found != this->Memory.end())
    {
      last = found->second;
      this->Memory.erase(found);
    }
  }

private:
  std::mutex Mutex;
  std::multimap<void*, std::shared_ptr<float>> Memory;
};

}

vtkSmartPointer<vtkFloatArray> ToArray(const atlas::SharedMatrix& matrix, const char* name)
{
  auto array = vtkSmartPointer<vtkFloatArray>::New();
  array->SetName(name);
  array->SetNumberOfComponents(static_cast<int>(matrix.columns));
  if (matrix.Count() > 0)
  {
    Owners::Get().Add(matrix.values);
    array->SetArray(matrix.values.get(), static_cast<vtkIdType>(matrix.Count()), 0,
      vtkAbstractArray::VTK_DATA_ARRAY_USER_DEFINED);
    array->SetArrayFreeFunction([](void* address) { Owners::Get().Remove(address); });
  }
  return array;
}

atlas::SharedMatrix ToMatrix(vtkFloatArray* array)
{
  const vtkSmartPointer<vtkFloatArray> owner = array;
  return { array->GetNumberOfTuples(), array->GetNumberOfComponents(),
    std::shared_ptr<float>(array->GetPointer(0), [owner](float*) {}) };
}

}
