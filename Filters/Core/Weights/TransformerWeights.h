#pragma once

#include "TransformerConfig.h"
#include "WeightFiles.h"

#include <string>
#include <vector>

namespace atlas
{

/// How a matrix that maps inputs to outputs is stored, row-major.
enum class WeightLayout
{
  InputOutput,    ///< [inputs, outputs]: TransformerLens, and Hugging Face's GPT-2
  OutputInput,    ///< [outputs, inputs]: all other models of Hugging Face
  HeadInputOutput ///< [H, inputs, d_head]: queries, keys and values in TransformerLens
};

/// The tensors of y = x W + b. If the weight is missing (data is nullptr), the layer does not
/// exist; a missing bias is 0.
struct LinearTensors
{
  TensorView weight;
  TensorView bias; ///< [outputs]
  WeightLayout layout = WeightLayout::OutputInput;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t headFirst = 0; ///< queries, keys, values: the first output of head h is
  std::int64_t headStep = 0;  ///< headFirst + h headStep

  bool Exists() const { return this->weight.data != nullptr; }
};

/// Gain and shift of a normalization [d_model]. If missing (data is nullptr), they are 1 and 0.
struct NormTensors
{
  TensorView gain;
  TensorView shift;
};

struct LayerTensors
{
  NormTensors attentionNorm;
  LinearTensors query;
  LinearTensors key;
  LinearTensors value;
  LinearTensors output; ///< inputs: d_head of head 0, of head 1, ...
  NormTensors mlpNorm;
  LinearTensors gate; ///< gated MLP only
  LinearTensors up;
  LinearTensors down;
};

/// The tensors of a transformer by purpose, independent of their names in the file.
struct TransformerWeights
{
  TensorView tokenEmbedding;    ///< [vocabulary, d_model]
  TensorView positionEmbedding; ///< [positions or more, d_model]
  TensorView segmentEmbedding;  ///< [segments, d_model]
  LinearTensors patchEmbedding; ///< order of inputs: channel, row, column of a patch
  TensorView classToken;        ///< d_model values
  NormTensors embeddingNorm;
  std::vector<LayerTensors> layers;
  NormTensors finalNorm;
  LinearTensors logitsTransform; ///< BERT: the logits are computed from
                                 ///< norm(activation(transform(x)))
  NormTensors logitsNorm;
  LinearTensors unembedding;

  bool normsAreFolded = false; ///< TransformerLens names without gains
  WeightProcessing processing = WeightProcessing::Unknown;
  std::vector<std::string> unused; ///< tensors of heads and poolers that are not used, for a warning
};

/// Finds the tensors of a model by their Hugging Face names, with or without the prefix of the base
/// model, or by their TransformerLens names. Nothing is copied. Throws ModelError if a tensor is
/// missing, has a wrong shape, is not floating-point, or belongs to a layer that the configuration
/// does not have; and if a layer or a normalization has a tensor that the architecture does not,
/// such as norms of queries and keys, because results without it would be wrong. The message gives
/// file, tensor, expected and found. Buffers (masks, position ids, rotary frequencies) are ignored.
TransformerWeights BindTransformerWeights(
  const TransformerConfig& config, const WeightFiles& files);

}
