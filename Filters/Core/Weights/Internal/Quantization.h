#pragma once

// Internal to Core: weights of fewer than 16 bits, as published models have them.

#include "Files/JsonSettings.h"
#include "Files/Tensor.h"
#include "Weights/WeightFiles.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace atlas
{

/// What a model's settings say about the quantization of its weights, beyond what its tensors tell.
struct Quantization
{
  enum class Method
  {
    None,
    Mxfp4,             ///< NAME_blocks and NAME_scales (gpt-oss)
    Fp8,               ///< weight_scale_inv (DeepSeek) or weight_scale
    Gptq,              ///< qweight, qzeros, scales and g_idx
    Awq,               ///< likewise, in another order and without g_idx
    CompressedTensors, ///< weight_packed or weight, weight_scale, weight_zero_point
    Bitsandbytes,      ///< weight.absmax and others, or SCB
    Mlx                ///< weight, scales and biases
  };
  struct Sizes
  {
    std::int64_t bits = 0;
    std::int64_t group = 0; ///< columns that share a scale; 0: all
    bool isFloat = false;   ///< MLX: mxfp4
  };

  Method method = Method::None;
  Sizes sizes;
  std::vector<Sizes> kinds;             ///< compressed-tensors: of some modules each
  std::vector<std::int64_t> block;      ///< FP8: rows and columns that share a scale; or empty
  bool zerosAreOneLess = false;         ///< GPTQ: those that are stored
  bool reordersColumns = false;         ///< GPTQ: groups need their index
  std::map<std::string, Sizes> modules; ///< MLX: those with other sizes
};

/// What settings say of quantization. Throws ModelError for a method that is not run, and for one
/// with a setting that changes numbers and is not known.
Quantization ParseQuantization(const Settings& settings);

/// Likewise of a config.json or, if it says nothing, of the quantize_config.json (GPTQ) or
/// quant_config.json (AWQ) beside it, as the first files have them.
Quantization ReadQuantization(const std::filesystem::path& path);

/// Puts a tensor of packed numbers (PackedNumbers.h), by the name of the weight, in the place of
/// the tensors of each quantized one. Scales of activations, which models round when they run, are
/// taken away. Throws ModelError if a tensor is missing or has a wrong type or shape.
void UnpackWeights(const Quantization& quantization, WeightFiles& files);

/// The method by which the weight of this name is quantized, such as "AWQ", inferred from the names
/// of the tensors beside it; empty if there are none of any method.
std::string QuantizationOf(const TensorViews& tensors, const std::string& weight);

/// The end of a sentence about a weight that is quantized by `method`.
std::string QuantizationMessage(const std::string& method);

}
