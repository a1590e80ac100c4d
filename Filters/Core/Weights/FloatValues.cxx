#include "FloatValues.h"

namespace atlas
{
namespace
{

bool IsFloatArray(const TensorView& view)
{
  return view.dtype == DType::F32 && view.IsPlain() &&
         reinterpret_cast<std::uintptr_t>(view.data) % alignof(float) == 0;
}

}

FloatValues::FloatValues(const TensorView& view)
{
  if (view.data == nullptr)
  {
    return;
  }
  if (IsFloatArray(view))
  {
    this->Values = reinterpret_cast<const float*>(view.data);
    return;
  }
  this->Owned.resize(view.Count());
  view.ToFloat(0, view.Count(), this->Owned.data());
  this->Values = this->Owned.data();
}

std::uint64_t WidenedBytes(const TensorView& view)
{
  return view.data == nullptr || IsFloatArray(view) ? 0 : view.Count() * sizeof(float);
}

}
