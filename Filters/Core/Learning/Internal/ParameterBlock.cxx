#include "ParameterBlock.h"

#include "Base/Error.h"
#include "Learning/TransformerTrainer.h"

#include <type_traits>

namespace atlas
{
namespace
{

/// Every tensor begins at a multiple of this number of values.
constexpr std::int64_t Alignment = 16;

const TensorView& Find(const TensorViews& weights, const std::string& name, const Shape& shape)
{
  const auto found = weights.find(name);
  if (found == weights.end())
  {
    throw ModelError("the weights to train: tensor '" + name + "' is missing.");
  }
  ThrowIf<ModelError>(found->second.shape != shape, "the weights to train: tensor '", name,
    "': expected shape ", ToString(shape), ", found ", ToString(found->second.shape), ".");
  return found->second;
}

}

template<class Number>
ParameterBlock<Number>::ParameterBlock(const TransformerConfig& config, const TensorViews& weights)
{
  std::int64_t size = 0;
  for (const auto& [name, shape] : ParameterShapes(config))
  {
    Find(weights, name, shape);
    const auto count = static_cast<std::int64_t>(ElementCount(shape).value_or(0));
    this->Parameters.push_back({ name, shape, size, count });
    size += (count + Alignment - 1) / Alignment * Alignment;
  }
  this->Memory.resize(size);
  const DType type = std::is_same_v<Number, float> ? DType::F32 : DType::F64;
  TensorViews views;
  for (const Parameter& parameter : this->Parameters)
  {
    const TensorView& from = Find(weights, parameter.name, parameter.shape);
    Number* to = this->Memory.data() + parameter.first;
    for (std::int64_t i = 0; i < parameter.count; ++i)
    {
      to[i] = static_cast<Number>(from.At(static_cast<std::uint64_t>(i)));
    }
    views.emplace(
      parameter.name, TensorView{ type, parameter.shape, reinterpret_cast<const std::byte*>(to) });
  }
  this->Model =
    std::make_unique<const Transformer>(config, WeightFiles(views, "the trained model"));
  this->Unembedding = this->Model->GetWeights().unembedding;
  if (config.input == InputKind::Images)
  {
    this->Unembedding.weight = views.at("classifier.weight");
    this->Unembedding.bias = views.at("classifier.bias");
    this->Unembedding.layout = WeightLayout::OutputInput;
    this->Unembedding.inputs = config.modelDimension;
    this->Unembedding.outputs = config.outputVocabulary;
  }
}

template<class Number>
Tensors ParameterBlock<Number>::ToTensors(const Number* block) const
{
  Tensors tensors;
  for (const Parameter& parameter : this->Parameters)
  {
    const Number* from = block + parameter.first;
    tensors.emplace(parameter.name, Tensor::FromDouble(DType::F32, parameter.shape,
                                      std::vector<double>(from, from + parameter.count)));
  }
  return tensors;
}

template class ParameterBlock<float>;
template class ParameterBlock<double>;

}
