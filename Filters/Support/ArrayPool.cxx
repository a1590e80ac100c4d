#include "ArrayPool.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace AttentionAtlas
{
namespace
{

/// Bytes of all arrays that are kept.
constexpr std::size_t Limit = std::size_t{ 512 } << 20U;

}

/// Memory for the values of an array. Arrays that share it, as shallow copies do, free it together.
struct ArrayPool::Block
{
  /// Which arrays hold now.
  struct Lent
  {
    std::mutex mutex;
    std::map<void*, std::shared_ptr<Block>> blocks;
  };

  explicit Block(std::size_t bytes)
    : Bytes(bytes)
    , Memory(std::malloc(bytes))
  {
    if (this->Memory == nullptr && bytes > 0)
    {
      throw std::bad_alloc();
    }
  }
  ~Block() { std::free(this->Memory); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  static Lent& OfAll()
  {
    static auto* lent = new Lent; // arrays may outlive it
    return *lent;
  }

  /// The memory, for an array, which calls Return in the end.
  static void* Lend(const std::shared_ptr<Block>& block)
  {
    Lent& lent = OfAll();
    const std::lock_guard<std::mutex> lock(lent.mutex);
    lent.blocks[block->Memory] = block;
    return block->Memory;
  }

  /// Called with the values that arrays held, which are others once an array has another size.
  static void Return(void* values)
  {
    Lent& lent = OfAll();
    const std::lock_guard<std::mutex> lock(lent.mutex);
    if (lent.blocks.erase(values) == 0)
    {
      std::free(values);
    }
  }

  std::size_t Bytes;
  void* Memory;
};

ArrayPool::ArrayPool() = default;
ArrayPool::~ArrayPool() = default;

vtkSmartPointer<vtkDataArray> ArrayPool::Take(int type, int components, vtkIdType tuples)
{
  auto array = vtkSmartPointer<vtkDataArray>::Take(vtkDataArray::CreateDataArray(type));
  array->SetNumberOfComponents(components);
  const vtkIdType values = components * tuples;
  if (values == 0)
  {
    return array;
  }
  const std::size_t bytes = static_cast<std::size_t>(values) * array->GetDataTypeSize();
  auto free = std::find_if(this->Blocks.begin(), this->Blocks.end(),
    [bytes](const std::shared_ptr<Block>& block)
    { return block.use_count() == 1 && block->Bytes == bytes; });
  if (free == this->Blocks.end())
  {
    free = this->Blocks.insert(free, std::make_shared<Block>(bytes));
  }
  array->SetVoidArray(Block::Lend(*free), values, 0, vtkDataArray::VTK_DATA_ARRAY_USER_DEFINED);
  array->SetArrayFreeFunction(&Block::Return);
  return array;
}

void ArrayPool::ForgetFree()
{
  this->Blocks.erase(std::remove_if(this->Blocks.begin(), this->Blocks.end(),
                       [](const std::shared_ptr<Block>& block) { return block.use_count() == 1; }),
    this->Blocks.end());
  if (this->Size() > Limit)
  {
    this->Blocks.clear();
  }
}

std::size_t ArrayPool::Size() const
{
  std::size_t bytes = 0;
  for (const std::shared_ptr<Block>& block : this->Blocks)
  {
    bytes += block->Bytes;
  }
  return bytes;
}

}
