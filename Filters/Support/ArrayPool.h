#pragma once

#include <vector>

#include <vtkDataArray.h>
#include <vtkSmartPointer.h>
#include <vtkType.h>

namespace AttentionAtlas
{

/// The large arrays of a filter's last outputs, to fill again once nobody else holds them. Fresh
/// memory costs a slider more than computing what is in it, since the system clears each page.
///
/// While a pipeline shows one output, the filter fills the next one, so there are up to two of each
/// array. Arrays that together exceed 512 MiB are not kept.
class ArrayPool
{
public:
  /// An array of this type (VTK_FLOAT, VTK_INT or VTK_UNSIGNED_CHAR) and size whose values are not
  /// set, without name and ranges.
  vtkSmartPointer<vtkDataArray> Take(int type, int components, vtkIdType tuples);

  /// Call it after the arrays of an output have been taken: forgets those that nobody else holds.
  void ForgetFree();

private:
  std::vector<vtkSmartPointer<vtkDataArray>> Arrays;
};

}
