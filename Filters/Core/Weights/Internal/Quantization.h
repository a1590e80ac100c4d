#pragma once

// Internal to Core: quantized weights that are not run.

#include "Files/JsonSettings.h"
#include "Files/Tensor.h"

#include <string>

namespace atlas
{

/// Throws ModelError if the settings say that weights are quantized; the message says how.
void RefuseQuantization(const Settings& settings);

/// The method by which the weight of this name is quantized, such as "AWQ", inferred from the names
/// of the tensors beside it; empty if there are none of any method.
std::string QuantizationOf(const TensorViews& tensors, const std::string& weight);

/// The end of a sentence about a weight that is quantized by `method`.
std::string QuantizationMessage(const std::string& method);

}
