#pragma once

// Internal to Core.

#include "Files/Tensor.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// A tensor that is trained.
struct Parameter
{
  std::string name;
  Shape shape;
  std::int64_t first = 0; ///< its first number in the block
  std::int64_t count = 0;
};

/// The trained tensors of a model in one block of memory, and the model that reads them there.
/// Number is float or double.
template<class Number>
class ParameterBlock
{
public:
  /// Copies the tensors of ParameterShapes. Throws ModelError if one is missing or has another
  /// shape.
  ParameterBlock(const TransformerConfig& config, const TensorViews& weights);
  ParameterBlock(const ParameterBlock&) = delete;
  ParameterBlock& operator=(const ParameterBlock&) = delete;

  const Transformer& GetModel() const { return *this->Model; }
  const TransformerConfig& GetConfig() const { return this->Model->GetConfig(); }
  const std::vector<Parameter>& GetParameters() const { return this->Parameters; }

  /// What the unembedding reads; of a ViT its classifier.
  const LinearTensors& GetUnembedding() const { return this->Unembedding; }

  Number* Values() { return this->Memory.data(); }
  const Number* Values() const { return this->Memory.data(); }
  std::int64_t Size() const { return this->Memory.size(); }

  /// The numbers of a tensor that the model reads.
  const Number* Of(const TensorView& view) const
  {
    return reinterpret_cast<const Number*>(view.data);
  }

  /// The place of a tensor in a block of the same layout, such as that of the gradient.
  Number* In(Number* block, const TensorView& view) const
  {
    return block + (this->Of(view) - this->Values());
  }

  /// Copies of all tensors, F32, from a block of the same layout.
  Tensors ToTensors(const Number* block) const;

private:
  std::vector<Parameter> Parameters;
  std::vector<Number> Memory;
  std::unique_ptr<const Transformer> Model;
  LinearTensors Unembedding;
};

extern template class ParameterBlock<float>;
extern template class ParameterBlock<double>;

}
