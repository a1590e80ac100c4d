#pragma once

// Internal to Core: quantized weights that are not run.

#include "JsonSettings.h"
#include "Tensor.h"

#include <string>

namespace atlas
{

/// Throws ModelError if the settings say that weights are quantized; the message says how.
void RefuseQuantization(const Settings& settings);

/// How the weight of this name is quantized, as the tensors beside it tell, such as "AWQ"; empty
/// if they do not tell.
std::string QuantizationOf(const TensorViews& tensors, const std::string& weight);

/// The end of a sentence about a weight that is quantized by `method`.
std::string QuantizationMessage(const std::string& method);

}
