#pragma once

// Internal to Core.

#include "Base/NamedValues.h"
#include "Weights/TransformerConfig.h"

#include <array>

namespace atlas
{

/// Activations as configurations name them.
inline constexpr std::array<Named<Activation>, 11> ActivationNames = { {
  { "gelu", Activation::Gelu },
  { "gelu_fast", Activation::GeluTanh },
  { "gelu_new", Activation::GeluTanh },
  { "gelu_pytorch_tanh", Activation::GeluTanh },
  { "gelu_python", Activation::Gelu },
  { "quick_gelu", Activation::QuickGelu },
  { "relu", Activation::Relu },
  { "relu2", Activation::SquaredRelu },
  { "silu", Activation::Silu },
  { "swish", Activation::Silu },
  { "xielu", Activation::Xielu },
} };

}
