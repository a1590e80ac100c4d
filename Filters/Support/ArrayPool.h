#pragma once

#include <vtkDataArray.h>
#include <vtkSmartPointer.h>
#include <vtkType.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace AttentionAtlas
{

/// The memory of the large arrays of a filter's last outputs, up to two of each and 512 MiB in all,
/// to fill again once no array holds it. Fresh memory costs a slider more than computing what is in
/// it, since the system clears each page.
class ArrayPool
{
public:
  ArrayPool();
  ~ArrayPool();
  ArrayPool(const ArrayPool&) = delete;
  ArrayPool& operator=(const ArrayPool&) = delete;

  /// A new array of this type (VTK_FLOAT, VTK_INT or VTK_UNSIGNED_CHAR) and size whose values are
  /// not set.
  vtkSmartPointer<vtkDataArray> Take(int type, int components, vtkIdType tuples);

  /// Call it after the arrays of an output have been taken: frees the memory that no array holds.
  void ForgetFree();

  /// How much memory is kept, in bytes.
  std::size_t Size() const;

private:
  struct Block;

  std::vector<std::shared_ptr<Block>> Blocks;
};

}
